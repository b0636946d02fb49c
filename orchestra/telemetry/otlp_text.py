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
from orchestra.telemetry.records import Attribute, Attributes, Distribution, Fixed, Metric, Span
from orchestra.version import VERSION


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
    return (
        f'{{"traceId":"{span.trace}","spanId":"{span.id}",{parent}"name":{quoted(span.name)},"kind":1,'
        f'"startTimeUnixNano":"{span.start}000","endTimeUnixNano":"{span.end}000",'
        f'"attributes":[{_fixed_text(span.fixed)}{{"key":"{names.RUN}","value":{{"stringValue":"{span.run}"}}}},'
        f'{{"key":"{names.SEQ}","value":{{"intValue":"{span.seq}"}}}},'
        f'{{"key":"{names.STATUS}","value":{{"stringValue":"{span.status}"}}}}{more}]'
        f"{events}{links}{dropped}{status}}}"
    )


def _fixed_text(fixed: Fixed) -> str:
    """Attributes that others may follow; what many spans have in common is put together once."""
    if fixed.attributes and not fixed.text:
        fixed.text = _attribute_list(fixed.attributes) + ","
    return fixed.text


def _attribute_list(attributes: Attributes) -> str:
    return ",".join(starmap(_attribute, attributes.items()))


def _attribute(name: str, value: Attribute) -> str:
    """One attribute. Numbers are each another, mostly."""
    if type(value) is int:
        return f'{{"key":"{name}","value":{{"intValue":"{value}"}}}}'
    if type(value) is float:
        return f'{{"key":"{name}","value":{{"doubleValue":{_number(value)}}}}}'
    return _cached_attribute(name, value)


@lru_cache(maxsize=4096, typed=True)
def _cached_attribute(name: str, value: Attribute) -> str:
    """One attribute that comes again and again, in spans of one run and of many."""
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


def metric_text(metric: Metric) -> str:
    """What one instrument measured."""
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
        f'"attributes":[{_attribute_list(about)}],{held}}}'
    )


def _distribution(value: Distribution) -> str:
    first, last = _occupied_range(value.counts)
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


def _occupied_range(counts: tuple[int, ...]) -> tuple[int, int]:
    """The first and last bucket to write, with an empty one on either side where there is one."""
    used = [place for place, amount in enumerate(counts) if amount] or [0]
    return max(used[0] - 1, 0), min(used[-1] + 1, len(counts) - 1)


_PROGRAM: Final = _attribute_list({"service.name": names.SERVICE, "service.version": VERSION})
_RESOURCE: Final = f'"resource":{{"attributes":[{_PROGRAM}]}}'
_SCOPE: Final = f'"scope":{json.dumps({"name": names.SERVICE, "version": VERSION})}'
