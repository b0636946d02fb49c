"""Whoever hands something in may go on changing it, and so may whoever got it: what is stored stays."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.address import Addresser
from orchestra.codec.values import context_data, contribution, freeze, thaw
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import AgentId, PhaseId, TaskId, run_id
from orchestra.limits import LARGE_VALUE_BYTES
from orchestra.model import events as ev
from orchestra.model.reducers import REDUCERS
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import WorkflowRef
from orchestra.testing.clock import START
from tests.property.recording import managed
from tests.property.recording import opened as opened_store

RUN = run_id("changed")
SCHEMES = ["memory", "sqlite", "files"]


async def _begun(manager: CheckpointManager) -> ActiveRun:
    started = ev.RunStarted(at=START, run=RUN, workflow=WorkflowRef(name="w"))
    planned = ev.TaskPlanned(at=START, task=TaskId("t"), agent=AgentId("a"), phase=PhaseId("p"))
    launched = ev.AgentLaunched(at=START, task=TaskId("t"), agent=AgentId("a"))
    return await manager.begin(started, planned, launched)


def _spoil(value: Any) -> None:
    """Change everything in it that can be changed."""
    if isinstance(value, dict):
        for item in list(value.values()):
            _spoil(item)
        value["spoilt"] = True
        value.pop("text", None)
    elif isinstance(value, list):
        for item in value:
            _spoil(item)
        value.append("spoilt")
    elif isinstance(value, set):
        value.add("spoilt")


def _original(size: int) -> dict[str, Any]:
    return {"text": "x" * size, "list": [1, {"deep": [2]}], "set": {1, 2}, "map": {"a": {"b": []}}}


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [10, LARGE_VALUE_BYTES * 2])
async def test_what_was_handed_in_may_change(scheme: str, size: int, tmp_path: Path) -> None:
    with opened_store(scheme, tmp_path) as store:
        async with managed(store) as manager:
            active = await _begun(manager)
            value = _original(size)
            done = ev.TaskCompleted(at=START, task=TaskId("t"), result=freeze(value, manager.addresser))
            _spoil(value)
            snapshot = await manager.record(active, [done])
            _spoil(value)
            assert _result(manager, snapshot) == _original(size)
            assert _result(manager, await manager.look(RUN)) == _original(size)
            assert (await manager.look(RUN)).digest == snapshot.digest
            assert not verify_store(manager.archive).findings


def _result(manager: CheckpointManager, snapshot: Snapshot) -> Any:
    result = snapshot.state.tasks["t"].result
    assert result is not None
    return manager.archive.value(result)


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_what_was_got_may_change(scheme: str, tmp_path: Path) -> None:
    with opened_store(scheme, tmp_path) as store:
        async with managed(store) as manager:
            active = await _begun(manager)
            frozen = freeze(_original(10), manager.addresser)
            snapshot = await manager.record(
                active, [ev.TaskCompleted(at=START, task=TaskId("t"), result=frozen)]
            )
            for _ in range(2):
                _spoil(_result(manager, snapshot))
                _spoil(thaw(frozen))
                _spoil(manager.archive.document(RUN, 1))
            await manager.record(active, [ev.Spent(at=START, api_calls=1)])
            assert _result(manager, await manager.look(RUN, 1)) == _original(10)
            assert _result(manager, await manager.look(RUN, 2)) == _original(10)
            assert (await manager.look(RUN, 1)).digest == snapshot.digest
            assert not verify_store(manager.archive).findings


@pytest.mark.parametrize("reducer", REDUCERS)
def test_contributions_may_change_afterwards(reducer: Any) -> None:
    given: dict[str, Any] = {"merge": {"a": [1]}, "sum": 1, "max": 1}
    value = given.get(reducer, [[1]])
    held = contribution(reducer, value, Addresser())
    before = context_data(held)
    _spoil(value)
    _spoil(context_data(held))
    assert context_data(held) == before


@pytest.mark.anyio
async def test_events_in_a_list_that_changes(tmp_path: Path) -> None:
    with opened_store("memory", tmp_path) as store:
        async with managed(store) as manager:
            active = await _begun(manager)
            events: list[ev.Event] = [ev.Spent(at=START, api_calls=1)]
            snapshot = await manager.record(active, events)
            events.append(ev.Spent(at=START, api_calls=5))
            assert (await manager.look(RUN)).state.metrics.api_calls == 1
            assert len(snapshot.header.events) == 1


@pytest.mark.anyio
async def test_states_and_their_parts_cannot_be_changed(tmp_path: Path) -> None:
    with opened_store("memory", tmp_path) as store:
        async with managed(store) as manager:
            active = await _begun(manager)
            task = active.state.tasks["t"]
            for target, name in (
                (active.state, "status"),
                (task, "status"),
                (active.state.metrics, "api_calls"),
            ):
                with pytest.raises(AttributeError):
                    setattr(target, name, "changed")
            with pytest.raises(TypeError):
                active.state.tasks["t"] = task  # type: ignore[index]
