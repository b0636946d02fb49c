"""The index of runs that the `memory` and `files` stores keep in memory, and the methods they share.

The `files` store keeps the contents of rows on disk, the `memory` store keeps them in the rows themselves. An
index does no locking and no I/O. It changes only through calls that cannot fail half-way, after everything
that can be refused was refused.
"""

import heapq
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain, islice

import attrs

from orchestra import errors
from orchestra.errors import OrchestraError
from orchestra.ids import Digest, Fence, Instant, RunId
from orchestra.ports import store as port
from orchestra.ports.store import Annotation, AnnotationKind, Claim, Command, Commit, Row, RowQuery, RunRow
from orchestra.stores.commit_rules import refuse_first, refuse_gone, refuse_next


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
    annotations: dict[tuple[int, AnnotationKind], Annotation] = attrs.field(factory=dict)

    @property
    def head(self) -> Row:
        return self.rows[-1]

    def nearest(self, seq: int) -> str:
        """The kept snapshots around a pruned one, for a message."""
        kept = [row.seq for row in self.rows if not row.pruned]
        around = [s for s in kept if s < seq][-1:] + [s for s in kept if s > seq][:1]
        return " and ".join(f"{self.run}@{s}" for s in around) or "none"

    def add_command(self, command: Command) -> None:
        self.commands[command.id] = command
        self.last_command = max(self.last_command, command.id)

    def set_annotation(self, annotation: Annotation) -> None:
        """Set, replace or, with an empty body, remove."""
        key = (annotation.seq, annotation.kind)
        if annotation.body:
            self.annotations[key] = annotation
        else:
            self.annotations.pop(key, None)


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

    # --- claims

    def next_claim(self, run: RunId, owner: str, *, new: bool) -> Claim:
        """The claim that `owner` would get, not yet registered."""
        self.refuse_owned(run)
        if not new:
            return Claim(run=run, fence=Fence(self.require(run).fence + 1), owner=owner)
        if run in self.runs:
            raise errors.RunExists(run=run)
        return Claim(run=run, fence=Fence(1), owner=owner)

    def register(self, claim: Claim) -> None:
        """Make a claim the live one; every earlier claim of the run is void from now on."""
        self.claims[claim.run] = claim
        if claim.run in self.runs:
            self.runs[claim.run].fence, self.runs[claim.run].owner = claim.fence, claim.owner

    def refuse_owned(self, run: RunId) -> None:
        """Raise `RunOwned` when somebody holds the run."""
        if run in self.claims:
            raise errors.RunOwned(run=run, owner=self.claims[run].owner)

    def owner(self, run: RunId) -> str | None:
        """Who claimed a run last, which may not have begun yet."""
        if run in self.runs:
            return self.runs[run].owner
        return self.claims[run].owner if run in self.claims else None

    # --- commits

    def judge(self, commit: Commit, there: Callable[[Digest], bool]) -> int | OrchestraError | None:
        """The old number of a repeated commit, the error of a refused one, or None: append it."""
        entry = self.runs.get(commit.row.run)
        if entry is not None and entry.head.digest == commit.row.digest:
            return entry.head.no
        refused = (
            refuse_first(commit)
            if entry is None
            else refuse_next(commit, entry.run, entry.fence, entry.head.digest, len(entry.rows) - 1)
        )
        refused = refused or self._refuse_whole(commit) or _refuse_missing(commit, there)
        if refused is None and commit.consumed:
            refused = refuse_gone(commit, lambda id: entry is not None and id in entry.commands)
        return refused

    def _refuse_whole(self, commit: Commit) -> OrchestraError | None:
        if commit.whole is None:
            return None
        run, seq = commit.whole
        entry = self.runs.get(run)
        if entry is None or not 0 <= seq < len(entry.rows):
            return errors.UnknownSnapshot(run=run, reference=seq, reason="it was deleted, or never was")
        if entry.rows[seq].pruned:
            return errors.PrunedSnapshot(run=run, seq=seq, nearest=entry.nearest(seq))
        return None

    def append(self, commit: Commit, row: Row) -> None:
        """Enter a commit that was not refused; `row` is its row as this store keeps it, numbered."""
        assert row.no > self.last_no, "BUG: commit numbers only grow"
        entry = self.runs.get(row.run)
        if entry is None:
            family, owner = commit.family, self.owner(row.run)
            entry = IndexedRun(
                run=row.run, family=family, workflow=commit.workflow, fence=commit.fence, owner=owner
            )
            self.runs[row.run] = entry
        assert row.seq == len(entry.rows), "BUG: sequence numbers have no gaps"
        entry.rows.append(row)
        for id in commit.consumed:
            entry.commands.pop(id, None)
        self.last_no = row.no

    # --- reading

    def run_row(self, entry: IndexedRun) -> RunRow:
        head = entry.head
        return RunRow(
            run=entry.run,
            family=entry.family,
            workflow=entry.workflow,
            status=head.status,
            phase=head.phase,
            head=head.seq,
            digest=head.digest,
            fence=entry.fence,
            owner=entry.owner,
            owned=entry.run in self.claims,
            created_at=entry.rows[0].at,
            updated_at=head.at,
        )

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

    # --- changes outside commits

    def require_snapshot(self, annotation: Annotation) -> IndexedRun:
        """The run whose snapshot is to be annotated; raises `UnknownSnapshot`."""
        entry = self.runs.get(annotation.run)
        if entry is None or not 0 <= annotation.seq < len(entry.rows):
            reason = "there is no such snapshot"
            raise errors.UnknownSnapshot(run=annotation.run, reference=annotation.seq, reason=reason)
        return entry

    def rows_to_prune(self, run: RunId, seqs: Collection[int]) -> list[int]:
        """Those of `seqs` that exist, still have their patch and are not the head."""
        rows = self.runs[run].rows if run in self.runs else []
        return [seq for seq in sorted(set(seqs)) if 0 <= seq < len(rows) - 1 and not rows[seq].pruned]

    def withdraw(self, run: RunId, command: int) -> bool:
        return run in self.runs and self.runs[run].commands.pop(command, None) is not None


class IndexedStore(port.Store):
    """The methods of a store that need nothing but its index."""

    @abstractmethod
    def _open(self, run: RunId | None = None, needed: int = 0) -> AbstractContextManager[RunIndex]:
        """The index, for this thread alone; raises `StoreClosed`, and `Damaged` when `run` cannot be read."""

    @abstractmethod
    def _remove_objects(self, dead: Collection[Digest], older_than: Instant) -> int:
        """Remove those objects that were last written before a moment; returns how many."""

    def release(self, claim: Claim) -> None:
        with self._open() as index:
            # By identity: a claim on a run that is not there yet equals the next one of the same owner.
            if index.claims.get(claim.run) is claim:
                del index.claims[claim.run]

    def sweep(
        self, dead: Collection[Digest], *, since: int, older_than: Instant, spared: port.SparedObjects
    ) -> int:
        with self._open():
            kept = set(spared(self.rows(RowQuery(after_no=since))))
            return self._remove_objects(set(dead) - kept, older_than)

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

    def commands(self, run: RunId) -> list[Command]:
        with self._open(run) as index:
            return list(index.runs[run].commands.values()) if run in index.runs else []

    def annotations(self, run: RunId) -> list[Annotation]:
        with self._open(run) as index:
            noted = index.runs[run].annotations if run in index.runs else {}
            return [noted[key] for key in sorted(noted)]

    def last_no(self) -> int:
        with self._open() as index:
            return index.last_no

    def compact(self) -> None:
        with self._open():
            pass  # pruning and sweeping give space back at once

    def _stats(self, *, row_bytes: int, file_bytes: int) -> port.StoreStats:
        with self._open() as index:
            rows = [row for entry in index.runs.values() for row in entry.rows]
            sizes = [info.size for info in self.objects()]
            return port.StoreStats(
                runs=len(index.runs),
                rows=len(rows),
                pruned=sum(row.pruned for row in rows),
                objects=len(sizes),
                object_bytes=sum(sizes),
                row_bytes=row_bytes,
                file_bytes=file_bytes,
            )


def strip_content(row: Row) -> Row:
    """The row without header and patch."""
    return attrs.evolve(row, header=b"", patch=None)


def _refuse_missing(commit: Commit, there: Callable[[Digest], bool]) -> OrchestraError | None:
    missing = next((digest for digest in commit.requires if not there(digest)), None)
    return None if missing is None else errors.MissingObject(what=f"object {missing.hex()[:16]}")


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
