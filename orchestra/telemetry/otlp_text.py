"""Spans and metrics as text: the JSON of OTLP, which collectors read from files.

Text is put together without dictionaries in between, which would take three times as long.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import starmap
from json.encoder import encode_basestring as quoted
from math import isfinite
from typing import Final, Literal

from orchestra.telemetry import names
from orchestra.telemetry.metrics import Histogram, Metric
from orchestra.telemetry.records import Attribute, Attributes, Span
from orchestra.version import VERSION

_CACHED_CHARS: Final = 200


def request(signal: Literal["Spans", "Metrics"], told: Sequence[str]) -> str:
    """An `ExportTraceServiceRequest` or `ExportMetricsServiceRequest` of what is told, in one line."""
    listed = f'"{signal.lower()}":[{",".join(told)}]'
    return f'{{"resource{signal}":[{{{_RESOURCE},"scope{signal}":[{{{_SCOPE},{listed}}}]}}]}}\n'


def span_text(span: Span) -> str:
    """One span."""
    parent = f'"parentSpanId":"{span.parent}",' if span.parent is not None else ""
    happened = [
        f'{{"timeUnixNano":"{each.at}000","name":"{each.name}","attributes":[{_attribute_list(each.attributes)}]}}'
        for each in span.events
    ]
    linked = [
        f'{{"traceId":"{each.trace}","spanId":"{each.id}","attributes":[{_attribute_list(each.attributes)}]}}'
        for each in span.links
    ]
    events = f',"events":[{",".join(happened)}]' if happened else ""
    links = f',"links":[{",".join(linked)}]' if linked else ""
    dropped = f',"droppedEventsCount":{span.dropped}' if span.dropped else ""
    status = f',"status":{{"code":2,"message":{quoted(span.error)}}}' if span.error is not None else ""
    more = f",{_attribute_list(span.attributes)}" if span.attributes else ""
    fixed = span.fixed  # what many spans have in common is put together once
    if fixed.attributes and not fixed.text:
        fixed.text = _attribute_list(fixed.attributes) + ","
    return (
        f'{{"traceId":"{span.trace}","spanId":"{span.id}",{parent}"name":{quoted(span.name)},'
        f'"kind":{3 if span.is_client else 1},'
        f'"startTimeUnixNano":"{span.start}000","endTimeUnixNano":"{span.end}000",'
        f'"attributes":[{fixed.text}{{"key":"{names.RUN}","value":{{"stringValue":"{span.run}"}}}},'
        f'{{"key":"{names.SEQ}","value":{{"intValue":"{span.seq}"}}}},'
        f'{{"key":"{names.STATUS}","value":{{"stringValue":"{span.status}"}}}}{more}]'
        f"{events}{links}{dropped}{status}}}"
    )


def _attribute_list(attributes: Attributes) -> str:
    return ",".join(starmap(_attribute, attributes.items()))


def _attribute(name: str, value: Attribute) -> str:
    """One attribute. Numbers are each another, mostly."""
    if type(value) is int:
        return f'{{"key":"{name}","value":{{"intValue":"{value}"}}}}'
    if type(value) is float:
        return f'{{"key":"{name}","value":{{"doubleValue":{_number(value)}}}}}'
    if type(value) is str and len(value) > _CACHED_CHARS:
        return f'{{"key":"{name}","value":{{"stringValue":{quoted(value)}}}}}'
    return _cached_attribute(name, value)


@lru_cache(maxsize=4096, typed=True)
def _cached_attribute(name: str, value: str | bool | tuple[str, ...]) -> str:
    """One attribute that comes again and again, in spans of one run and of many."""
    if isinstance(value, str):
        told = f'"stringValue":{quoted(value)}'
    elif isinstance(value, tuple):
        values = ",".join([f'{{"stringValue":{quoted(each)}}}' for each in value])
        told = f'"arrayValue":{{"values":[{values}]}}'
    else:
        told = f'"boolValue":{"true" if value else "false"}'
    return f'{{"key":"{name}","value":{{{told}}}}}'


def _number(value: float) -> str:
    if isfinite(value):
        return repr(float(value))
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def metric_text(metric: Metric) -> str:
    """What one instrument measured."""
    points = ",".join([_point(metric, about, value) for about, value in metric.points])
    temporality = f',"aggregationTemporality":{2 if metric.cumulative else 1}'
    more = {"histogram": temporality, "sum": f'{temporality},"isMonotonic":true', "gauge": ""}[metric.kind]
    return (
        f'{{"name":"{metric.name}","unit":"{metric.unit}","description":"{metric.description}",'
        f'"{metric.kind}":{{"dataPoints":[{points}]{more}}}}}'
    )


def _point(metric: Metric, about: Attributes, value: float | int | Histogram) -> str:
    if isinstance(value, Histogram):
        held = _distribution(value)
    else:
        held = f'"asInt":"{value}"' if isinstance(value, int) else f'"asDouble":{_number(value)}'
    return (
        f'{{"startTimeUnixNano":"{metric.start}000","timeUnixNano":"{metric.at}000",'
        f'"attributes":[{_attribute_list(about)}],{held}}}'
    )


def _distribution(value: Histogram) -> str:
    # From the first bucket that is used to the last, with an empty one on either side where there is one.
    used = [place for place, amount in enumerate(value.counts) if amount] or [0]
    first, last = max(used[0] - 1, 0), min(used[-1] + 1, len(value.bounds))
    counts = ",".join([f'"{each}"' for each in value.counts[first : last + 1]])
    bounds = _bounds(value.bounds[first:last])
    return (
        f'"count":"{value.count}","sum":{_number(value.total)},"min":{_number(value.least)},'
        f'"max":{_number(value.most)},"bucketCounts":[{counts}],"explicitBounds":[{bounds}]'
    )


@lru_cache(maxsize=256)
def _bounds(bounds: tuple[float, ...]) -> str:
    """The bounds of some buckets. Runs of a kind fill the same ones again and again."""
    return ",".join(map(_number, bounds))


_PROGRAM: Final = _attribute_list({"service.name": names.SERVICE, "service.version": VERSION})
_RESOURCE: Final = f'"resource":{{"attributes":[{_PROGRAM}]}}'
_SCOPE: Final = f'"scope":{json.dumps({"name": names.SERVICE, "version": VERSION})}'
