"""What a verification keeps of a row while it looks at it, and of the segment that the row belongs to."""

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from orchestra.codec.document import Document
from orchestra.errors import DamageError
from orchestra.history.archive import Step
from orchestra.history.verify.report import Case
from orchestra.ids import Digest
from orchestra.model.snapshot import Header
from orchestra.ports.store import Row


@attrs.frozen(kw_only=True)
class Unread:
    """A row that the store itself could not hand out."""

    seq: int
    error: DamageError


@attrs.define(kw_only=True)
class Opened:
    """A row as far as it could be opened, and what was wrong with it."""

    row: Row
    header: Header | None = None
    step: Step | None = None
    wrong: Case | None = None  # keeps this snapshot from being read
    torn: Case | None = None  # keeps the snapshots that build on this one from being read

    @property
    def is_sealed(self) -> bool:
        return self.header is not None and self.header.sealed_at == self.row.seq

    @property
    def is_jump(self) -> bool:
        operations = [] if self.step is None else self.step.operations
        return bool(operations) and operations[0][:1] == ["reset"]


@attrs.define(kw_only=True)
class Segment:
    """A seal and what is known of the snapshots that build on it."""

    seal: Digest
    sealed_at: int
    document: Document | None = None  # the state at the newest row
    objects: frozenset[Digest] = frozenset()  # damaged ones that keep the rest of the segment from being read
    suspect: bool = False  # whether anything it refers to is damaged


Entry: TypeAlias = Row | Unread


def needed_objects(opened: Iterable[Opened]) -> list[Digest]:
    """The objects that these rows refer to and that must be there."""
    needed: list[Digest] = []
    for each in opened:
        if each.row.patch is not None and each.header is not None:
            needed.append(each.header.seal)
        if each.step is not None:
            needed.extend(each.step.references)
    return needed
