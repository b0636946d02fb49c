"""The demo records runs that are whole, that restore, and that are the same for the same seed."""

from pathlib import Path

import pytest

from benchmarks import record_demo
from benchmarks.record_demo import Recorded, record
from orchestra.app.compose import SystemClock
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.errors import NotResumable
from orchestra.history.archive import Archive
from orchestra.ids import Instant
from orchestra.model.state import State
from orchestra.ports.store import RowQuery, RunQuery, Store
from orchestra.stores.memory import MemoryStore
from orchestra.stores.registry import open_store

START = Instant(1_760_000_000_000_000)

pytestmark = pytest.mark.anyio


async def _played(runs: int = 3, seed: int = 7) -> tuple[Store, list[Recorded]]:
    store = MemoryStore()
    return store, await record(store, runs=runs, seed=seed, start=START)


def _head(store: Store, recorded: Recorded) -> State:
    archive = Archive(store)
    return archive.state(recorded.run, archive.run(recorded.run).head)


async def test_every_snapshot_can_be_read() -> None:
    store, recorded = await _played()
    archive = Archive(store)
    for each in recorded:
        for seq in range(archive.run(each.run).head + 1):
            assert archive.state(each.run, seq).run == each.run


async def test_a_completed_run_has_all_there_is_to_see() -> None:
    store, recorded = await _played(runs=1)
    state = _head(store, recorded[0])
    assert state.status == "completed"
    assert [visit.phase for visit in state.path] == ["analysis", "evaluation", "report"]
    (evaluation,) = state.evaluations.values()
    assert [each.verdict.kind for each in evaluation.iterations] == ["revise", "accept"]
    said = [decision.description for decision in state.decisions]
    assert "Mercury structure confidence (0.73) below threshold (0.75)" in said
    assert set(state.outputs.keys()) == {"review.md", "findings.json"}
    assert state.metrics.tokens > 30_000
    triggers = {name for row in store.rows(RowQuery(run=recorded[0].run)) for name in row.triggers}
    assert {"confidence_threshold_crossed", "before_risky_operation", "user_requested"} <= triggers


async def test_outputs_can_be_fetched() -> None:
    store, recorded = await _played(runs=1)
    output = _head(store, recorded[0]).outputs["review.md"]
    framed = Archive(store).framer.open(output.digest, store.get_objects([output.digest])[output.digest])
    assert framed.canonical.startswith(b"# Review")
    assert len(framed.canonical) == output.size


async def test_the_failed_run_went_back_and_kept_its_results() -> None:
    store, recorded = await _played()
    state = _head(store, recorded[1])
    assert state.status == "completed"
    assert state.metrics.rollbacks == state.generation == 1
    assert state.rollbacks[0].kept == ("structure", "tests")
    assert state.tasks["structure"].status == "completed"
    assert "security" in state.tasks
    statuses = {row.status for row in store.rows(RowQuery(run=recorded[1].run))}
    assert "failed" in statuses


async def test_the_waiting_run_can_be_taken_over() -> None:
    store, recorded = await _played()
    async with CheckpointManager(store, clock=SystemClock(), owner="test") as manager:
        active = await manager.restore(recorded[2].run)
        (wait,) = active.state.waits.values()
        assert wait.status == "open"
        assert len(wait.choices) == 3
        await manager.release(active)
        with pytest.raises(NotResumable):
            await manager.restore(recorded[0].run)


async def test_the_fork_shares_its_past() -> None:
    store, recorded = await _played()
    base, fork = _head(store, recorded[0]), _head(store, recorded[-1])
    assert fork.origin is not None
    assert fork.origin.run == base.run
    assert fork.family == base.family
    assert len(fork.tasks) < len(base.tasks)


async def test_the_same_seed_gives_the_same_runs() -> None:
    first, recorded = await _played()
    second, again = await _played()
    assert recorded == again
    for each in recorded:
        assert first.run(each.run) == second.run(each.run)
    other, _ = await _played(seed=8)
    assert {row.digest for row in other.runs(RunQuery())}.isdisjoint(
        row.digest for row in first.runs(RunQuery())
    )


def test_the_command_tells_what_it_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:{tmp_path}/demo.db"
    assert record_demo.main(["--store", url, "--runs", "4"]) == 0
    told = capsys.readouterr().out
    with open_store(url, read_only=True) as store:
        runs = store.runs(RunQuery())
    assert len(runs) == 5
    assert all(row.run in told for row in runs)
    assert "orchestra snapshots" in told
