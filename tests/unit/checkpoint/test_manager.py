"""Recording, restoring, forking and rolling back, when all goes well and when it does not."""

import logging
from typing import Any

import anyio
import pytest

from orchestra import errors
from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.codec.values import freeze
from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId
from orchestra.limits import SEAL_EVERY_ROWS
from orchestra.model import events as ev
from orchestra.model.records import Failure
from orchestra.model.state import WorkflowRef
from orchestra.ports.sink import CheckpointFailed, CheckpointSaved, Notice
from orchestra.ports.store import Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock
from orchestra.testing.faulty import Fault, FaultPlan, FaultyStore

pytestmark = pytest.mark.anyio

AT = Instant(5)
RUN, OTHER = RunId("r"), RunId("other")
A, P = AgentId("a"), PhaseId("p")
STARTED = ev.RunStarted(at=AT, run=RUN, workflow=WorkflowRef(name="w"))
TICK = ev.Spent(at=AT, api_calls=1)


def managing(store: Store, **options: Any) -> CheckpointManager:
    return CheckpointManager(store, clock=FakeClock(step=1), owner=options.pop("owner", "me"), **options)


def planned(name: str) -> list[ev.Event]:
    return [ev.TaskPlanned(at=AT, task=TaskId(name), agent=A, phase=P)]


def completed(name: str) -> list[ev.Event]:
    return [ev.TaskCompleted(at=AT, task=TaskId(name))]


def failed(name: str) -> list[ev.Event]:
    failure = Failure(error="E", message="m", at=AT)
    return [ev.TaskFailed(at=AT, task=TaskId(name), failure=failure)]


class Notices:
    def __init__(self) -> None:
        self.heard: list[Notice] = []

    def notice(self, notice: Notice, /) -> None:
        self.heard.append(notice)


# --- recording


async def test_a_turn_is_one_row() -> None:
    store = MemoryStore()
    async with managing(store) as manager:
        active = await manager.begin(STARTED, ev.PhaseStarted(at=AT, phase=P))
        snapshot = await manager.record(active, [*planned("t"), TICK])
    assert store.stats().rows == 2
    assert snapshot.reference == "r@1"
    assert snapshot.state is active.state
    assert [line.kind for line in snapshot.header.events] == ["task_planned", "spent"]
    row = manager.archive.row(RUN, 1)
    assert (row.phase, row.agents, row.status) == ("p", ("a",), "running")


async def test_seals_come_in_time() -> None:
    async with managing(MemoryStore()) as manager:
        active = await manager.begin(STARTED)
        for _ in range(2 * SEAL_EVERY_ROWS):
            await manager.record(active, [TICK])
        sealed = [seq for seq in range(65) if manager.archive.row(RUN, seq).sealed_at == seq]
    assert sealed == [0, 32, 64]


async def test_an_illegal_event_changes_nothing() -> None:
    store = MemoryStore()
    async with managing(store) as manager:
        active = await manager.begin(STARTED)
        state = active.state
        with pytest.raises(errors.IllegalEvent, match="never planned"):
            await manager.record(active, [TICK, *completed("t")])
        assert active.state is state
        assert store.stats().rows == 1


async def test_turns_of_one_run_wait_for_one_another() -> None:
    async with managing(MemoryStore()) as manager:
        active = await manager.begin(STARTED)
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(manager.record, active, [TICK])
    assert active.seq == active.state.metrics.api_calls == 20


# --- beginning


async def test_a_run_begins_once() -> None:
    store = MemoryStore()
    async with managing(store) as manager, managing(store, owner="you") as other:
        active = await manager.begin(STARTED)
        with pytest.raises((errors.RunOwned, errors.RunExists)):
            await other.begin(STARTED)
        await manager.release(active)
        with pytest.raises(errors.RunExists):
            await other.begin(STARTED)


async def test_a_first_snapshot_that_is_too_large_leaves_no_claim_behind() -> None:
    store = MemoryStore()
    settings = CheckpointSettings(size_limit_bytes=5_000, compression=False)
    async with managing(store, settings=settings) as manager:
        large = freeze("x" * 20_000, manager.addresser)
        started = ev.RunStarted(at=AT, run=RUN, workflow=WorkflowRef(name="w"), inputs=large)
        with pytest.raises(errors.SnapshotTooLarge):
            await manager.begin(started)
        assert (await manager.begin(STARTED)).seq == 0


async def test_a_first_snapshot_that_cannot_be_saved_leaves_no_claim_behind() -> None:
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=0)]))
    async with managing(store) as manager:
        with pytest.raises(errors.StoreFailed):
            await manager.begin(STARTED)
        assert (await manager.begin(STARTED)).seq == 0


# --- taking over


async def test_restoring_an_unknown_run() -> None:
    async with managing(MemoryStore()) as manager:
        with pytest.raises(errors.UnknownRun):
            await manager.restore(RUN)


async def test_restoring_is_refused_while_somebody_has_it() -> None:
    store = MemoryStore()
    async with managing(store) as manager, managing(store, owner="you") as other:
        active = await manager.begin(STARTED)
        with pytest.raises(errors.RunOwned, match="me"):
            await other.restore(RUN)
        await manager.release(active)
        taken = await other.restore(RUN)
        with pytest.raises(errors.FenceLost):
            await manager.record(active, [TICK])
        assert (await other.record(taken, [TICK])).header.seq == 1


@pytest.mark.parametrize("outcome", ["completed", "cancelled"])
async def test_what_is_over_is_not_taken_over(outcome: Any) -> None:
    store = MemoryStore()
    async with managing(store) as manager:
        active = await manager.begin(STARTED)
        await manager.record(active, [ev.RunEnded(at=AT, outcome=outcome)])
        await manager.release(active)
        with pytest.raises(errors.NotResumable, match=outcome):
            await manager.restore(RUN)
        found = store.run(RUN)
        assert found is not None
        assert not found.owned, "the claim was given back"


@pytest.mark.parametrize("outcome", ["failed", "shutdown"])
async def test_what_failed_or_stopped_is(outcome: Any) -> None:
    async with managing(MemoryStore()) as manager:
        active = await manager.begin(STARTED)
        await manager.record(active, [ev.RunEnded(at=AT, outcome=outcome)])
        await manager.release(active)
        assert (await manager.restore(RUN)).seq == 1


async def test_a_run_kept_in_memory_only_is_not_restored() -> None:
    async with managing(MemoryStore(), settings=CheckpointSettings(enabled=False)) as manager:
        with pytest.raises(errors.BadSetting, match="not stored"):
            await manager.restore(RUN)


async def test_looking_takes_nothing_over() -> None:
    store = MemoryStore()
    async with managing(store) as manager, managing(store, owner="you") as other:
        active = await manager.begin(STARTED)
        await manager.record(active, [TICK])
        assert (await other.look(RUN)).header.seq == 1
        assert (await other.look(RUN, 0)).header.seq == 0
        with pytest.raises(errors.UnknownSnapshot, match="0 to 1"):
            await other.look(RUN, 2)
        assert (await manager.record(active, [TICK])).header.seq == 2


# --- forks and rollbacks


async def test_a_fork_shares_and_does_not_disturb() -> None:
    store = MemoryStore()
    async with managing(store) as manager:
        active = await manager.begin(STARTED)
        for number in range(40):
            await manager.record(active, planned(f"t{number}"))
        before = store.stats().object_bytes
        forked = await manager.fork(RUN, 40, OTHER, reason="what if")
        assert store.stats().object_bytes - before < store.stats().row_bytes / 10
        assert forked.state.origin is not None
        assert (forked.state.origin.run, forked.state.origin.seq) == (RUN, 40)
        assert (forked.state.run, forked.state.family) == (OTHER, RUN)
        await manager.record(forked, planned("only there"))
        assert len((await manager.look(RUN)).state.tasks) == 40
        assert (await manager.look(OTHER, 0)).header.parent == active.digest


async def test_forking_what_is_not_there() -> None:
    async with managing(MemoryStore()) as manager:
        await manager.begin(STARTED)
        with pytest.raises(errors.UnknownSnapshot):
            await manager.fork(RUN, 7, OTHER)
        with pytest.raises((errors.RunExists, errors.RunOwned)):
            await manager.fork(RUN, 0, RUN)


async def _with_work(manager: CheckpointManager) -> ActiveRun:
    """0 begins, 1 plans t, 2 fails it, 3 completes it, 4 plans and completes u, 5 spends."""
    active = await manager.begin(STARTED, ev.PhaseStarted(at=AT, phase=P))
    for turn in (planned("t"), failed("t"), completed("t"), planned("u") + completed("u"), [TICK]):
        await manager.record(active, turn)
    return active


async def test_a_rollback_goes_back_and_keeps_what_is_spent() -> None:
    async with managing(MemoryStore()) as manager:
        active = await _with_work(manager)
        snapshot = await manager.rollback(active, 1, reason="wrong way")
        state = snapshot.state
        assert [task.status for task in state.tasks.values()] == ["pending"]
        assert (state.metrics.api_calls, state.metrics.rollbacks, state.generation) == (1, 1, 1)
        assert (state.completed_tasks, state.open_failures) == (0, 0)
        record = state.rollbacks[0]
        assert (record.from_seq, record.to_seq, record.undone) == (5, 1, ("t", "u"))
        assert snapshot.header.triggers == ("rolled_back",)
        assert (await manager.rollback(active, 4, reason="after all")).state.generation == 2
        assert [each.to_seq for each in active.state.rollbacks] == [1, 4]


async def test_kept_tasks_keep_their_results_and_count() -> None:
    """The task had failed at the target and was completed since: kept, it is no open failure any more."""
    async with managing(MemoryStore()) as manager:
        active = await _with_work(manager)
        state = (await manager.rollback(active, 2, reason="redo u", kept=[TaskId("t")])).state
        assert state.tasks["t"].status == "completed"
        assert (state.completed_tasks, state.open_failures) == (1, 0)
        assert not state.has_open_failure
        assert state.rollbacks[0].undone == ("u",)


async def test_keeping_a_task_that_is_not_there_is_refused_by_name() -> None:
    async with managing(MemoryStore()) as manager:
        active = await _with_work(manager)
        with pytest.raises(errors.OrchestraError, match="nonsense"):
            await manager.rollback(active, 1, reason="r", kept=[TaskId("nonsense")])
        assert active.seq == 5


async def test_by_default_to_the_last_good_boundary() -> None:
    async with managing(MemoryStore()) as manager:
        active = await _with_work(manager)
        await manager.record(active, [ev.PhaseCompleted(at=AT, phase=P)])
        await manager.record(active, [*planned("v"), *failed("v")])
        await manager.record(active, [ev.PhaseStarted(at=AT, phase=PhaseId("q"))])
        assert (await manager.rollback(active, reason="r")).state.rollbacks[-1].to_seq == 6


async def test_what_was_undone_is_not_gone_back_to_when_the_rollback_is_damaged() -> None:
    """Rows 0 to 5, a rollback to 1, then damage to the rollback's state: 5 was undone on purpose."""
    store = MemoryStore()
    async with managing(store) as manager:
        active = await _with_work(manager)
        rolled = await manager.rollback(active, 1, reason="wrong way")
        await manager.release(active)
        store._objects.pop(rolled.header.seal)
        again = await managing(store).restore(RUN)
    assert again.state.rollbacks[-1].to_seq <= 1
    assert "u" not in again.state.tasks


# --- when the store fails


@pytest.mark.parametrize("kind", [errors.StoreFailed, errors.StoreFull])
async def test_a_turn_that_was_not_saved_can_be_recorded_again(kind: type[errors.StoreError]) -> None:
    notices = Notices()
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=1, kind=kind)]))
    async with managing(store, sinks=[notices]) as manager:
        active = await manager.begin(STARTED)
        with pytest.raises(kind):
            await manager.record(active, planned("t"))
        assert (active.seq, len(active.state.tasks)) == (0, 0)
        assert (await manager.record(active, planned("t"))).header.seq == 1
    saved = ["checkpoint_saved", "turn_recorded"]
    assert [notice.kind for notice in notices.heard] == [*saved, "checkpoint_failed", *saved]
    failed = [(each.seq, each.unsaved) for each in notices.heard if isinstance(each, CheckpointFailed)]
    assert failed == [(1, 0)]


async def test_a_turn_that_was_saved_after_all_is_not_saved_twice() -> None:
    inner = MemoryStore()
    store = FaultyStore(inner, FaultPlan([Fault(methods={"commit"}, nth=1, when="after")]))
    async with managing(store) as manager:
        active = await manager.begin(STARTED)
        with pytest.raises(errors.StoreFailed):
            await manager.record(active, planned("t"))
        assert (await manager.record(active, planned("t"))).header.seq == 1
        assert inner.stats().rows == 2
        assert (await manager.record(active, [TICK])).header.seq == 2


async def test_after_it_was_saved_another_turn_follows_it() -> None:
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=1, when="after")]))
    async with managing(store) as manager:
        active = await manager.begin(STARTED)
        with pytest.raises(errors.StoreFailed):
            await manager.record(active, planned("t"))
        assert (await manager.record(active, [TICK])).header.seq == 2
        assert "t" in active.state.tasks


async def test_after_it_was_saved_a_rollback_follows_it() -> None:
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=1, when="after")]))
    async with managing(store) as manager:
        active = await manager.begin(STARTED)
        with pytest.raises(errors.StoreFailed):
            await manager.record(active, planned("t"))
        assert (await manager.rollback(active, 0, reason="r")).header.seq == 2


async def test_finding_out_may_fail_too() -> None:
    plan = FaultPlan([Fault(methods={"commit"}, nth=1, when="after"), Fault(methods={"run"}, nth=0)])
    store = FaultyStore(MemoryStore(), plan)
    async with managing(store) as manager:
        active = await manager.begin(STARTED)
        for _ in range(2):
            with pytest.raises(errors.StoreFailed):
                await manager.record(active, planned("t"))
        assert (await manager.record(active, planned("t"))).header.seq == 1


async def test_flushing_saves_what_was_kept_back() -> None:
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=1)]))
    async with managing(store, settings=CheckpointSettings(on_save_error="continue")) as manager:
        active = await manager.begin(STARTED)
        await manager.record(active, [TICK])
        assert len(active.unsaved) == 1
        await manager.flush(active)
        assert active.unsaved == []
        assert manager.archive.run(RUN).digest == active.digest


async def test_losing_the_run_is_never_put_off() -> None:
    store = MemoryStore()
    settings = CheckpointSettings(on_save_error="continue")
    async with managing(store, settings=settings) as manager, managing(store, owner="you") as other:
        active = await manager.begin(STARTED)
        await manager.release(active)
        await other.restore(RUN)
        with pytest.raises(errors.FenceLost):
            await manager.record(active, [TICK])
        assert not active.is_degraded


# --- who is told


async def test_sinks_are_told_in_order() -> None:
    notices = Notices()
    async with managing(MemoryStore(), sinks=[notices]) as manager:
        active = await manager.begin(STARTED)
        await manager.record(active, [TICK])
    saved = [notice for notice in notices.heard if isinstance(notice, CheckpointSaved)]
    assert [(each.seq, each.marked) for each in saved] == [(0, True), (1, False)]
    assert saved[1].digest == active.digest


async def test_a_sink_that_fails_never_fails_a_run(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def notice(self, notice: Notice, /) -> None:
            raise RuntimeError("no")

    notices = Notices()
    with caplog.at_level(logging.ERROR):
        async with managing(MemoryStore(), sinks=[Broken(), notices]) as manager:
            await manager.begin(STARTED)
    assert [notice.kind for notice in notices.heard] == ["checkpoint_saved", "turn_recorded"]
    assert "a sink failed" in caplog.text
