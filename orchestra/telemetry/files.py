"""Telemetry as files: one line of OTLP JSON at a time, the form that collectors read from files.

`outputs/<run>/telemetry/otlp.jsonl` holds `ExportTraceServiceRequest`s and `ExportMetricsServiceRequest`s, in
one file: to make another costs as much as all that is written about a small run. The lines are put together
as text: there are many spans, and building them from dictionaries takes three times as long.
"""

import json
import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import starmap
from json.encoder import encode_basestring as quoted
from math import isfinite
from pathlib import Path

from orchestra.ids import RunId
from orchestra.telemetry import names
from orchestra.telemetry.records import Attribute, Attributes, Distribution, Link, Metric, Span, SpanEvent
from orchestra.version import VERSION


class TelemetryFiles:
    """Appends spans and metrics to the files of their runs."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = str(outputs)
        about: Attributes = {"service.name": names.SERVICE, "service.version": VERSION}
        self._resource = f'"resource":{{"attributes":{_attributes(about)}}}'
        self._scope = f'"scope":{json.dumps({"name": names.SERVICE, "version": VERSION})}'

    def write(self, run: RunId, spans: Sequence[Span], metrics: Sequence[Metric], *, new: bool) -> None:
        """Write spans and metrics of a run down, a line of each that there are; of a `new` run nothing is."""
        lines = ""
        if spans:
            lines = self._line("Spans", "spans", [_span(each) for each in spans])
        if metrics:
            lines += self._line("Metrics", "metrics", [_metric(each) for each in metrics])
        if lines:
            self._append(run, lines, new=new)

    def _line(self, signal: str, name: str, told: list[str]) -> str:
        scopes = f'"scope{signal}":[{{{self._scope},"{name}":[{",".join(told)}]}}]'
        return f'{{"resource{signal}":[{{{self._resource},{scopes}}}]}}\n'

    def _append(self, run: RunId, lines: str, *, new: bool) -> None:
        folder = f"{self._outputs}/{run}/{names.FOLDER}"
        if new:
            _make(folder)
        try:
            held = _opened(f"{folder}/{names.FILE}")
        except FileNotFoundError:  # somebody removed it
            _make(folder)
            held = _opened(f"{folder}/{names.FILE}")
        try:
            os.write(held, lines.encode("utf-8", "backslashreplace"))
        finally:
            os.close(held)


def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _make(folder: str) -> None:
    """A folder and those above it: mostly two are missing, and these are made without looking."""
    try:
        os.mkdir(folder.rpartition("/")[0])  # noqa: PTH102 - pathlib takes as long as what is written
        os.mkdir(folder)  # noqa: PTH102
    except OSError:
        Path(folder).mkdir(parents=True, exist_ok=True)


def _span(span: Span) -> str:
    parent = f'"parentSpanId":"{span.parent}",' if span.parent is not None else ""
    events = f',"events":[{",".join([_event(each) for each in span.events])}]' if span.events else ""
    links = f',"links":[{",".join([_link(each) for each in span.links])}]' if span.links else ""
    dropped = f',"droppedEventsCount":{span.dropped}' if span.dropped else ""
    status = f',"status":{{"code":2,"message":{quoted(span.error)}}}' if span.error is not None else ""
    return (
        f'{{"traceId":"{span.trace}","spanId":"{span.id}",{parent}"name":{quoted(span.name)},"kind":1,'
        f'"startTimeUnixNano":"{span.start}000","endTimeUnixNano":"{span.end}000",'
        f'"attributes":{_attributes(span.attributes)}{events}{links}{dropped}{status}}}'
    )


def _event(event: SpanEvent) -> str:
    about = _attributes(event.attributes)
    return f'{{"timeUnixNano":"{event.at}000","name":"{event.name}","attributes":{about}}}'


def _link(link: Link) -> str:
    about = _attributes(link.attributes)
    return f'{{"traceId":"{link.trace}","spanId":"{link.id}","attributes":{about}}}'


def _attributes(attributes: Attributes) -> str:
    return f"[{','.join(starmap(_attribute, attributes.items()))}]"


@lru_cache(maxsize=4096, typed=True)
def _attribute(name: str, value: Attribute) -> str:
    """One attribute. Nearly all of them come again and again, in spans of one run and of many."""
    return f'{{"key":"{name}","value":{_value(value)}}}'


def _value(value: Attribute) -> str:
    if isinstance(value, str):
        return f'{{"stringValue":{quoted(value)}}}'
    if isinstance(value, bool):
        return f'{{"boolValue":{"true" if value else "false"}}}'
    if isinstance(value, int):
        return f'{{"intValue":"{value}"}}'
    if isinstance(value, float):
        return f'{{"doubleValue":{_number(value)}}}'
    told = ",".join([f'{{"stringValue":{quoted(each)}}}' for each in value])
    return f'{{"arrayValue":{{"values":[{told}]}}}}'


def _number(value: float) -> str:
    if isfinite(value):
        return repr(float(value))
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def _metric(metric: Metric) -> str:
    points = ",".join([_point(metric, about, value) for about, value in metric.points])
    temporality = f',"aggregationTemporality":{2 if metric.cumulative else 1}'
    more = {"histogram": temporality, "sum": f'{temporality},"isMonotonic":true', "gauge": ""}[metric.kind]
    return (
        f'{{"name":"{metric.name}","unit":"{metric.unit}","description":"{metric.description}",'
        f'"{metric.kind}":{{"dataPoints":[{points}]{more}}}}}'
    )


def _point(metric: Metric, about: Attributes, value: float | int | Distribution) -> str:
    if isinstance(value, Distribution):
        held = _distribution(value)
    else:
        held = f'"asInt":"{value}"' if isinstance(value, int) else f'"asDouble":{_number(value)}'
    return (
        f'{{"startTimeUnixNano":"{metric.start}000","timeUnixNano":"{metric.at}000",'
        f'"attributes":{_attributes(about)},{held}}}'
    )


def _distribution(value: Distribution) -> str:
    first, last = _occupied(value.counts)
    counts = ",".join([f'"{each}"' for each in value.counts[first : last + 1]])
    bounds = ",".join(map(_number, value.bounds[first:last]))
    return (
        f'"count":"{value.count}","sum":{_number(value.total)},"min":{_number(value.least)},'
        f'"max":{_number(value.most)},"bucketCounts":[{counts}],"explicitBounds":[{bounds}]'
    )


def _occupied(counts: tuple[int, ...]) -> tuple[int, int]:
    """The first and last bucket to write, with an empty one on either side where there is one."""
    used = [place for place, amount in enumerate(counts) if amount] or [0]
    return max(used[0] - 1, 0), min(used[-1] + 1, len(counts) - 1)
