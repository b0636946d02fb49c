"""The book of a store whose columns are all in memory: claims, heads, queries and the judgement of commits.

The `files` store keeps the contents on disk beside it, the `memory` store keeps them in the rows themselves.
The book does no locking and no I/O: whoever owns it does. It changes only through calls that cannot fail
half-way, after everything that can be refused was refused.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice

import attrs

from orchestra.errors import (
    MissingObject,
    OrchestraError,
    PrunedSnapshot,
    RunExists,
    RunOwned,
    UnknownRun,
    UnknownSnapshot,
)
from orchestra.ids import Digest, Fence, RunId
from orchestra.ports.store import (
    Annotation,
    AnnotationKind,
    Claim,
    Command,
    Commit,
    Row,
    RowQuery,
    RunQuery,
    RunRow,
)
from orchestra.stores.commit_rules import refuse_first, refuse_gone, refuse_next


@attrs.define(kw_only=True)
class RunBook:
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
        """The newest row."""
        return self.rows[-1]

    def nearest(self, seq: int) -> str:
        """The kept snapshots around a pruned one, for a message."""
        kept = [row.seq for row in self.rows if not row.pruned]
        around = [s for s in kept if s < seq][-1:] + [s for s in kept if s > seq][:1]
        return " and ".join(f"{self.run}@{s}" for s in around) or "none"

    def add_command(self, command: Command) -> None:
        """Keep a command until it is consumed."""
        self.commands[command.id] = command
        self.last_command = max(self.last_command, command.id)

    def set_annotation(self, annotation: Annotation) -> None:
        """Set, replace or, with an empty body, remove."""
        key = (annotation.seq, annotation.kind)
        if annotation.body:
            self.annotations[key] = annotation
        else:
            self.annotations.pop(key, None)


class Book:
    """Runs, live claims and the commit counter."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.runs: dict[RunId, RunBook] = {}
        self.claims: dict[RunId, Claim] = {}
        self.last_no = 0

    def known(self, run: RunId) -> RunBook:
        """The run, which must exist."""
        book = self.runs.get(run)
        if book is None:
            raise UnknownRun(run=run, store=self.place, hint="")
        return book

    # --- claims

    def may_claim(self, run: RunId, owner: str, *, new: bool) -> Claim:
        """The claim that `owner` would get, not yet registered."""
        self.refuse_owned(run)
        if not new:
            return Claim(run=run, fence=Fence(self.known(run).fence + 1), owner=owner)
        if run in self.runs:
            raise RunExists(run=run)
        return Claim(run=run, fence=Fence(1), owner=owner)

    def register(self, claim: Claim) -> None:
        """Make a claim the live one; every earlier claim of the run is void from now on."""
        self.claims[claim.run] = claim
        book = self.runs.get(claim.run)
        if book is not None:
            book.fence, book.owner = claim.fence, claim.owner

    def release(self, claim: Claim) -> None:
        """Forget a claim, if it is still the live one."""
        # By identity: a claim on a run that is not there yet equals the next one of the same owner.
        if self.claims.get(claim.run) is claim:
            del self.claims[claim.run]

    def refuse_owned(self, run: RunId) -> None:
        """Raise when somebody holds the run."""
        holder = self.claims.get(run)
        if holder is not None:
            raise RunOwned(run=run, owner=holder.owner)

    def owner(self, run: RunId) -> str | None:
        """Who claimed a run last, which may not have begun yet."""
        if run in self.runs:
            return self.runs[run].owner
        return self.claims[run].owner if run in self.claims else None

    # --- commits

    def judge(self, commit: Commit, there: Callable[[Digest], bool]) -> int | OrchestraError | None:
        """The old number of a repeated commit, the error of a refused one, or None: append it."""
        book = self.runs.get(commit.row.run)
        if book is not None and book.head.digest == commit.row.digest:
            return book.head.no
        refused = (
            refuse_first(commit)
            if book is None
            else refuse_next(commit, book.run, book.fence, book.head.digest, len(book.rows) - 1)
        )
        refused = refused or self._refuse_whole(commit) or _refuse_missing(commit, there)
        if refused is None and commit.consumed:
            refused = refuse_gone(commit, lambda id: book is not None and id in book.commands)
        return refused

    def _refuse_whole(self, commit: Commit) -> OrchestraError | None:
        if commit.whole is None:
            return None
        run, seq = commit.whole
        book = self.runs.get(run)
        if book is None or not 0 <= seq < len(book.rows):
            return UnknownSnapshot(run=run, reference=seq, reason="it was deleted, or never was")
        if book.rows[seq].pruned:
            return PrunedSnapshot(run=run, seq=seq, nearest=book.nearest(seq))
        return None

    def append(self, commit: Commit, row: Row) -> None:
        """Enter a judged commit; `row` is its row as this store keeps it, numbered."""
        assert row.no > self.last_no, "BUG: commit numbers only grow"
        book = self.runs.get(row.run)
        if book is None:
            book = self.runs[row.run] = RunBook(
                run=row.run,
                family=commit.family,
                workflow=commit.workflow,
                fence=commit.fence,
                owner=self.owner(row.run),
            )
        assert row.seq == len(book.rows), "BUG: sequence numbers have no gaps"
        book.rows.append(row)
        for id in commit.consumed:
            book.commands.pop(id, None)
        self.last_no = row.no

    # --- reading

    def run_row(self, book: RunBook) -> RunRow:
        """A run as readers see it."""
        head = book.head
        return RunRow(
            run=book.run,
            family=book.family,
            workflow=book.workflow,
            status=head.status,
            phase=head.phase,
            head=head.seq,
            digest=head.digest,
            fence=book.fence,
            owner=book.owner,
            owned=book.run in self.claims,
            created_at=book.rows[0].at,
            updated_at=head.at,
        )

    def list_runs(self, query: RunQuery) -> list[RunRow]:
        """Runs, newest first."""
        found = [book for book in self.runs.values() if _run_fits(book, query)]
        found.sort(key=lambda book: (book.rows[0].at, book.run), reverse=True)
        return [self.run_row(book) for book in found[query.offset : query.offset + query.limit]]

    def list_rows(self, query: RowQuery) -> list[Row]:
        """Rows as they are kept here, in the order that was asked for."""
        if query.run is not None:
            books = [self.runs[query.run]] if query.run in self.runs else []
        else:
            books = sorted(self.runs.values(), key=lambda book: book.run, reverse=query.newest_first)
        parts = [_span(book, query) for book in books]
        ordered: Iterable[Row]
        if query.after_no is None:
            ordered = chain.from_iterable(parts)
        else:
            ordered = heapq.merge(*parts, key=lambda row: row.no, reverse=query.newest_first)
        return list(islice((row for row in ordered if _row_fits(row, query)), query.limit))

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        """Rows by digest, both ends included, without contents."""
        rows = (row for book in self.runs.values() for row in book.rows if low <= row.digest <= high)
        return [columns(row) for row in heapq.nsmallest(limit, rows, key=lambda row: (row.digest, row.no))]

    # --- changes outside commits

    def annotatable(self, annotation: Annotation) -> RunBook:
        """The run whose snapshot is to be annotated."""
        book = self.runs.get(annotation.run)
        if book is None or not 0 <= annotation.seq < len(book.rows):
            reason = "there is no such snapshot"
            raise UnknownSnapshot(run=annotation.run, reference=annotation.seq, reason=reason)
        return book

    def prunable(self, run: RunId, seqs: Collection[int]) -> list[int]:
        """Those of `seqs` that exist, still have their patch and are not the head."""
        rows = self.runs[run].rows if run in self.runs else []
        return [seq for seq in sorted(set(seqs)) if 0 <= seq < len(rows) - 1 and not rows[seq].pruned]

    def commands(self, run: RunId) -> list[Command]:
        """Waiting commands, oldest first."""
        book = self.runs.get(run)
        return [book.commands[id] for id in sorted(book.commands)] if book else []

    def withdraw(self, run: RunId, command: int) -> bool:
        """Forget a command; whether it was there."""
        book = self.runs.get(run)
        return book is not None and book.commands.pop(command, None) is not None

    def annotations(self, run: RunId) -> list[Annotation]:
        """Annotations by sequence number, then kind."""
        book = self.runs.get(run)
        return [book.annotations[key] for key in sorted(book.annotations)] if book else []


def columns(row: Row) -> Row:
    """The row without its contents."""
    return attrs.evolve(row, header=b"", patch=None)


def _refuse_missing(commit: Commit, there: Callable[[Digest], bool]) -> OrchestraError | None:
    missing = next((digest for digest in commit.requires if not there(digest)), None)
    return None if missing is None else MissingObject(what=f"object {missing.hex()[:16]}")


def _run_fits(book: RunBook, query: RunQuery) -> bool:
    return (
        (not query.status or book.head.status in query.status)
        and (query.workflow is None or book.workflow == query.workflow)
        and (query.family is None or book.family == query.family)
        and (query.contains is None or query.contains in book.run)
    )


def _span(book: RunBook, query: RowQuery) -> Iterator[Row]:
    """The run's rows between the numbers asked for. Commit numbers grow along a run, so both cut."""
    low = max(query.first or 0, 0)
    if query.after_no is not None:
        low = max(low, bisect_right(book.rows, query.after_no, key=lambda row: row.no))
    high = len(book.rows) if query.last is None else min(query.last + 1, len(book.rows))
    span = range(low, high)
    return (book.rows[seq] for seq in (reversed(span) if query.newest_first else span))


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
