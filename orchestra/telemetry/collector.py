"""A collector that spans and metrics are sent to over OTLP/HTTP, when the usual variables name one.

Everything is sent from a thread of its own, through a bounded queue. A collector that does not answer costs a
warning and what could not be sent, never time.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from orchestra.background import BackgroundWriter
from orchestra.telemetry.metrics import Metric
from orchestra.telemetry.records import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace.export import SpanExporter

_LOG: Final = logging.getLogger("orchestra.telemetry")
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
EXTRA: Final = "pip install -e '.[otlp]'"


def endpoints(environment: Mapping[str, str]) -> dict[str, str]:
    """Which collector gets the `traces` and which the `metrics`, as the environment says."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return {}
    found = {}
    for signal, name in (("traces", "TRACES"), ("metrics", "METRICS")):
        url = environment.get(f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT") or environment.get(ENDPOINT)
        if url and environment.get(f"OTEL_{name}_EXPORTER", "otlp") != "none":
            found[signal] = url
    return found


def collector_of_environment(environment: Mapping[str, str] = os.environ) -> "OtlpCollector | None":
    """The collector that the environment names, if it does and the libraries for it are there."""
    found = endpoints(environment)
    if not found:
        return None
    protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if protocol not in ("", "http/protobuf"):
        _LOG.warning("OTEL_EXPORTER_OTLP_PROTOCOL=%s is not spoken here; http/protobuf is used", protocol)
    if not is_exporter_installed():
        _LOG.warning("%s is set, but what sends to it is not installed: %s", ENDPOINT, EXTRA)
        return None
    return OtlpCollector(found)


def is_exporter_installed() -> bool:
    """Whether the extra `otlp` is installed."""
    from importlib.util import find_spec

    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


class OtlpCollector:
    """Sends over OTLP/HTTP. The libraries are loaded at once, on its thread."""

    def __init__(self, wanted: Mapping[str, str]) -> None:
        self._wanted = wanted
        self._spans: SpanExporter | None = None
        self._metrics: MetricExporter | None = None
        self._ready, self._warned = False, False
        self._background = BackgroundWriter[Span | Metric | None]("orchestra-otlp", self._send)
        self._background.put(None)

    def send(self, items: Iterable[Span | Metric]) -> None:
        """Send spans and metrics, some time, if the environment names a collector for them."""
        for each in items:
            if ("traces" if isinstance(each, Span) else "metrics") in self._wanted:
                self._background.put(each)

    def close(self, seconds: float) -> None:
        """Send what is waiting, but wait at most so long; what takes longer is given up."""
        in_time = self._background.close(seconds)
        for exporter in (self._spans, self._metrics):
            with suppress(Exception):  # it waits between its tries until it is told that there are no more
                if exporter is not None:
                    exporter.shutdown()
        if not in_time or self._background.dropped:
            self._warn("it does not answer in time")

    def _send(self, batch: list[Span | Metric | None]) -> None:
        from orchestra.telemetry import otel

        try:
            if not self._ready:
                self._ready = True
                self._spans, self._metrics = otel.exporters(self._wanted)
            spans = [otel.span(each) for each in batch if isinstance(each, Span)]
            metrics = [each for each in batch if isinstance(each, Metric)]
            sent = otel.send_spans(self._spans, spans) and otel.send_metrics(self._metrics, metrics)
        except Exception as error:  # a broken address, a missing certificate, …
            self._warn(f"{type(error).__name__} while sending")  # what it says may hold the address
            return
        if not sent:
            self._warn("it cannot be reached or refuses")

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            shown = ", ".join(sorted({without_secrets(url) for url in self._wanted.values()}))
            _LOG.warning("the telemetry collector at %s does not get everything: %s; runs go on", shown, why)


def without_secrets(url: str) -> str:
    """An address without user, password and query."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
