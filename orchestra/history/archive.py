"""The archive: reads runs and snapshots, and proves everything it reads by digest.

A state is the newest seal at or before a snapshot plus the patches up to it.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

import attrs

from orchestra.codec.address import Addresser
from orchestra.codec.document import BadPatch, Document, apply_patch, upgrade_document
from orchestra.codec.frame import FORMAT, Framer
from orchestra.codec.header import link, open_header, read_header
from orchestra.codec.loader import Loader
from orchestra.codec.patch import Operation
from orchestra.codec.readers import structure
from orchestra.codec.values import thaw
from orchestra.errors import Damaged, DamageError, MissingObject, PrunedSnapshot, UnknownRun, UnknownSnapshot
from orchestra.history.pages import Broken
from orchestra.ids import Digest, RunId
from orchestra.model.snapshot import Header, Snapshot
from orchestra.model.state import State
from orchestra.model.value import Value
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow, Store

T = TypeVar("T")
D = TypeVar("D")
_COLUMNS: Final = ("run", "seq", "parent", "at", "status", "phase", "triggers", "marked", "seal", "sealed_at")
"""The columns of a row that its header has too; besides them it tells the agents."""
_CALLED: Final = {"seq": "sequence number", "at": "time", "marked": "mark", "sealed_at": "seal position"}


@attrs.frozen
class Step:
    """One row, opened and proved: the operations that lead to it and what they refer to."""

    row: Row
    parent: Digest | None
    operations: list[Operation]
    references: list[Digest]


class Archive:
    """Reads and proves what a store holds."""

    def __init__(self, store: Store, framer: Framer | None = None) -> None:
        self.store = store
        self.framer = framer or Framer(Addresser())
        self.loader = Loader(store.get_objects, self.framer)

    def run(self, run: RunId) -> RunRow:
        """One run; raises `UnknownRun` with the nearest names."""
        found = self.store.run(run)
        if found is None:
            near = self.store.runs(RunQuery(contains=str(run)[:24], limit=3))
            hint = f" Did you mean {', '.join(row.run for row in near)}?" if near else ""
            raise UnknownRun(run=run, store=self.store.place, hint=hint)
        return found

    def row(self, run: RunId, seq: int) -> Row:
        """One row with its content; raises `UnknownRun` or `UnknownSnapshot`."""
        rows = self.store.rows(RowQuery(run=run, first=seq, last=seq))
        if rows:
            return rows[0]
        head = self.run(run).head
        raise UnknownSnapshot(run=run, reference=str(seq), reason=f"its snapshots are 0 to {head}")

    def header(self, row: Row) -> Header:
        """The header of a row, proved and agreeing with the row's columns; raises `Damaged`."""
        what = f"snapshot {row.run}@{row.seq}"
        header = read_header(row.digest, row.header, self.framer, what=what)
        wrong = disagreement(row, header)
        if wrong is not None:
            raise Damaged(what=what, reason=f"its {wrong} in the index is not the one in its header")
        return header

    def try_header(self, row: Row | Broken) -> tuple[Header | None, str | None]:
        """The header of a row; or None, and why it cannot be read."""
        try:
            return (None, row.reason) if isinstance(row, Broken) else (self.header(row), None)
        except DamageError as damage:
            return None, str(damage)

    def step(self, row: Row) -> Step:
        """Open and prove a row; raises `Damaged` or `PrunedSnapshot`."""
        plain = open_header(row.digest, row.header, self.framer, what=f"snapshot {row.run}@{row.seq}")
        patch = link(plain, "patch")
        if row.patch is not None and (
            patch is None or plain.get("run") != row.run or plain.get("seq") != row.seq
        ):
            what = f"the patch of {row.run}@{row.seq}"
            raise Damaged(what=what, reason="its header is that of another snapshot")
        return self.open_step(row, link(plain, "parent"), patch)

    def open_step(self, row: Row, parent: Digest | None, patch: Digest | None) -> Step:
        """Open a row whose header was proved; raises `Damaged` or `PrunedSnapshot`."""
        if row.patch is None or patch is None:
            raise self.pruned_error(row.run, row.seq)
        what = f"the patch of {row.run}@{row.seq}"
        framed = self.framer.open(patch, row.patch, what=what, kinds=("patch",))
        references, operations = self.loader.decode(framed.canonical, what=what)
        if not isinstance(operations, list) or not all(isinstance(each, list) for each in operations):
            raise Damaged(what=what, reason="it is not a list of operations")
        return Step(row, parent, operations, references)

    def document(self, run: RunId, seq: int) -> Document:
        """The state at a snapshot as a document; nodes are fetched as they are looked at."""
        return self.document_of(self.row(run, seq))

    def document_of(self, row: Row) -> Document:
        """The state at a row as a document; raises `Damaged`, `MissingObject` or `PrunedSnapshot`."""
        return self._versioned(row, self.header(row))[1]

    def next_document(
        self, row: Row, before: Document | None, names: Collection[str] | None = None
    ) -> Document:
        """The state at a row, or some fields of it, made from that of the row before where this is known."""
        if before is None or row.sealed_at == row.seq:  # after a rollback there is no patch to follow
            return self.document_of(row) if names is None else self.part_of(row, names)
        step = self.step(row)
        operations = step.operations if names is None else operations_on(step.operations, names)
        return advance_document(before, step, operations)

    def documents_of(self, old: Row, new: Row) -> tuple[Document, Document]:
        """The states at two rows, sharing what is equal where one follows the other."""
        version, before = self._versioned(old, self.header(old))
        follows = (new.run, new.seq, new.sealed_at) == (old.run, old.seq + 1, old.sealed_at)
        if version == FORMAT and follows and not new.pruned:
            header = self.header(new)
            if header.parent == old.digest:
                return before, advance_document(before, self.open_step(new, header.parent, header.patch))
        return before, self.document_of(new)

    def part_of(self, row: Row, names: Collection[str]) -> Document:
        """Some fields of the state at a row. Only what they need is fetched; raises like `document_of`."""
        header = self.header(row)
        if row.pruned:
            raise self.pruned_error(row.run, row.seq)
        version, document = self.loader.root(header.seal)
        if version != FORMAT:
            return self.document_of(row)
        part = {name: document[name] for name in names if name in document}
        for step in self._between(row, header):
            part = advance_document(part, step, operations_on(step.operations, names))
        return part

    def newest(self, run: RunId) -> Row:
        """The newest row of a run, with its content; raises `UnknownRun`."""
        rows = self.store.rows(RowQuery(run=run, newest_first=True, limit=1))
        return rows[0] if rows else self.row(run, self.run(run).head)

    def _versioned(self, row: Row, header: Header) -> tuple[int, Document]:
        """The state at a row as a document of today, and the format it was stored in."""
        if row.pruned:
            raise self.pruned_error(row.run, row.seq)
        version, document = self.loader.root(header.seal)
        for step in self._between(row, header):
            document = advance_document(document, step)
        return version, upgrade_document(document, version, what=f"snapshot {row.run}@{row.seq}")

    def state(self, run: RunId, seq: int) -> State:
        return self.snapshot(self.row(run, seq)).state

    def snapshot(self, row: Row) -> Snapshot:
        """A snapshot, whole: its header and state."""
        header = self.header(row)
        try:
            version, document = self._versioned(row, header)
            self.loader.fetch_all(document)
        except MissingObject as missing:  # it may have been pruned while it was being read
            rows = self.store.rows(RowQuery(run=row.run, first=row.seq, last=row.seq, content=False))
            is_pruned = bool(rows) and rows[0].pruned
            raise (self.pruned_error(row.run, row.seq) if is_pruned else missing) from None
        state = structure(document, State, what=f"snapshot {row.run}@{row.seq}")
        return Snapshot(digest=row.digest, header=header, state=state, format=version)

    def value(self, value: Value) -> object:
        """The data of a frozen value, fetched when it is large."""
        return thaw(self.loader.value(value))

    def pruned_error(self, run: RunId, seq: int) -> PrunedSnapshot:
        """The error for a snapshot whose content was removed, naming the nearest kept ones."""
        rows = self.store.rows(RowQuery(run=run, content=False))
        kept = sorted((abs(row.seq - seq), row.seq) for row in rows if not row.pruned)
        nearest = ", ".join(f"{run}@{each}" for _, each in kept[:2]) or "none"
        return PrunedSnapshot(run=run, seq=seq, nearest=nearest)

    def before(self, row: Row, first: int) -> list[Row]:
        """The rows from `first` up to the one before `row`; raises `Damaged` when one is missing."""
        rows = self.store.rows(RowQuery(run=row.run, first=first, last=row.seq - 1))
        if [each.seq for each in rows] != list(range(first, row.seq)):
            raise Damaged(what=f"run {row.run}", reason=f"rows are missing before snapshot {row.seq}")
        return rows

    def _between(self, row: Row, header: Header) -> list[Step]:
        """The steps from just after the seal up to and including `row`, linked to one another."""
        if header.sealed_at == row.seq:
            return []
        rows = self.before(row, header.sealed_at)
        steps = [self.step(each) for each in rows[1:]]
        steps.append(self.open_step(row, header.parent, header.patch))
        for earlier, later in zip(rows, steps, strict=True):
            if later.parent != earlier.digest:
                what = f"snapshot {row.run}@{later.row.seq}"
                raise Damaged(what=what, reason="it does not follow its parent")
        return steps


def if_whole(read: Callable[[], T], otherwise: D) -> T | D:
    """What can be read, or something else where it is damaged."""
    try:
        return read()
    except DamageError:
        return otherwise


def operations_on(operations: Iterable[Operation], names: Collection[str]) -> list[Operation]:
    """The operations that change one of these fields of a state."""
    return [each for each in operations if len(each) > 1 and each[1] and each[1][0] in names]


def advance_document(document: Document, step: Step, operations: list[Operation] | None = None) -> Document:
    """The document after one step, or after some of its operations; raises `Damaged`."""
    try:
        return apply_patch(document, step.operations if operations is None else operations)
    except BadPatch as bad:
        what = f"the patch of {step.row.run}@{step.row.seq}"
        raise Damaged(what=what, reason=f"it does not fit the state before it ({bad})") from None


def disagreement(row: Row, header: Header) -> str | None:
    """The first column of a row that is not what its header says, or None."""
    said = columns_of(header)
    return next((_CALLED.get(name, name) for name in said if getattr(row, name) != said[name]), None)


def columns_of(header: Header) -> dict[str, Any]:
    """The columns of a row that its header tells."""
    return {name: getattr(header, name) for name in _COLUMNS} | {"agents": agents_of(header)}


def agents_of(header: Header) -> tuple[str, ...]:
    """Who took part in the turn that led to a snapshot."""
    return tuple(dict.fromkeys([line.who for line in header.events if line.who is not None]))
