"""Lineage: which snapshots a run's head builds on. Those that a rollback undid are not among them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from orchestra.errors import Damaged, DamageError, UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import PAGE_ROWS
from orchestra.model.snapshot import Header, Snapshot
from orchestra.ports.store import Row, RowQuery

_BOUNDARIES = frozenset({"phase_start", "phase_completed", "forked"})
"""Where a rollback may go by itself: between phases, and where a fork began."""


def ancestry(archive: Archive, run: RunId, head: int) -> Iterator[Row]:
    """The rows the head builds on, newest first, the head included; undone ones are skipped."""
    skip_above = head
    for row in _newest_first(archive, run, head):
        if row.seq > skip_above:
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


def last_good(archive: Archive, run: RunId) -> int:
    """The newest phase boundary with no open failure; raises `UnknownSnapshot` when there is none."""
    for row in ancestry(archive, run, archive.run(run).head):
        if _BOUNDARIES.isdisjoint(row.triggers) or row.pruned:
            continue
        if not archive.header(row).open_failure:
            return row.seq
    raise UnknownSnapshot(run=run, reference="last-good", reason="no phase boundary without an open failure")


def newest_whole(archive: Archive, run: RunId, below: int) -> Snapshot:
    """The newest snapshot before `below` that can be read whole; raises `Damaged` when there is none."""
    for row in ancestry(archive, run, below):
        if row.pruned or row.seq == below:
            continue
        try:
            return archive.snapshot(row)
        except DamageError:
            continue
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


def _newest_first(archive: Archive, run: RunId, last: int) -> Iterator[Row]:
    """Rows from `last` down; those that the store itself finds damaged are left out."""
    while last >= 0:
        first = max(0, last - PAGE_ROWS + 1)
        try:
            yield from archive.store.rows(RowQuery(run=run, first=first, last=last, newest_first=True))
        except DamageError:
            for seq in range(last, first - 1, -1):
                with suppress(DamageError):
                    yield from archive.store.rows(RowQuery(run=run, first=seq, last=seq))
        last = first - 1
