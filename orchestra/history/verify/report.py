"""The report of a verification: findings, the snapshots each makes unreadable, and what is whole.

A *finding* is damage or a note. A *span* is a stretch of neighbouring snapshots of one run.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import attrs

from orchestra.ids import Digest, RunId

Severity: TypeAlias = Literal["damage", "note"]


@attrs.frozen(kw_only=True)
class SnapshotSpan:
    """Neighbouring snapshots of one run, both ends included."""

    run: RunId
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.run}@{self.first}" + (f" to @{self.last}" if self.last > self.first else "")

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __iter__(self) -> Iterator[tuple[RunId, int]]:
        return ((self.run, seq) for seq in range(self.first, self.last + 1))


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that a verification found."""

    severity: Severity = "damage"
    what: str  # e.g. "snapshot code-review_…@12", "object 5be1…", "run code-review_…"
    reason: str
    run: RunId | None = None
    seq: int | None = None
    digest: Digest | None = None  # of the damaged object
    spans: tuple[SnapshotSpan, ...] = ()  # snapshots that cannot be read because of it

    @property
    def is_damage(self) -> bool:
        """Whether something is not as it was written."""
        return self.severity == "damage"

    @property
    def snapshots(self) -> list[tuple[RunId, int]]:
        """Every snapshot that cannot be read because of it, one by one."""
        return [each for span in self.spans for each in span]

    def __str__(self) -> str:
        because = f" (unreadable: {', '.join(map(str, self.spans))})" if self.spans else ""
        return f"{self.severity}: {self.what}: {self.reason}{because}"


@attrs.frozen(kw_only=True)
class Report:
    """What a verification found."""

    findings: tuple[Finding, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not any(finding.is_damage for finding in self.findings)


@attrs.frozen(kw_only=True)
class RunReport(Report):
    """What is known of one run after it was verified."""

    run: RunId
    rows: int
    pruned: int  # snapshots of which only the proved header is kept
    head: int | None  # the newest sequence number, None when the run has no readable row at all
    whole: int | None  # the newest snapshot that can be read whole; the head when that is not damaged
    unreadable: tuple[SnapshotSpan, ...] = ()

    @property
    def head_is_whole(self) -> bool:
        """Whether the run can go on from its head."""
        return self.head is not None and self.whole == self.head


@attrs.frozen(kw_only=True)
class StoreReport(Report):
    """What is known of a store after it was verified; its findings, the objects' and those of every run."""

    place: str
    runs: tuple[RunReport, ...]
    rows: int
    pruned: int
    objects: int  # distinct objects that snapshots need
    orphans: int  # objects that no snapshot needs; garbage collection removes them


class Spans:
    """Collects sequence numbers, run by run and upwards, into spans."""

    __slots__ = ("_spans",)

    def __init__(self) -> None:
        self._spans: list[SnapshotSpan] = []

    def add(self, run: RunId, seq: int) -> None:
        """Add a snapshot; one that was just added is not added again."""
        newest = self._spans[-1] if self._spans else None
        if newest is None or newest.run != run or not newest.first <= seq <= newest.last + 1:
            self._spans.append(SnapshotSpan(run=run, first=seq, last=seq))
        elif seq > newest.last:
            self._spans[-1] = SnapshotSpan(run=run, first=newest.first, last=seq)

    def forget(self, run: RunId) -> None:
        self._spans = [span for span in self._spans if span.run != run]

    def to_tuple(self) -> tuple[SnapshotSpan, ...]:
        return tuple(self._spans)


@attrs.define(kw_only=True)
class Case:
    """A finding in the making, to which snapshots are added while they are looked at."""

    what: str
    reason: str
    severity: Severity = "damage"
    run: RunId | None = None
    seq: int | None = None
    digest: Digest | None = None
    spans: Spans = attrs.field(factory=Spans)

    def finding(self) -> Finding:
        return Finding(**attrs.asdict(self, recurse=False) | {"spans": self.spans.to_tuple()})
