"""Sending to a collector: a real one on this machine, one that is not there, and one that never answers."""

import logging
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from orchestra.ids import RunId
from orchestra.telemetry import collector, names
from orchestra.telemetry.collector import OtlpCollector, collector_of_environment, endpoints, without_secrets
from orchestra.telemetry.records import trace_id
from tests.unit.telemetry.support import CONTENT, SECRET, played, spans, stored

RUN = "letters_1"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS_ENDPOINT = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
pytestmark = pytest.mark.anyio


class Receiver(ThreadingHTTPServer):
    """Takes what is sent over OTLP/HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def no_settings_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (collector.ENDPOINT, TRACES_ENDPOINT, METRICS_ENDPOINT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv(collector.ENDPOINT, server.url)
        # It does answer, only this machine may be busy.
        monkeypatch.setattr("orchestra.app.compose.TELEMETRY_CLOSE_SECONDS", 60.0)
        yield server
        server.shutdown()
        thread.join()


async def test_a_collector_gets_what_the_files_get(receiver: Receiver, tmp_path: Path) -> None:
    assert (await played(tmp_path, RUN)).kind == "completed"
    bodies = [body for path, body in receiver.received if path == "/v1/traces"]
    sent = {span.span_id.hex(): span for body in bodies for span in _spans(body)}
    filed = {each["spanId"]: each for each in spans(tmp_path, RUN)}
    assert sent.keys() == filed.keys()
    for identity, span in sent.items():
        assert span.name == filed[identity]["name"]
        assert span.trace_id.hex() == trace_id(RunId(RUN))
        assert span.parent_span_id.hex() == filed[identity].get("parentSpanId", "")
        assert str(span.start_time_unix_nano) == filed[identity]["startTimeUnixNano"]
        assert len(span.attributes) == len(filed[identity]["attributes"])
        assert len(span.events) == len(filed[identity]["events"])
    assert not any(CONTENT.encode() in body or SECRET.encode() in body for body in bodies)


def _spans(body: bytes) -> list[Any]:
    request = ExportTraceServiceRequest.FromString(body)
    (resource,) = request.resource_spans
    assert any(each.value.string_value == "orchestra" for each in resource.resource.attributes)
    return [span for scope in resource.scope_spans for span in scope.spans]


async def test_a_collector_gets_metrics(receiver: Receiver, tmp_path: Path) -> None:
    await played(tmp_path, RUN)
    (body,) = [body for path, body in receiver.received if path == "/v1/metrics"]
    request = ExportMetricsServiceRequest.FromString(body)
    found = {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert names.STORAGE_USAGE in found
    (point,) = found[names.WRITE_DURATION].histogram.data_points
    assert point.count == len(stored(tmp_path, RUN))
    assert [each.key for each in point.attributes] == [names.WORKFLOW], "no attribute per run"


async def test_a_collector_that_is_not_there_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv(collector.ENDPOINT, f"http://127.0.0.1:{port}")
    with caplog.at_level(logging.WARNING):
        assert (await played(tmp_path, RUN)).kind == "completed"
    warned = [each.message for each in caplog.records if "collector" in each.message]
    assert len(warned) == 1
    assert f"127.0.0.1:{port}" in warned[0]
    assert spans(tmp_path, RUN), "the files are written all the same"


async def test_a_collector_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv(collector.ENDPOINT, f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
        with caplog.at_level(logging.WARNING):
            assert (await played(tmp_path, RUN)).kind == "completed"
        assert any("does not answer in time" in each.message for each in caplog.records)


async def test_a_bad_address_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(collector.ENDPOINT, "nonsense://user:secret@[")
    with caplog.at_level(logging.WARNING):
        assert (await played(tmp_path, RUN)).kind == "completed"
    assert not any("secret" in each.message for each in caplog.records)


def test_what_the_environment_says() -> None:
    assert endpoints({}) == {}
    both = {collector.ENDPOINT: "http://c:4318"}
    assert endpoints(both) == {"traces": "http://c:4318", "metrics": "http://c:4318"}
    assert endpoints({TRACES_ENDPOINT: "http://t"}) == {"traces": "http://t"}
    assert endpoints({**both, "OTEL_METRICS_EXPORTER": "none"}) == {"traces": "http://c:4318"}
    assert endpoints({**both, "OTEL_SDK_DISABLED": "true"}) == {}
    assert collector_of_environment({}) is None
    made = collector_of_environment(both)
    assert isinstance(made, OtlpCollector)
    made.close(60)


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert collector_of_environment({collector.ENDPOINT: "http://c:4318"}) is None
    assert "pip install -e '.[otlp]'" in caplog.text


def test_addresses_are_shown_without_secrets() -> None:
    assert without_secrets("https://user:secret@host:4318/v1?token=x") == "https://host:4318/v1"
    assert without_secrets("nonsense://user:secret@[") == "an address that cannot be read"
