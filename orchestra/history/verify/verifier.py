"""Verify every digest, link and reference of a run or a store, without writing.

A verification goes on after a problem. Rows are read page by page and each object is proved once, so a large
store takes time but not memory.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.verify.ledger import ObjectLedger, reason_of
from orchestra.history.verify.report import Finding, RunReport, Severity, SnapshotSpan, StoreReport
from orchestra.history.verify.run import RunResult, check_run
from orchestra.ids import RunId
from orchestra.limits import PAGE_ROWS
from orchestra.ports.store import RunQuery, Store

__all__ = [
    "Finding",
    "Progress",
    "RunReport",
    "Severity",
    "SnapshotSpan",
    "StoreReport",
    "verify_run",
    "verify_store",
]

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many rows were verified, and how many there are (0 when that is not known)."""

_UNLISTED_RUNS: Final = 1_000
"""After so many entries in a row that cannot be listed, the rest is given up."""


def verify_run(archive: Archive, run: RunId, *, progress: Progress | None = None) -> RunReport:
    """Verify one run and every object it needs; raises `UnknownRun`."""
    try:
        total = archive.run(run).head + 1
    except DamageError:
        total = 0
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


class _StoreCheck:
    """One look at a store."""

    def __init__(self, archive: Archive, progress: Progress | None) -> None:
        self._archive, self._store = archive, archive.store
        self._ledger = ObjectLedger(archive.store, archive.framer)
        self._counter = _Counter(progress, _row_count(archive.store))
        self._findings: list[Finding] = []
        self._results: list[RunResult] = []
        self._orphans = 0

    def check(self) -> StoreReport:
        before = self._last_no()
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
                what = f"{found.what} {found.where}"
                yield Finding(severity="damage", what=what, reason=found.reason)
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
                    self._findings.append(Finding(severity="damage", what=what, reason=why, digest=digest))
        except DamageError as error:
            self._found("the list of objects", error)

    def _check_count(self, before: int | None) -> None:
        """Rows that belong to no run cannot be reached through one; they show in the count."""
        rows, listed = _row_count(self._store), sum(result.bare.rows for result in self._results)
        if before is not None and before == self._last_no() and rows > listed and not self._findings:
            reason = f"{rows - listed} rows belong to no run"
            self._findings.append(Finding(severity="damage", what=self._store.place, reason=reason))

    def _last_no(self) -> int | None:
        try:
            return self._store.last_no()
        except DamageError:
            return None

    def _found(self, what: str, error: DamageError) -> None:
        named = str(error.data.get("what", what))
        finding = Finding(severity="damage", what=named, reason=reason_of(error))
        if finding not in self._findings:
            self._findings.append(finding)


def _of_run(objects: list[Finding], run: RunId) -> list[Finding]:
    return [found for found in objects if any(span.run == run for span in found.spans)]


def _row_count(store: Store) -> int:
    try:
        return store.stats().rows
    except DamageError:
        return 0


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
