"""Drafts, copies with changes, and what every event does."""

from typing import get_args

import attrs
import pytest

from orchestra.errors import IllegalEvent
from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.apply.apply import _HANDLERS, apply_all, begin, change
from orchestra.model.frozen import evolve
from orchestra.model.records import Task
from orchestra.model.state import Draft, State, WorkflowRef


def _state() -> State:
    started = ev.RunStarted(at=Instant(1), run=RunId("r"), workflow=WorkflowRef(name="w"))
    return apply_all(begin(started), [ev.PhaseStarted(at=Instant(2), phase=PhaseId("p"))])


def _planned(name: str) -> ev.TaskPlanned:
    return ev.TaskPlanned(
        at=Instant(3), task=TaskId(name), agent=AgentId("a"), phase=PhaseId("p"), visit=1, description="do"
    )


def test_every_event_does_something_to_a_draft() -> None:
    assert set(_HANDLERS) == set(get_args(ev.Event))


def test_a_draft_follows_and_the_state_it_began_as_stays() -> None:
    before = _state()
    draft = Draft.of(before)
    change(draft, [_planned("p/a"), _planned("p/b")])
    assert len(before.tasks) == 0
    assert list(draft.tasks) == ["p/a", "p/b"]
    frozen = draft.freeze()
    assert type(frozen) is State
    change(draft, [_planned("p/c")])
    assert list(frozen.tasks) == ["p/a", "p/b"]
    assert frozen == apply_all(before, [_planned("p/a"), _planned("p/b")])


def test_an_event_that_does_not_fit_takes_those_beside_it_back() -> None:
    draft = Draft.of(_state())
    held = draft.freeze()
    lost = ev.TaskCompleted(at=Instant(4), task=TaskId("p/nowhere"))
    with pytest.raises(IllegalEvent):
        change(draft, [_planned("p/a"), lost])
    assert draft.freeze() == held


def test_a_copy_differs_in_what_was_changed_alone() -> None:
    state = apply_all(_state(), [_planned("p/a")])
    task = state.tasks["p/a"]
    assert evolve(task, status="running", attempts=2) == attrs.evolve(task, status="running", attempts=2)
    assert evolve(task) == task
    assert evolve(state, status="paused") == attrs.evolve(state, status="paused")
    with pytest.raises(TypeError, match="Task has no field 'colour'"):
        evolve(task, colour="red")
    assert isinstance(task, Task)


def test_planned_and_launched_together_is_the_same_as_one_after_the_other() -> None:
    launched = ev.AgentLaunched(at=Instant(4), agent=AgentId("a"), task=TaskId("p/a"), attempt=1)
    done = ev.TaskCompleted(at=Instant(5), task=TaskId("p/a"))
    again: list[ev.Event] = [_planned("p/b"), attrs.evolve(launched, task=TaskId("p/b"), at=Instant(6))]
    events: list[ev.Event] = [_planned("p/a"), launched, done, *again, _planned("p/c")]
    state = _state()
    for event in events:
        state = apply_all(state, [event])
    assert apply_all(_state(), events) == state
    assert [task.status for task in state.tasks.values()] == ["completed", "running", "pending"]
