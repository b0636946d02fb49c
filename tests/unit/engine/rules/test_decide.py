"""The rules by which Atlas decides, as pure functions: a state in, a move out."""

from typing import Any

import pytest

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze, thaw
from orchestra.engine.board import Board
from orchestra.engine.rules.decide import breakpoints, decide, enter, phase_limit, timers
from orchestra.engine.rules.failure import failures
from orchestra.engine.rules.launch import launches
from orchestra.engine.rules.moves import Move
from orchestra.engine.rules.phase_end import leave
from orchestra.engine.view import View
from orchestra.ids import Instant, PhaseId, TaskId, run_id
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.records import Failure
from orchestra.model.state import State, WorkflowRef
from orchestra.model.workflow import Policy, Retry, Workflow
from tests.unit.engine.support import does, flow, kinds, phase, policy

ADDRESSER = Addresser()
BEGAN = Instant(1_000_000)


def _state(*events: ev.Event) -> State:
    started = ev.RunStarted(at=BEGAN, run=run_id("run"), workflow=WorkflowRef(name="flow"))
    return apply_all(begin(started), events)


def _entered(name: str = "work") -> ev.PhaseStarted:
    return ev.PhaseStarted(at=BEGAN, phase=PhaseId(name))


def _ask(rule: Any, workflow: Workflow, state: State, now: int = BEGAN, board: Board | None = None) -> Move:
    view = View(workflow, state, thaw, ADDRESSER)
    kept = board or Board()
    kept.refresh(view)
    move: Move = rule(view, kept, Instant(now))
    return move


WORK = flow(phase("work", does("a"), does("b", needs=("a",)), does("c")), policy=policy("restart", "fail"))


def test_a_run_begins_with_its_first_phase() -> None:
    workflow = flow(phase("first"), phase("second"))
    (event,) = _ask(enter, workflow, _state()).events
    assert isinstance(event, ev.PhaseStarted)
    assert event.phase == "first"
    assert not _ask(enter, workflow, _state(_entered("first"))).events


def test_only_a_running_run_is_decided_about() -> None:
    paused = _state(_entered(), ev.RunPaused(at=BEGAN))
    assert _ask(decide, WORK, paused) == Move()
    ended = _state(_entered(), ev.RunEnded(at=BEGAN, outcome="cancelled"))
    assert _ask(decide, WORK, ended) == Move()


def test_deciding_twice_says_the_same() -> None:
    state = _state(_entered())
    assert _ask(decide, WORK, state) == _ask(decide, WORK, state)


def test_what_needs_nothing_is_launched() -> None:
    move = _ask(launches, WORK, _state(_entered()))
    assert kinds(move.events) == ["task_planned", "agent_launched"] * 2
    assert [event.task for event in move.events if isinstance(event, ev.AgentLaunched)] == [
        "work/a",
        "work/c",
    ]


def test_as_many_are_launched_as_there_is_room() -> None:
    narrow = flow(phase("work", does("a", foreach="[1, 2, 3, 4]")), policy=Policy(concurrency=3))
    move = _ask(launches, narrow, _state(_entered()))
    assert kinds(move.events).count("agent_launched") == 3


def _failed(at: int = BEGAN, *, recoverable: bool = True) -> State:
    failure = Failure(error="E", message="m", at=Instant(at), recoverable=recoverable)
    moves = _ask(launches, WORK, _state(_entered())).events
    return apply_all(
        _state(_entered(), *moves), (ev.TaskFailed(at=Instant(at), task=TaskId("work/a"), failure=failure),)
    )


RETRY = flow(
    phase("work", does("a", retry=Retry(attempts=3, backoff_us=500)), does("c")),
    policy=policy("restart", "fail"),
)


def test_a_further_attempt_waits_for_its_time() -> None:
    early = _ask(launches, RETRY, _failed(), BEGAN + 499)
    assert (early.events, early.wake) == ((), BEGAN + 500)
    (event,) = _ask(launches, RETRY, _failed(), BEGAN + 500).events
    assert isinstance(event, ev.AgentLaunched)
    assert event.attempt == 2


def test_a_failure_of_the_future_is_not_waited_for() -> None:
    """Its time was told by a clock that was set since."""
    assert _ask(launches, RETRY, _failed(BEGAN + 10**12), BEGAN).events


def test_a_run_fails_once_its_siblings_have_ended() -> None:
    state = _failed(recoverable=False)
    assert _ask(failures, WORK, state).hold
    done = apply_all(state, (ev.TaskCompleted(at=BEGAN, task=TaskId("work/c")),))
    assert kinds(_ask(failures, WORK, done).events) == ["decision_made", "run_ended"]


def _limited(until: int) -> State:
    return _state(
        _entered(),
        ev.WaitOpened(at=BEGAN, wait="w", waits_for="rate_limit", until=Instant(until)),
        ev.WaitOpened(at=BEGAN, wait="person", waits_for="question"),
    )


def test_waits_end_when_their_time_has_come() -> None:
    early = _ask(timers, WORK, _limited(BEGAN + 10), BEGAN + 9)
    assert (early.events, early.wake) == ((), BEGAN + 10)
    (event,) = _ask(timers, WORK, _limited(BEGAN + 10), BEGAN + 10).events
    assert isinstance(event, ev.WaitClosed)
    assert event.wait == "w"


def test_a_clock_that_was_set_back_does_not_prolong_a_wait() -> None:
    assert _ask(timers, WORK, _limited(BEGAN + 10), BEGAN - 1).events


@pytest.mark.parametrize(
    ("now", "since", "due"),
    [
        (BEGAN + 5, 0, BEGAN + 100),
        (BEGAN + 50, BEGAN + 40, BEGAN + 140),  # taken up later
        (BEGAN - 500, BEGAN - 600, BEGAN - 500),  # the clock was set back
    ],
)
def test_a_phase_has_its_time_while_it_is_played(now: int, since: int, due: int) -> None:
    workflow = flow(phase("work", does("a"), timeout_us=100))
    board = Board()
    board.since = Instant(since)
    move = _ask(phase_limit, workflow, _state(_entered()), now, board)
    assert (move.wake or now) == due
    board.since = Instant(0)
    assert kinds(_ask(phase_limit, workflow, _state(_entered()), BEGAN + 100, board).events) == ["run_ended"]


def test_a_breakpoint_opens_once_holds_and_lets_go() -> None:
    workflow = flow(phase("work", does("a"), breakpoint=True))
    (opened,) = _ask(breakpoints, workflow, _state(_entered())).events
    assert isinstance(opened, ev.WaitOpened)
    waiting = _state(_entered(), opened)
    assert _ask(breakpoints, workflow, waiting).hold
    passed = apply_all(waiting, (ev.WaitClosed(at=BEGAN, wait=opened.wait),))
    assert _ask(breakpoints, workflow, passed) == Move()


def test_a_phase_is_left_only_when_it_is_completed() -> None:
    workflow = flow(phase("work", next=["later"]), phase("later"))
    assert _ask(leave, workflow, _state(_entered())) == Move()
    done = _state(_entered(), ev.PhaseCompleted(at=BEGAN, phase=PhaseId("work")))
    (event,) = _ask(leave, workflow, done).events
    assert isinstance(event, ev.PhaseStarted)
    assert event.phase == "later"


def test_the_key_of_an_assignment_follows_from_what_it_is_made_of() -> None:
    view = View(WORK, _state(_entered()), thaw, ADDRESSER)
    first, second, third = WORK.phases[0].specialists
    assert view.sources(first) == []
    keys = {
        view.key(first.agent, "task", []),
        view.key(first.agent, "another task", []),
        view.key(third.agent, "task", []),
        view.key(first.agent, "task", [], "item"),
    }
    assert len(keys) == 4
    moves = _ask(launches, WORK, _state(_entered())).events
    known = []
    for value in (1, 2, 1):
        result = freeze(value, ADDRESSER)
        done = ev.TaskCompleted(at=BEGAN, task=TaskId("work/a"), result=result)
        state = apply_all(_state(_entered(), *moves), (done,))
        view = View(WORK, state, thaw, ADDRESSER)
        known.append(view.key(second.agent, "task", view.sources(second)))
    assert known[0] == known[2] != known[1]
