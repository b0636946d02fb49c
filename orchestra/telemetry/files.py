"""Telemetry as files: one line of OTLP JSON at a time, the form that collectors read from files.

`outputs/<run>/telemetry/spans.jsonl` holds `ExportTraceServiceRequest`s, `metrics.jsonl`
`ExportMetricsServiceRequest`s.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from orchestra.ids import Instant, RunId
from orchestra.telemetry import names
from orchestra.telemetry.records import Attribute, Attributes, Distribution, Metric, Span
from orchestra.version import VERSION

_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class TelemetryFiles:
    """Appends spans and metrics to the files of their runs."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = str(outputs)
        self._resource = _resource()
        self._scope = _write({"name": names.SERVICE, "version": VERSION})

    def spans(self, run: RunId, spans: Iterable[Span]) -> None:
        """Write spans of a run down."""
        told = ",".join([_write(_span(each)) for each in spans])
        line = (
            f'{{"resourceSpans":[{{"resource":{self._resource},"scopeSpans":[{{"scope":{self._scope},'
            f'"spans":[{told}]}}]}}]}}\n'
        )
        self._append(run, names.SPANS_FILE, line)

    def metrics(self, run: RunId, metrics: Sequence[Metric]) -> None:
        """Write metrics of a run down."""
        told = ",".join([_write(_metric(each)) for each in metrics])
        line = (
            f'{{"resourceMetrics":[{{"resource":{self._resource},"scopeMetrics":[{{"scope":{self._scope},'
            f'"metrics":[{told}]}}]}}]}}\n'
        )
        self._append(run, names.METRICS_FILE, line)

    def _append(self, run: RunId, name: str, line: str) -> None:
        folder = f"{self._outputs}/{run}/{names.FOLDER}"
        try:
            held = _opened(f"{folder}/{name}")
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - paths are text here, for speed
            held = _opened(f"{folder}/{name}")
        try:
            os.write(held, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(held)


def _resource() -> str:
    about: Attributes = {"service.name": names.SERVICE, "service.version": VERSION}
    return _write({"attributes": _attributes(about)})


def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _nanoseconds(at: Instant) -> str:
    return f"{at}000"


def _span(span: Span) -> dict[str, Any]:
    told: dict[str, Any] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent is not None:
        told["parentSpanId"] = span.parent
    if span.events:
        told["events"] = [
            {"timeUnixNano": _nanoseconds(at), "name": name, "attributes": _attributes(about)}
            for name, at, about in [(each.name, each.at, each.attributes) for each in span.events]
        ]
    if span.dropped:
        told["droppedEventsCount"] = span.dropped
    if span.links:
        told["links"] = [
            {"traceId": link.trace, "spanId": link.id, "attributes": _attributes(link.attributes)}
            for link in span.links
        ]
    if span.error is not None:
        told["status"] = {"code": 2, "message": span.error}
    return told


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}


def _metric(metric: Metric) -> dict[str, Any]:
    points = [_point(metric, about, value) for about, value in metric.points]
    held: dict[str, Any] = {"dataPoints": points}
    if metric.kind != "gauge":
        held["aggregationTemporality"] = 2 if metric.cumulative else 1
    if metric.kind == "sum":
        held["isMonotonic"] = True
    return {
        "name": metric.name,
        "unit": metric.unit,
        "description": metric.description,
        metric.kind: held,
    }


def _point(metric: Metric, about: Attributes, value: float | int | Distribution) -> dict[str, Any]:
    point: dict[str, Any] = {
        "startTimeUnixNano": _nanoseconds(metric.start),
        "timeUnixNano": _nanoseconds(metric.at),
        "attributes": _attributes(about),
    }
    if isinstance(value, Distribution):
        first, last = _occupied(value.counts)
        return point | {
            "count": str(value.count),
            "sum": value.total,
            "min": value.least,
            "max": value.most,
            "bucketCounts": [str(each) for each in value.counts[first : last + 1]],
            "explicitBounds": list(value.bounds[first:last]),
        }
    return point | ({"asInt": str(value)} if isinstance(value, int) else {"asDouble": value})


def _occupied(counts: tuple[int, ...]) -> tuple[int, int]:
    """The first and last bucket to write, with an empty one on either side where there is one."""
    used = [place for place, amount in enumerate(counts) if amount] or [0]
    return max(used[0] - 1, 0), min(used[-1] + 1, len(counts) - 1)
