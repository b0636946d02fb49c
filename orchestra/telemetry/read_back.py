"""Reading telemetry files back: what the snapshots of runs took, as their own figures say."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from orchestra.ids import RunId
from orchestra.limits import TELEMETRY_READ_BYTES
from orchestra.telemetry import names
from orchestra.telemetry.metrics import SECONDS_BOUNDS, Histogram
from orchestra.telemetry.records import Distribution

_METRICS: Final = b'{"resourceMetrics"'
"""How a line of metrics begins; there are more and longer ones of spans between them."""


def write_durations(outputs: Path, runs: Iterable[RunId]) -> Distribution | None:
    """How long saving the snapshots of these runs took; None when no file says."""
    found = Histogram(SECONDS_BOUNDS)
    for run in runs:
        for metric in _metrics(outputs / run / names.FOLDER / names.FILE):
            if metric.get("name") == names.WRITE_DURATION:
                for point in metric["histogram"]["dataPoints"]:
                    found.add(_distribution(point))
    held = found.frozen()
    return held if held.count else None


def _metrics(file: Path) -> Iterator[dict[str, Any]]:
    """The metrics of a file; lines that were torn or written by somebody else are passed over."""
    try:
        with file.open("rb") as held:
            content = held.read(TELEMETRY_READ_BYTES)
    except OSError:
        return
    for line in content.splitlines():
        if not line.startswith(_METRICS):
            continue
        try:
            told = json.loads(line)
            for resource in told["resourceMetrics"]:
                for scope in resource["scopeMetrics"]:
                    yield from scope["metrics"]
        except (ValueError, KeyError, TypeError):
            continue


def _distribution(point: dict[str, Any]) -> Distribution:
    """A point on our own bounds; files leave out the empty buckets at both ends."""
    counts = [0] * (len(SECONDS_BOUNDS) + 1)
    bounds = [float(each) for each in point["explicitBounds"]]
    for place, amount in enumerate(point["bucketCounts"]):
        here = bisect_left(SECONDS_BOUNDS, bounds[place]) if place < len(bounds) else len(SECONDS_BOUNDS)
        counts[here] += int(amount)
    return Distribution(
        bounds=SECONDS_BOUNDS,
        counts=tuple(counts),
        total=float(point["sum"]),
        least=float(point["min"]),
        most=float(point["max"]),
    )
