"""Verifying one run as a whole: its rows, its head, its origin, its annotations and what is sent to it."""

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from orchestra.errors import DamageError
from orchestra.history.annotations import open_annotation
from orchestra.history.archive import Archive
from orchestra.history.verify.chain import ChainVerifier, Entry, Unread
from orchestra.history.verify.ledger import ObjectLedger, reason_of
from orchestra.history.verify.replay import read_whole
from orchestra.history.verify.report import Case, Finding, RunReport
from orchestra.ids import RunId
from orchestra.model.snapshot import Header
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow, Store

PAGE: Final = 128
_ATTEMPTS: Final = 3

Tell = Callable[[int], None]
"""Told how many more rows were verified."""


@attrs.frozen(kw_only=True)
class RunResult:
    """What was found in one run, apart from damaged objects, which other runs may share."""

    bare: RunReport  # still without findings
    cases: list[Case]

    def report(self, objects: list[Finding]) -> RunReport:
        """The report, with the damaged objects that matter to this run."""
        return attrs.evolve(self.bare, findings=(*(case.finding() for case in self.cases), *objects))


def check_run(archive: Archive, ledger: ObjectLedger, run: RunId, tell: Tell) -> RunResult:
    """Verify one run. When it was pruned or deleted meanwhile, what seemed damage may be none: look again."""
    result = _RunCheck(archive, ledger, run, tell).check()
    for _ in range(_ATTEMPTS - 1):
        if not (result.bare.unreadable or result.cases) or not _changed(archive.store, result.bare):
            break
        ledger.forget(run)
        result = _RunCheck(archive, ledger, run, tell).check()
    return result


def _changed(store: Store, report: RunReport) -> bool:
    """Whether the run lost rows or patches since it was verified, as it may."""
    try:
        if store.run(report.run) is None:
            return True
        rows = store.rows(RowQuery(run=report.run, content=False))
    except DamageError:
        return False
    return sum(row.pruned for row in rows[: report.rows]) != report.pruned


class _RunCheck:
    """One look at a run."""

    def __init__(self, archive: Archive, ledger: ObjectLedger, run: RunId, tell: Tell) -> None:
        self._store, self._framer = archive.store, archive.framer
        self._run, self._tell = run, tell
        self._chain = ChainVerifier(archive, ledger, run)
        self._last = -1
        self._is_blind = False  # whether the store cannot say which row is the newest

    def check(self) -> RunResult:
        chain = self._chain
        newest = self._newest()
        row = self._run_row()
        if row is None and newest is None:
            return self._result()
        self._last = self._end(row, newest)
        for page in self._pages():
            chain.take(page)
            self._tell(len(page))
        chain.note_missing(self._last + 1)
        if row is not None:
            self._check_head(row)
        self._check_model(row)
        self._check_origin()
        self._check_annotations()
        return self._result()

    def _result(self) -> RunResult:
        chain = self._chain
        report = RunReport(
            run=self._run,
            rows=chain.rows,
            pruned=chain.pruned,
            head=self._last if self._last >= 0 else None,
            whole=chain.readable[-1] if chain.readable else None,
            unreadable=chain.unreadable.to_tuple(),
        )
        return RunResult(bare=report, cases=chain.cases)

    # --- which rows there are

    def _newest(self) -> Row | None:
        try:
            found = self._store.rows(RowQuery(run=self._run, newest_first=True, limit=1, content=False))
        except DamageError:
            self._is_blind = True
            return None
        return found[0] if found else None

    def _run_row(self) -> RunRow | None:
        try:
            return self._store.run(self._run)
        except DamageError as error:
            self._chain.add(f"run {self._run}", reason_of(error))
        try:
            listed = self._store.runs(RunQuery(contains=self._run))
        except DamageError:
            return None
        return next((row for row in listed if row.run == self._run), None)

    def _end(self, row: RunRow | None, newest: Row | None) -> int:
        """The sequence number to verify up to: the head, unless the rows end earlier or later."""
        if newest is None and not self._is_blind:
            self._chain.add(f"run {self._run}", "it has no snapshots")
            return -1
        if row is None or newest is None:
            return newest.seq if newest is not None else row.head if row is not None else -1
        if row.head < newest.seq:
            reason = f"there are snapshots up to {newest.seq} beyond its head {row.head}"
            self._chain.add(f"run {self._run}", reason, newest.seq)
            return newest.seq
        again = self._newest() or newest  # the head moves while we look
        if row.head > again.seq:
            reason = f"its head is {row.head}, but its newest snapshot is {again.seq}"
            self._chain.add(f"run {self._run}", reason, again.seq)
        return min(row.head, again.seq)

    def _pages(self) -> Iterator[list[Entry]]:
        for first in range(0, self._last + 1, PAGE):
            last = min(self._last, first + PAGE - 1)
            try:
                yield list(self._store.rows(RowQuery(run=self._run, first=first, last=last)))
            except DamageError:
                yield [entry for seq in range(first, last + 1) for entry in self._one(seq)]

    def _one(self, seq: int) -> list[Entry]:
        try:
            return list(self._store.rows(RowQuery(run=self._run, first=seq, last=seq)))
        except DamageError as error:
            return [Unread(seq=seq, error=error)]

    # --- what the run says of itself

    def _check_head(self, row: RunRow) -> None:
        first, newest = self._chain.first, self._chain.newest
        if newest is None or newest.row.seq != row.head:
            return  # named already
        wrong = _head_disagreement(row, newest.row, newest.header)
        if wrong is None and first is not None and first.row.seq == 0 and first.row.at != row.created_at:
            wrong = "time of creation"
        if wrong is not None:
            reason = f"its {wrong} is not the one its snapshots say"
            self._chain.add(f"run {self._run}", reason, row.head)

    def _check_model(self, row: RunRow | None) -> None:
        document = self._chain.document
        if document is None:
            return
        what = f"snapshot {self._run}@{self._last}"
        try:
            state = read_whole(document, what)
        except DamageError as error:
            self._chain.spoil_head(self._chain.add(what, reason_of(error), self._last))
            return
        # A run is listed under the name its workflow began with; a change that was accepted may rename it.
        begun_as = self._chain.begun_as or state.workflow.name
        if row is not None and (row.family, row.workflow) != (state.family, begun_as):
            reason = "its family or workflow is not the one its state says"
            self._chain.add(f"run {self._run}", reason, self._last)

    def _check_origin(self) -> None:
        """A run's first snapshot has no parent, or that which it was forked from."""
        first = self._chain.first
        if first is None or first.header is None or first.row.seq != 0:
            return
        parent = first.header.parent
        origin = next((line.what for line in first.header.events if line.kind == "forked"), None)
        if (parent is None) != (origin is None):
            self._chain.add(f"snapshot {self._run}@0", "it has a parent and is no fork, or is one without", 0)
        if parent is None or origin is None:
            return
        try:
            found = self._store.find(parent, parent, 1)
        except DamageError:
            return
        if not found:
            reason = f"its origin {origin} is not in this store; it was deleted, or left behind by an export"
            self._chain.add(f"run {self._run}", reason, 0).severity = "note"
        elif f"{found[0].run}@{found[0].seq}" != origin:
            self._chain.add(f"snapshot {self._run}@0", f"its parent is not the {origin} it names", 0)

    def _check_annotations(self) -> None:
        try:
            found = self._store.annotations(self._run)
            self._store.commands(self._run)
        except DamageError as error:
            self._chain.add(str(error.data.get("what", f"run {self._run}")), reason_of(error))
            return
        for annotation in found:
            what = f"the {annotation.kind} on {self._run}@{annotation.seq}"
            if not 0 <= annotation.seq <= self._last:
                self._chain.add(what, "there is no such snapshot", annotation.seq)
            try:
                open_annotation(annotation, self._framer)
            except DamageError as error:
                self._chain.add(what, reason_of(error), annotation.seq)


def _head_disagreement(row: RunRow, head: Row, header: Header | None) -> str | None:
    if row.digest != head.digest:
        return "head"
    if header is None:
        return None
    pairs = {
        "status": (row.status, header.status),
        "phase": (row.phase, header.phase),
        "time of change": (row.updated_at, header.at),
    }
    return next((name for name, (said, held) in pairs.items() if said != held), None)
