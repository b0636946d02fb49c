"""Verify every digest, link and reference of a run or a store, without writing.

A verification goes on after a problem. Rows are read page by page and each object is proved once, so a large
store takes time but not memory.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias

import attrs

from orchestra.errors import DamageError
from orchestra.history.annotations import open_annotation
from orchestra.history.archive import Archive, if_whole
from orchestra.history.pages import Broken, Pages
from orchestra.history.verify.chain import ChainVerifier
from orchestra.history.verify.ledger import ObjectLedger, reason_of
from orchestra.history.verify.replay import read_whole
from orchestra.history.verify.report import Case, Finding, RunReport, StoreReport
from orchestra.ids import RunId
from orchestra.limits import PAGE_ROWS
from orchestra.model.snapshot import Header
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow, Store

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many rows were verified, and how many there are (0 when that is not known)."""

Tell: TypeAlias = Callable[[int], None]
"""Told how many more rows were verified."""

_PAGE: Final = 128
_ATTEMPTS: Final = 3
_UNLISTED_RUNS: Final = 1_000
"""After so many entries in a row that cannot be listed, the rest is given up."""


def verify_run(archive: Archive, run: RunId, *, progress: Progress | None = None) -> RunReport:
    """Verify one run and every object it needs; raises `UnknownRun`."""
    total = if_whole(lambda: archive.run(run).head + 1, 0)
    ledger = ObjectLedger(archive.store, archive.framer)
    result = check_run(archive, ledger, run, _Counter(progress, total).add)
    ledger.learn_named()
    return result.report(ledger.findings())


def verify_store(archive: Archive, *, progress: Progress | None = None) -> StoreReport:
    """Verify everything a store holds."""
    return _StoreCheck(archive, progress).check()


class _Counter:
    """Counts verified rows and reports progress."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, rows: int) -> None:
        self._done += rows
        if self._progress is not None:
            self._progress(self._done, self._total)


# --- one run


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
        chain, newest, row = self._chain, self._newest(), self._run_row()
        if row is None and newest is None:
            return self._result()
        self._last = self._end(row, newest)
        for found in Pages(self._store, RowQuery(run=self._run), self._last, page=_PAGE).stretches():
            if isinstance(found, Broken):
                chain.skip(found)
                self._tell(1)
            else:
                chain.take(found)
                self._tell(len(found))
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

    def _wrong(self, reason: str, seq: int | None = None) -> Case:
        return self._chain.add(f"run {self._run}", reason, seq)

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
            self._wrong(reason_of(error))
        try:
            listed = self._store.runs(RunQuery(contains=self._run))
        except DamageError:
            return None
        return next((row for row in listed if row.run == self._run), None)

    def _end(self, row: RunRow | None, newest: Row | None) -> int:
        """The sequence number to verify up to: the head, unless the rows end earlier or later."""
        if newest is None and not self._is_blind:
            self._wrong("it has no snapshots")
            return -1
        if row is None or newest is None:
            return newest.seq if newest is not None else row.head if row is not None else -1
        if row.head < newest.seq:
            self._wrong(f"there are snapshots up to {newest.seq} beyond its head {row.head}", newest.seq)
            return newest.seq
        again = self._newest() or newest  # the head moves while we look
        if row.head > again.seq:
            self._wrong(f"its head is {row.head}, but its newest snapshot is {again.seq}", again.seq)
        return min(row.head, again.seq)

    # --- what the run says of itself

    def _check_head(self, row: RunRow) -> None:
        first, newest = self._chain.first, self._chain.newest
        if newest is None or newest.row.seq != row.head:
            return  # named already
        wrong = _head_disagreement(row, newest.row, newest.header)
        if wrong is None and first is not None and first.row.seq == 0 and first.row.at != row.created_at:
            wrong = "time of creation"
        if wrong is not None:
            self._wrong(f"its {wrong} is not the one its snapshots say", row.head)

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
            self._wrong("its family or workflow is not the one its state says", self._last)

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
            self._wrong(reason, 0).severity = "note"
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


# --- a store


class _StoreCheck:
    """One look at a store."""

    def __init__(self, archive: Archive, progress: Progress | None) -> None:
        self._archive, self._store = archive, archive.store
        self._ledger = ObjectLedger(archive.store, archive.framer)
        self._counter = _Counter(progress, self._row_count())
        self._findings: list[Finding] = []
        self._results: list[RunResult] = []
        self._orphans = 0

    def check(self) -> StoreReport:
        before = if_whole(self._store.last_no, None)
        problems = list(self._problems())
        for run in self._runs():
            self._results.append(check_run(self._archive, self._ledger, run, self._counter.add))
        self._ledger.learn_named()
        self._check_orphans()
        self._check_count(before)
        return self._report(problems)

    def _report(self, problems: list[Finding]) -> StoreReport:
        objects = self._ledger.findings()
        runs = tuple(result.report(_of_run(objects, result.bare.run)) for result in self._results)
        own = [case.finding() for result in self._results for case in result.cases]
        findings = [*own, *objects]
        findings[:0] = _unsaid(self._findings, findings)
        findings[:0] = _unsaid(problems, findings)
        return StoreReport(
            place=self._store.place,
            runs=runs,
            findings=tuple(findings),
            rows=sum(report.rows for report in runs),
            pruned=sum(report.pruned for report in runs),
            objects=self._ledger.present,
            orphans=self._orphans,
        )

    def _problems(self) -> Iterator[Finding]:
        """What the store finds wrong with itself."""
        try:
            for found in self._store.check():
                yield Finding(what=f"{found.what} {found.where}", reason=found.reason)
        except DamageError as error:
            self._found("the store's own check", error)

    def _runs(self) -> list[RunId]:
        """Every run, also when some of them cannot be listed."""
        found: dict[RunId, None] = {}
        try:
            while page := self._store.runs(RunQuery(limit=PAGE_ROWS, offset=len(found))):
                known = len(found)
                found.update((row.run, None) for row in page)
                if len(found) == known:
                    break
        except DamageError:
            return self._runs_one_by_one()
        return list(found)

    def _runs_one_by_one(self) -> list[RunId]:
        found: dict[RunId, None] = {}
        offset = failed = 0
        while failed < _UNLISTED_RUNS:
            try:
                page = self._store.runs(RunQuery(limit=1, offset=offset))
            except DamageError as error:
                failed += 1
                self._found("a run", error)
            else:
                if not page:
                    break
                failed = 0
                found[page[0].run] = None
            offset += 1
        return list(found)

    def _check_orphans(self) -> None:
        """Objects that no snapshot needs are no damage, but a later snapshot may need one that is."""
        try:
            loose = (info.digest for info in self._store.objects() if info.digest not in self._ledger.entries)
            while batch := list(islice(loose, PAGE_ROWS)):
                self._orphans += len(batch)
                for digest, reason in self._ledger.find_damage(batch):
                    what, why = f"object {digest.hex()[:16]}", f"{reason}; no snapshot needs it now"
                    self._findings.append(Finding(what=what, reason=why, digest=digest))
        except DamageError as error:
            self._found("the list of objects", error)

    def _row_count(self) -> int:
        return if_whole(lambda: self._store.stats().rows, 0)

    def _check_count(self, before: int | None) -> None:
        """Rows that belong to no run cannot be reached through one; they show in the count."""
        rows, listed = self._row_count(), sum(result.bare.rows for result in self._results)
        still = before is not None and before == if_whole(self._store.last_no, None)
        if still and rows > listed and not self._findings:
            reason = f"{rows - listed} rows belong to no run"
            self._findings.append(Finding(what=self._store.place, reason=reason))

    def _found(self, what: str, error: DamageError) -> None:
        named = str(error.data.get("what", what))
        finding = Finding(what=named, reason=reason_of(error))
        if finding not in self._findings:
            self._findings.append(finding)


def _of_run(objects: list[Finding], run: RunId) -> list[Finding]:
    return [found for found in objects if any(span.run == run for span in found.spans)]


def _unsaid(more: list[Finding], said: list[Finding]) -> list[Finding]:
    """Findings about things that no other damage names."""
    known = {name for finding in said if finding.is_damage for name in _names(finding)}
    return [finding for finding in more if known.isdisjoint(_names(finding))]


def _names(finding: Finding) -> Iterator[str]:
    """How a store's own check may call the same thing."""
    yield finding.what
    if finding.run is not None and finding.seq is not None:
        yield f"row {finding.run}@{finding.seq}"
    if finding.digest is not None:
        yield f"object {finding.digest.hex()}"
