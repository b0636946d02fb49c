"""The overview of a store: how runs went, what they spent, and what they take up."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from orchestra.history.archive import Archive
from orchestra.history.calibration import Calibration, JudgedResult, calibrations, judged_results
from orchestra.history.glance import spent_by
from orchestra.ids import Instant, RunId, moment
from orchestra.limits import PAGE_ROWS_MAX, TELEMETRY_READ_BYTES
from orchestra.model.records import Metrics
from orchestra.ports.run_status import shown_status
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow
from orchestra.telemetry import names
from orchestra.telemetry.metrics import SECONDS_BOUNDS, Histogram, quantile

_ALL = 1 << 40
_ENDED = ("completed", "failed")
_SPENT = ("tokens_in", "tokens_out", "api_calls", "cost_micros")
_METRICS: Final = b'{"resourceMetrics"'
"""How a line of metrics begins; there are more and longer ones of spans between them."""
Progress = Callable[[int, int], None]


@attrs.frozen(kw_only=True)
class Percentiles:
    """The middle and the slow end of something measured."""

    count: int
    p50: float
    p95: float
    most: float


@attrs.frozen(kw_only=True)
class WorkflowOverview:
    """How the runs of one workflow went."""

    workflow: str
    runs: int
    statuses: dict[str, int]
    success_rate: float | None  # completed of those that completed or failed
    recovered: int  # runs that were recovered after a crash or rolled back
    recovery_rate: float | None  # completed of those recovered ones that completed or failed
    duration: Percentiles | None  # of completed runs, from beginning to end, in seconds
    tokens_in: int
    tokens_out: int
    api_calls: int
    cost_micros: int
    unreadable: int  # runs whose newest snapshot cannot be read


@attrs.frozen(kw_only=True)
class Overview:
    """How the runs of a store went and what they take up."""

    place: str
    total: WorkflowOverview
    workflows: tuple[WorkflowOverview, ...]
    snapshots: int
    snapshot_size: Percentiles | None
    write_duration: Percentiles | None  # in seconds; None when there are no telemetry files
    file_bytes: int
    added: tuple[tuple[str, int], ...]  # bytes that snapshots added, by day, oldest first
    calibration: tuple[Calibration, ...]  # of agents that said how sure they were of results that were judged


@attrs.frozen
class _Seen:
    """A run, and what it spent when that can be read."""

    row: RunRow
    metrics: Metrics | None
    status: str  # as people should see it


def overview(
    archive: Archive, outputs: Path, *, workflow: str | None = None, progress: Progress = lambda *_: None
) -> Overview:
    """Look at every run of a store, or at those of one workflow."""
    rows = archive.store.runs(RunQuery(workflow=workflow, limit=_ALL))
    seen, judged = list[_Seen](), list[JudgedResult]()
    for row in rows:
        seen.append(_Seen(row, spent_by(archive, row.run), shown_status(archive.store, row)))
        judged += judged_results(archive, row)
        progress(len(seen), len(rows))
    by_workflow: dict[str, list[_Seen]] = {}
    for each in seen:
        by_workflow.setdefault(each.row.workflow, []).append(each)
    sizes, added, known = list[int](), Counter[str](), {row.run for row in rows}
    for snapshot in _rows(archive):
        if workflow is None or snapshot.run in known:
            sizes.append(snapshot.size)
            added[_day(snapshot.at)] += snapshot.size
    written = write_durations(outputs, [row.run for row in rows])
    return Overview(
        place=archive.store.place,
        total=_workflow("", seen),
        workflows=tuple(_workflow(name, some) for name, some in sorted(by_workflow.items())),
        snapshots=len(sizes),
        snapshot_size=_percentiles(sizes),
        write_duration=_histogram_percentiles(written) if written is not None else None,
        file_bytes=archive.store.stats().file_bytes,
        added=tuple(sorted(added.items())),
        calibration=calibrations(judged),
    )


def _rows(archive: Archive) -> Iterator[Row]:
    no = 0
    while True:
        page = archive.store.rows(RowQuery(after_no=no, limit=PAGE_ROWS_MAX, content=False))
        yield from page
        if len(page) < PAGE_ROWS_MAX:
            return
        no = page[-1].no


def _day(at: Instant) -> str:
    try:
        return moment(at).strftime("%Y-%m-%d")
    except (OverflowError, ValueError):  # a time that no calendar has
        return "unknown"


def _workflow(name: str, seen: list[_Seen]) -> WorkflowOverview:
    spent = [each.metrics for each in seen if each.metrics is not None]
    recovered = [each for each in seen if (held := each.metrics) and (held.recoveries or held.rollbacks)]
    times = [each.row.updated_at - each.row.created_at for each in seen if each.row.status == "completed"]
    return WorkflowOverview(
        workflow=name,
        runs=len(seen),
        statuses=dict(sorted(Counter(each.status for each in seen).items())),
        success_rate=_share(seen),
        recovered=len(recovered),
        recovery_rate=_share(recovered),
        duration=_percentiles([time / 1e6 for time in times]),
        **{name: sum(getattr(each, name) for each in spent) for name in _SPENT},
        unreadable=len(seen) - len(spent),
    )


def _share(seen: list[_Seen]) -> float | None:
    """How many completed of those that completed or failed."""
    ended = [each for each in seen if each.row.status in _ENDED]
    return sum(each.row.status == "completed" for each in ended) / len(ended) if ended else None


def _histogram_percentiles(held: Histogram) -> Percentiles:
    return Percentiles(count=held.count, p50=quantile(held, 0.5), p95=quantile(held, 0.95), most=held.most)


def _percentiles(values: Sequence[float]) -> Percentiles | None:
    if not values:
        return None
    ordered, last = sorted(values), len(values) - 1
    p50, p95 = ordered[round(last * 0.5)], ordered[round(last * 0.95)]
    return Percentiles(count=len(ordered), p50=p50, p95=p95, most=ordered[-1])


def write_durations(outputs: Path, runs: Iterable[RunId]) -> Histogram | None:
    """How long saving the snapshots of these runs took; None when no file says."""
    found = Histogram(SECONDS_BOUNDS)
    for run in runs:
        for metric in _metrics_in(outputs / run / names.FOLDER / names.FILE):
            if metric.get("name") == names.WRITE_DURATION:
                for point in metric["histogram"]["dataPoints"]:
                    found.add(_histogram(point))
    return found if found.count else None


def _metrics_in(file: Path) -> Iterator[dict[str, Any]]:
    """The metrics of a file; lines that were torn or written by somebody else are passed over."""
    try:
        with file.open("rb") as held:
            content = held.read(TELEMETRY_READ_BYTES)
    except OSError:
        return
    for line in content.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            for resource in json.loads(line)["resourceMetrics"] if line.startswith(_METRICS) else ():
                for scope in resource["scopeMetrics"]:
                    yield from scope["metrics"]


def _histogram(point: dict[str, Any]) -> Histogram:
    """A point on our own bounds; files leave out the empty buckets at both ends."""
    counts = [0] * (len(SECONDS_BOUNDS) + 1)
    bounds = [float(each) for each in point["explicitBounds"]]
    for place, amount in enumerate(point["bucketCounts"]):
        here = bisect_left(SECONDS_BOUNDS, bounds[place]) if place < len(bounds) else len(SECONDS_BOUNDS)
        counts[here] += int(amount)
    total, least, most = float(point["sum"]), float(point["min"]), float(point["max"])
    return Histogram(SECONDS_BOUNDS, counts, total, least, most)
