"""Lineage: which snapshots a run's head builds on. Those that a rollback undid are not among them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from orchestra.errors import Damaged, DamageError, UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.history.pages import Broken, Pages
from orchestra.ids import RunId
from orchestra.model.snapshot import Header, Snapshot
from orchestra.ports.store import Row, RowQuery

_BOUNDARIES = frozenset({"phase_start", "phase_completed", "forked"})
"""Where a rollback may go by itself: between phases, and where a fork began."""


def ancestry(archive: Archive, run: RunId, head: int) -> Iterator[Row]:
    """The rows the head builds on, newest first, the head included; undone ones are skipped."""
    skip_above = head
    for row in Pages(archive.store, RowQuery(run=run, newest_first=True), head):
        if isinstance(row, Broken) or row.seq > skip_above:
            continue
        yield row
        skip_above = row.seq - 1
        if "rolled_back" in row.triggers:
            with suppress(DamageError):  # where it went back to is not known then, so nothing is skipped
                skip_above = min(skip_above, target_of(archive.header(row)))


def jumps(archive: Archive, run: RunId, first: int = 0) -> list[tuple[int, int]]:
    """The rollbacks of a run from a snapshot on, oldest first: the number of each, and where it went."""
    found: list[tuple[int, int]] = []
    for row in archive.store.rows(RowQuery(run=run, first=first, triggers=("rolled_back",))):
        with suppress(DamageError):  # where it went back to is not known then
            found.append((row.seq, target_of(archive.header(row))))
    return found


def lived_ranges(rollbacks: Sequence[tuple[int, int]], head: int) -> list[range]:
    """The numbers of the snapshots that the head builds on, newest stretch first."""
    stretches: list[range] = []
    top = head
    for seq, to in reversed(rollbacks):
        if seq <= top:
            stretches.append(range(seq, top + 1))
            top = min(to, seq - 1)
    return [*stretches, range(top + 1)]


def origin_of(archive: Archive, first: Row) -> tuple[RunId, int] | None:
    """Where the run of a first snapshot was forked from, when that run is still there."""
    origin = None if first.parent is None else archive.part_of(first, ("origin",)).get("origin")
    if not isinstance(origin, dict) or archive.store.run(RunId(origin["run"])) is None:
        return None
    return RunId(origin["run"]), int(origin["seq"])


def ancestry_through_forks(archive: Archive, row: Row) -> Iterator[Row]:
    """The rows that a row builds on, newest first, itself included; after those of its run, its origin's."""
    while True:
        oldest = row
        for each in ancestry(archive, row.run, row.seq):
            oldest = each
            yield each
        origin = origin_of(archive, oldest) if oldest.seq == 0 else None
        if origin is None:
            return
        row = archive.row(*origin)


def last_good(archive: Archive, run: RunId) -> int:
    """The newest phase boundary with no open failure; raises `UnknownSnapshot` when there is none."""
    for row in ancestry(archive, run, archive.run(run).head):
        is_boundary = not _BOUNDARIES.isdisjoint(row.triggers) and not row.pruned
        if is_boundary and not archive.header(row).open_failure:
            return row.seq
    raise UnknownSnapshot(run=run, reference="last-good", reason="no phase boundary without an open failure")


def newest_whole(archive: Archive, run: RunId, below: int) -> Snapshot:
    """The newest snapshot before `below` that can be read whole; raises `Damaged` when there is none."""
    for row in ancestry(archive, run, below):
        if not row.pruned and row.seq != below:
            with suppress(DamageError):
                return archive.snapshot(row)
    raise Damaged(what=f"run {run}", reason=f"no snapshot before {below} can be read whole")


def last_known(archive: Archive, run: RunId) -> Snapshot:
    """The newest snapshot; when that is damaged, the newest whole one; raises `Damaged` when none is."""
    try:
        return archive.snapshot(archive.newest(run))
    except DamageError:
        return newest_whole(archive, run, archive.run(run).head)


def target_of(header: Header) -> int:
    """The sequence number that a rollback went back to."""
    for line in header.events:
        if line.kind == "rolled_back":
            return int(dict(line.figures)["to"])
    raise Damaged(what=f"snapshot {header.run}@{header.seq}", reason="it is a rollback without a target")
