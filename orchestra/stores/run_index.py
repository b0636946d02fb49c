"""The index of runs that the `memory` and `files` stores keep in memory, and the methods they share.

The `files` store keeps the contents of rows on disk, the `memory` store keeps them in the rows themselves. An
index does no locking and no I/O. It changes only through calls that cannot fail half-way, after everything
that can be refused was refused.
"""

import heapq
import threading
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TypeAlias

import attrs

from orchestra import errors
from orchestra.errors import OrchestraError
from orchestra.ids import Digest, Fence, Instant, RunId
from orchestra.ports import store as port
from orchestra.ports.store import Annotation, Claim, Command, Commit, Row, RowQuery, RunRow, spare_nothing
from orchestra.stores.commit_rules import refuse_content, refuse_first, refuse_next


@attrs.frozen
class Withdrawal:
    """A command that its sender took back."""

    run: RunId
    command: int


Record: TypeAlias = Claim | Command | Withdrawal | Annotation
"""What happens to a run beside its rows."""


@attrs.define(kw_only=True)
class IndexedRun:
    """What is known of one run. `rows[n]` is the row with sequence number n."""

    run: RunId
    family: RunId
    workflow: str
    fence: Fence
    owner: str | None
    rows: list[Row] = attrs.field(factory=list)
    commands: dict[int, Command] = attrs.field(factory=dict)
    last_command: int = 0
    annotations: dict[tuple[int, port.AnnotationKind], Annotation] = attrs.field(factory=dict)

    @property
    def head(self) -> Row:
        return self.rows[-1]

    def nearest(self, seq: int) -> str:
        """The kept snapshots around a pruned one, for a message; empty for one that is not pruned."""
        if not self.rows[seq].pruned:
            return ""
        kept = [row.seq for row in self.rows if not row.pruned]
        around = [s for s in kept if s < seq][-1:] + [s for s in kept if s > seq][:1]
        return " and ".join(f"{self.run}@{s}" for s in around) or "none"

    def append(self, row: Row, consumed: Iterable[int]) -> None:
        """Enter the next row, and that it consumed these commands."""
        self.rows.append(row)
        for id in consumed:
            self.commands.pop(id, None)

    def enter(self, record: Record) -> None:
        """Enter anything but a row. An annotation with an empty body removes."""
        match record:
            case Claim():
                self.fence, self.owner = record.fence, record.owner
            case Command():
                self.commands[record.id] = record
                self.last_command = max(self.last_command, record.id)
            case Withdrawal():
                self.commands.pop(record.command, None)
            case Annotation(body=b""):
                self.annotations.pop((record.seq, record.kind), None)
            case Annotation():
                self.annotations[record.seq, record.kind] = record


class RunIndex:
    """Runs, live claims and the commit counter."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.runs: dict[RunId, IndexedRun] = {}
        self.claims: dict[RunId, Claim] = {}
        self.last_no = 0

    def require(self, run: RunId) -> IndexedRun:
        """The run; raises `UnknownRun` when it does not exist."""
        if run not in self.runs:
            raise errors.UnknownRun(run=run, store=self.place, hint="")
        return self.runs[run]

    def has_snapshot(self, run: RunId, seq: int) -> bool:
        return run in self.runs and 0 <= seq < len(self.runs[run].rows)

    def refuse_owned(self, run: RunId) -> None:
        """Raise `RunOwned` when somebody holds the run."""
        if run in self.claims:
            raise errors.RunOwned(run=run, owner=self.claims[run].owner)

    def owner(self, run: RunId) -> str | None:
        """Who claimed a run last, which may not have begun yet."""
        known = self.runs.get(run) or self.claims.get(run)
        return known.owner if known else None

    def judge(self, commit: Commit, there: Callable[[Digest], bool]) -> int | OrchestraError | None:
        """The old number of a repeated commit, the error of a refused one, or None: append it."""
        entry = self.runs.get(commit.row.run)
        if entry is None:
            refused = refuse_first(commit)
        elif entry.head.digest == commit.row.digest:
            return entry.head.no
        else:
            refused = refuse_next(commit, entry.fence, entry.head.digest, len(entry.rows) - 1)
        commands = entry.commands if entry else {}
        return refused or refuse_content(commit, self._nearest, there, commands.__contains__)

    def _nearest(self, run: RunId, seq: int) -> str:
        if not self.has_snapshot(run, seq):
            raise LookupError
        return self.runs[run].nearest(seq)

    def append(self, commit: Commit, row: Row) -> None:
        """Enter a commit that was not refused; `row` is its row as this store keeps it, numbered."""
        assert row.no > self.last_no, "BUG: commit numbers only grow"
        if row.run not in self.runs:
            self.runs[row.run] = IndexedRun(
                run=row.run, family=commit.family, workflow=commit.workflow,
                fence=commit.fence, owner=self.owner(row.run),
            )  # fmt: skip
        entry = self.runs[row.run]
        assert row.seq == len(entry.rows), "BUG: sequence numbers have no gaps"
        entry.append(row, commit.consumed)
        self.last_no = row.no

    def run_row(self, entry: IndexedRun) -> RunRow:
        head = entry.head
        return RunRow(
            run=entry.run, family=entry.family, workflow=entry.workflow, status=head.status, phase=head.phase,
            head=head.seq, digest=head.digest, created_at=entry.rows[0].at, updated_at=head.at,
            fence=entry.fence, owner=entry.owner, owned=entry.run in self.claims,
        )  # fmt: skip

    def list_rows(self, query: RowQuery) -> list[Row]:
        """Rows as they are kept here, in the order that was asked for."""
        if query.run is not None:
            entries = [self.runs[query.run]] if query.run in self.runs else []
        else:
            entries = sorted(self.runs.values(), key=lambda entry: entry.run, reverse=query.newest_first)
        parts = [_span(entry, query) for entry in entries]
        rows: Iterable[Row] = chain.from_iterable(parts)
        if query.after_no is not None:
            rows = heapq.merge(*parts, key=lambda row: row.no, reverse=query.newest_first)
        return list(islice((row for row in rows if _row_fits(row, query)), query.limit))


class IndexedStore(port.Store):
    """The methods of a store that need little but its index."""

    def __init__(self, place: str, now: Callable[[], Instant]) -> None:
        self.place = place
        self._now = now
        # Reentrant, because what `sweep` calls back may read.
        self._lock = threading.RLock()
        self._closed = False
        self._index = RunIndex(place)

    @contextmanager
    def _open(self, run: RunId | None = None, needed: int = 0) -> Iterator[RunIndex]:
        """The index, for this thread alone; raises `StoreClosed`, and `Damaged` when `run` cannot be read."""
        with self._lock:
            if self._closed:
                raise errors.StoreClosed(place=self.place)
            yield self._index

    def _record(self, record: Record) -> None:
        """Make durable what the index shows next."""

    @abstractmethod
    def _remove_patches(self, run: RunId, seqs: list[int]) -> None:
        """Prune these rows, which can be."""

    @abstractmethod
    def _remove_objects(self, dead: Collection[Digest], older_than: Instant) -> int:
        """Remove those objects that were last written before a moment; returns how many."""

    def _enter(self, entry: IndexedRun, record: Record) -> None:
        self._record(record)
        entry.enter(record)

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        with self._open(run) as index:
            index.refuse_owned(run)
            if new and run in index.runs:
                raise errors.RunExists(run=run)
            claim = Claim(run=run, fence=Fence(1 if new else index.require(run).fence + 1), owner=owner)
            if not new:
                self._enter(index.runs[run], claim)
            index.claims[run] = claim
            return claim

    def release(self, claim: Claim) -> None:
        with self._open() as index:
            # By identity: a claim on a run that is not there yet equals the next one of the same owner.
            if index.claims.get(claim.run) is claim:
                del index.claims[claim.run]

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        with self._open(run, len(body)) as index:
            entry = index.require(run)
            self._enter(entry, Command(id=entry.last_command + 1, run=run, at=at, body=bytes(body)))
            return entry.last_command

    def commands(self, run: RunId) -> list[Command]:
        with self._open(run) as index:
            return list(index.runs[run].commands.values()) if run in index.runs else []

    def withdraw(self, run: RunId, command: int) -> bool:
        with self._open(run) as index:
            waits = run in index.runs and command in index.runs[run].commands
            if waits:
                self._enter(index.runs[run], Withdrawal(run, command))
            return waits

    def annotate(self, annotation: Annotation) -> None:
        run, seq = annotation.run, annotation.seq
        with self._open(run, len(annotation.body)) as index:
            if not index.has_snapshot(run, seq):
                raise errors.UnknownSnapshot(run=run, reference=seq, reason="there is no such snapshot")
            self._enter(index.runs[run], annotation)

    def annotations(self, run: RunId) -> list[Annotation]:
        with self._open(run) as index:
            noted = index.runs[run].annotations if run in index.runs else {}
            return [noted[key] for key in sorted(noted)]

    def run(self, run: RunId) -> RunRow | None:
        with self._open(run) as index:
            return index.run_row(index.runs[run]) if run in index.runs else None

    def runs(self, query: port.RunQuery) -> list[RunRow]:
        with self._open() as index:
            found = [entry for entry in index.runs.values() if _run_fits(entry, query)]
            found.sort(key=lambda entry: (entry.rows[0].at, entry.run), reverse=True)
            return [index.run_row(entry) for entry in found[query.offset : query.offset + query.limit]]

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        with self._open() as index:
            rows = (row for entry in index.runs.values() for row in entry.rows if low <= row.digest <= high)
            found = heapq.nsmallest(limit, rows, key=lambda row: (row.digest, row.no))
            return [strip_content(row) for row in found]

    def last_no(self) -> int:
        with self._open() as index:
            return index.last_no

    def prune(self, run: RunId, seqs: Collection[int], *, spared: port.SparedRows = spare_nothing) -> int:
        with self._open(run) as index:
            rows = index.runs[run].rows[:-1] if run in index.runs else []
            asked = set(seqs).difference(spared())
            doomed = [row.seq for row in rows if row.seq in asked and not row.pruned]
            if doomed:
                self._remove_patches(run, doomed)
            return len(doomed)

    def sweep(
        self, dead: Collection[Digest], *, since: int, older_than: Instant, spared: port.SparedObjects
    ) -> int:
        with self._open():
            kept = set(spared(self.rows(RowQuery(after_no=since))))
            return self._remove_objects(set(dead) - kept, older_than)

    def compact(self) -> None:
        with self._open():
            pass  # pruning and sweeping give space back at once

    def _stats(self, *, row_bytes: int, file_bytes: int) -> port.StoreStats:
        rows = [row for entry in self._index.runs.values() for row in entry.rows]
        sizes = [info.size for info in self.objects()]
        return port.StoreStats(
            runs=len(self._index.runs), rows=len(rows), pruned=sum(row.pruned for row in rows),
            objects=len(sizes), object_bytes=sum(sizes), row_bytes=row_bytes, file_bytes=file_bytes,
        )  # fmt: skip


def strip_content(row: Row) -> Row:
    """The row without header and patch."""
    return attrs.evolve(row, header=b"", patch=None)


def _run_fits(entry: IndexedRun, query: port.RunQuery) -> bool:
    return (
        (not query.status or entry.head.status in query.status)
        and (query.workflow is None or entry.workflow == query.workflow)
        and (query.family is None or entry.family == query.family)
        and (query.contains is None or query.contains in entry.run)
    )


def _span(entry: IndexedRun, query: RowQuery) -> Iterator[Row]:
    """The run's rows between the numbers asked for. Commit numbers grow along a run, so both cut."""
    low = max(query.first or 0, 0)
    if query.after_no is not None:
        low = max(low, bisect_right(entry.rows, query.after_no, key=lambda row: row.no))
    high = len(entry.rows) if query.last is None else min(query.last + 1, len(entry.rows))
    span = range(low, high)
    return (entry.rows[seq] for seq in (reversed(span) if query.newest_first else span))


def _row_fits(row: Row, query: RowQuery) -> bool:
    return (
        (not query.triggers or any(trigger in row.triggers for trigger in query.triggers))
        and (query.phase is None or row.phase == query.phase)
        and (query.agent is None or query.agent in row.agents)
        and (not query.status or row.status in query.status)
        and (query.since is None or row.at >= query.since)
        and (query.until is None or row.at <= query.until)
        and (query.marked is None or row.marked == query.marked)
        and (query.sealed is None or (row.sealed_at == row.seq) == query.sealed)
    )
