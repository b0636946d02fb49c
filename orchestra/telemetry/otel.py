"""The door to the OpenTelemetry libraries: our records as theirs, and their exporters."""

import logging
import os
from collections.abc import Container
from functools import cache
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from orchestra.limits import TELEMETRY_EXPORT_SECONDS, TELEMETRY_EXPORT_SPANS
from orchestra.telemetry import names
from orchestra.telemetry.metrics import Histogram, Metric
from orchestra.telemetry.records import Attributes, Span
from orchestra.version import VERSION

_SCOPE: Final = InstrumentationScope(names.SERVICE, VERSION)


def exporters(wanted: Container[str]) -> tuple[SpanExporter | None, export.MetricExporter | None]:
    """What sends `traces` and what sends `metrics`, as far as wanted, set up by the usual variables."""
    # We say once that a collector is not there; the library would say it for every batch.
    logger = logging.getLogger("opentelemetry.exporter.otlp")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    spans = OTLPSpanExporter() if "traces" in wanted else None
    return spans, OTLPMetricExporter() if "metrics" in wanted else None


def send_spans(exporter: SpanExporter | None, spans: list[ReadableSpan]) -> bool:
    """Send spans; whether all arrived."""
    if exporter is None:
        return True
    parts = [spans[at : at + TELEMETRY_EXPORT_SPANS] for at in range(0, len(spans), TELEMETRY_EXPORT_SPANS)]
    return all(exporter.export(part) is SpanExportResult.SUCCESS for part in parts)


def send_metrics(exporter: export.MetricExporter | None, metrics: list[Metric]) -> bool:
    """Send metrics; whether they arrived."""
    if exporter is None or not metrics:
        return True
    held = export.ScopeMetrics(scope=_SCOPE, metrics=[metric(each) for each in metrics], schema_url="")
    whole = export.ResourceMetrics(resource=_resource(), scope_metrics=[held], schema_url="")
    data = export.MetricsData(resource_metrics=[whole])
    sent = exporter.export(data, timeout_millis=TELEMETRY_EXPORT_SECONDS * 1000)
    return sent is export.MetricExportResult.SUCCESS


@cache
def _resource() -> Resource:
    service = os.environ.get("OTEL_SERVICE_NAME") or names.SERVICE
    return Resource.create({"service.name": service, "service.version": VERSION})


def _context(trace: str, identity: str) -> SpanContext:
    return SpanContext(int(trace, 16), int(identity, 16), False, TraceFlags(TraceFlags.SAMPLED))


def span(span: Span) -> ReadableSpan:
    """A span as the libraries have it."""
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace, span.id),
        parent=_context(span.trace, span.parent) if span.parent is not None else None,
        resource=_resource(),
        attributes=span.about,
        events=[Event(each.name, each.attributes, each.at * 1000) for each in span.events],
        links=[Link(_context(each.trace, each.id), each.attributes) for each in span.links],
        status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR, span.error),
        kind=SpanKind.CLIENT if span.is_client else SpanKind.INTERNAL,
        start_time=span.start * 1000,
        end_time=span.end * 1000,
        instrumentation_scope=_SCOPE,
    )


def metric(metric: Metric) -> export.Metric:
    """A metric as the libraries have it."""
    kinds = export.AggregationTemporality
    temporality = kinds.CUMULATIVE if metric.cumulative else kinds.DELTA
    points = [_point(metric, about, value) for about, value in metric.points]
    data: export.Histogram | export.Sum | export.Gauge
    match metric.kind:
        case "histogram":
            data = export.Histogram(data_points=points, aggregation_temporality=temporality)
        case "sum":
            data = export.Sum(data_points=points, aggregation_temporality=temporality, is_monotonic=True)
        case "gauge":
            data = export.Gauge(data_points=points)
    return export.Metric(name=metric.name, description=metric.description, unit=metric.unit, data=data)


def _point(metric: Metric, about: Attributes, value: float | int | Histogram) -> Any:
    start, end = metric.start * 1000, metric.at * 1000
    place: dict[str, Any] = {"attributes": dict(about), "start_time_unix_nano": start, "time_unix_nano": end}
    if not isinstance(value, Histogram):
        return export.NumberDataPoint(value=value, **place)
    return export.HistogramDataPoint(
        count=value.count,
        sum=value.total,
        bucket_counts=value.counts,
        explicit_bounds=value.bounds,
        min=value.least,
        max=value.most,
        **place,
    )
