"""Metrics of runs, and what they are made of."""

from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.state import WorkflowRef
from orchestra.stores.memory import MemoryStore
from orchestra.telemetry import names
from orchestra.telemetry.metrics import BYTES_BOUNDS, INSTRUMENTS, SECONDS_BOUNDS, Histogram, quantile
from orchestra.telemetry.overview import write_durations
from orchestra.telemetry.sink import TelemetrySink
from orchestra.testing.clock import SECOND, START, FakeClock
from tests.unit.telemetry.support import metrics, played, stored

RUN = "letters_1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("measured")
    anyio.run(played, made)
    return made


def test_every_instrument_of_a_run_without_recoveries(folder: Path) -> None:
    found = metrics(folder, RUN)
    assert set(found) == {name for name, *_ in INSTRUMENTS} - {
        names.RECOVERY_COUNT,
        names.RECOVERY_SUCCESS_RATE,
        names.TOKEN_USAGE,  # no model was asked
        names.REQUEST_DURATION,
    }
    snapshots = len(stored(folder, RUN))
    (duration,) = found[names.WRITE_DURATION]["histogram"]["dataPoints"]
    (size,) = found[names.CHECKPOINT_SIZE]["histogram"]["dataPoints"]
    (count,) = found[names.CHECKPOINT_COUNT]["sum"]["dataPoints"]
    (often,) = found[names.CHECKPOINT_FREQUENCY]["gauge"]["dataPoints"]
    (usage,) = found[names.STORAGE_USAGE]["gauge"]["dataPoints"]
    assert int(duration["count"]) == int(size["count"]) == int(count["asInt"]) == snapshots
    assert 0 < duration["min"] <= duration["max"] <= duration["sum"]
    assert often["asDouble"] > 0
    assert int(usage["asInt"]) > 0
    assert found[names.WRITE_DURATION]["unit"] == "s"


@pytest.mark.anyio
async def test_recoveries_and_snapshots_are_counted_as_they_were(tmp_path: Path) -> None:
    """CHECKLIST 001.47: one recovery held and one did not; five snapshots came in twenty seconds."""
    started = ev.RunStarted(at=START, run=RunId(RUN), workflow=WorkflowRef(name="letters"))
    task = TaskId("print/printer")
    sink = TelemetrySink(tmp_path / "outputs")
    async with CheckpointManager(MemoryStore(), clock=FakeClock(), owner="test", sinks=[sink]) as manager:
        active = await manager.begin(started)
        planned = ev.TaskPlanned(at=_at(2), task=task, agent=AgentId("printer"), phase=PhaseId("print"))
        await manager.record(active, [ev.RunResumed(at=_at(2), recovered=True), planned])
        await manager.record(active, [ev.TaskCompleted(at=_at(5), task=task)])
        await manager.record(active, [ev.RunResumed(at=_at(6), recovered=True)])
        await manager.record(active, [ev.RunEnded(at=_at(20), outcome="failed")])
    sink.close()
    found = metrics(tmp_path, RUN)
    (rate,) = found[names.RECOVERY_SUCCESS_RATE]["gauge"]["dataPoints"]
    (often,) = found[names.CHECKPOINT_FREQUENCY]["gauge"]["dataPoints"]
    assert (rate["asDouble"], often["asDouble"]) == (0.5, 5 / 20)
    counts = found[names.RECOVERY_COUNT]["sum"]["dataPoints"]
    assert [int(each["asInt"]) for each in counts] == [1, 1]


def _at(second: int) -> Instant:
    return Instant(START + second * SECOND)


def test_durations_are_read_back(folder: Path) -> None:
    held = write_durations(folder / "outputs", [RunId(RUN), RunId("nobody")])
    assert held is not None
    assert held.count == len(stored(folder, RUN))
    assert held.least <= quantile(held, 0.5) <= quantile(held, 0.95) <= held.most
    assert write_durations(folder / "outputs", [RunId("nobody")]) is None


def test_torn_and_foreign_lines_are_passed_over(folder: Path, tmp_path: Path) -> None:
    source = folder / "outputs" / RUN / "telemetry" / "otlp.jsonl"
    target = tmp_path / RUN / "telemetry" / "otlp.jsonl"
    target.parent.mkdir(parents=True)
    text = source.read_text(encoding="utf-8")
    target.write_text(f'["not ours"]\n{text}{{"resourceMetrics":[{{"sc', encoding="utf-8")
    held = write_durations(tmp_path, [RunId(RUN)])
    assert held is not None
    assert held.count == len(stored(folder, RUN))


@given(st.lists(st.floats(min_value=1e-6, max_value=100), min_size=1, max_size=200))
def test_percentiles_lie_near_the_real_ones(values: list[float]) -> None:
    histogram = Histogram(SECONDS_BOUNDS)
    for value in values:
        histogram.record(value)
    assert histogram.count == len(values)
    for share in (0.0, 0.5, 0.95, 1.0):
        told = quantile(histogram, share)
        below = sum(value <= told * 1.5 + 2e-5 for value in values)
        assert min(values) <= told <= max(values)
        assert below >= share * len(values) or told >= SECONDS_BOUNDS[-1]


def test_bounds_grow() -> None:
    for bounds in (SECONDS_BOUNDS, BYTES_BOUNDS):
        assert list(bounds) == sorted(set(bounds))
    assert SECONDS_BOUNDS[0] <= 1e-5
    assert SECONDS_BOUNDS[-1] >= 60
