"""What events about the run itself do to a state, and how each is summed up."""

from typing import get_args

import attrs
import pytest

from orchestra.errors import IllegalEvent
from orchestra.ids import Digest, EffectKey, Instant, PhaseId, RunId
from orchestra.limits import HEADLINE_CHARS, HEADLINE_EVENTS
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply, apply_all
from orchestra.model.headline import headline, headlines
from orchestra.model.records import Effect, Failure, Metrics
from orchestra.model.state import WorkflowRef
from orchestra.model.value import Value
from tests.unit.model.states import AGENT, AT, COMPLETED, FAILED, LAUNCHED, PHASE, PLANNED, RUN, TASK, started

LAUNCHED_AGAIN = attrs.evolve(LAUNCHED, attempt=2)
FORKED = ev.Forked(at=AT, run=RunId("new"), from_run=RUN, from_seq=3, from_digest=Digest(b"d" * 32))


def test_phases_are_visited_and_counted() -> None:
    def visit(phase: str) -> list[ev.Event]:
        name = PhaseId(phase)
        return [ev.PhaseStarted(at=AT, phase=name), ev.PhaseCompleted(at=AT, phase=name)]

    state = started(*visit("a"), *visit("b"), *visit("a"))
    assert (state.cursor.phase, state.cursor.visit, state.cursor.ordinal) == ("a", 2, 3)
    assert [(each.phase, each.visit, each.completed_at) for each in state.path] == [
        ("a", 1, AT),
        ("b", 1, AT),
        ("a", 2, AT),
    ]


def test_only_the_current_phase_completes() -> None:
    state = started(ev.PhaseStarted(at=AT, phase=PHASE))
    with pytest.raises(IllegalEvent, match="is in 'find', not in 'write'"):
        apply(state, ev.PhaseCompleted(at=AT, phase=PhaseId("write")))


def test_what_is_spent_adds_up() -> None:
    spent = ev.Spent(at=AT, agent=AGENT, api_calls=1, tokens_in=10, tokens_out=5, memory_peak_bytes=70)
    state = started(
        PLANNED, LAUNCHED, spent, ev.Spent(at=AT, tokens_in=1, elapsed_us=9, memory_peak_bytes=50)
    )
    assert (state.metrics.tokens, state.metrics.api_calls, state.metrics.elapsed_us) == (16, 1, 9)
    assert (state.metrics.memory_peak_bytes, state.agents[AGENT].tokens) == (70, 15)


def test_waiting_and_being_answered() -> None:
    asked = ev.WaitOpened(at=AT, wait="q", waits_for="question", text="Go on?", agent=AGENT)
    state = started(PLANNED, LAUNCHED, asked)
    assert (state.waits["q"].status, state.agents[AGENT].status) == ("open", "waiting")
    answered = apply(state, ev.WaitClosed(at=AT, wait="q", answer=Value(b"\x01")))
    assert (answered.waits["q"].answer, answered.agents[AGENT].status) == (Value(b"\x01"), "running")
    with pytest.raises(IllegalEvent, match="nothing waits for 'q'"):
        apply(answered, ev.WaitClosed(at=AT, wait="q"))


def test_an_effect_is_recorded_before_and_after() -> None:
    intended = ev.EffectIntended(
        at=AT, effect="mail", details=Effect(name="send mail", task=TASK, intended_at=AT)
    )
    state = started(intended, ev.EffectSettled(at=AT, effect="mail", status="done"))
    assert state.effects["mail"].status == "done"
    with pytest.raises(IllegalEvent, match="never intended"):
        apply(state, ev.EffectSettled(at=AT, effect="other", status="done"))


def test_pausing_and_going_on_makes_running_pending() -> None:
    state = started(PLANNED, LAUNCHED, ev.RunPaused(at=AT, reason="lunch"))
    assert state.status == "paused"
    state = apply(state, ev.RunResumed(at=AT, recovered=True))
    assert (state.status, state.metrics.recoveries) == ("running", 1)
    assert (state.tasks[TASK].status, state.agents[AGENT].status) == ("pending", "idle")


def test_a_failed_run_may_go_on_and_forgets_its_failure() -> None:
    failure = Failure(error="X", message="y", at=AT)
    state = started(ev.RunEnded(at=AT, outcome="failed", failure=failure))
    assert (state.status, state.failure, state.is_resumable) == ("failed", failure, True)
    assert apply(state, ev.RunResumed(at=AT)).failure is None


@pytest.mark.parametrize("outcome", ["completed", "cancelled"])
def test_what_is_over_stays_over(outcome: str) -> None:
    state = started(ev.RunEnded(at=AT, outcome=outcome))  # type: ignore[arg-type]
    assert not state.is_resumable
    for event in (
        ev.RunResumed(at=AT),
        ev.RunEnded(at=AT, outcome="failed"),
        ev.PhaseStarted(at=AT, phase=PHASE),
    ):
        with pytest.raises(IllegalEvent, match=f"the run is {outcome}"):
            apply(state, event)


def test_a_run_whose_process_stops_in_order_is_paused() -> None:
    assert started(ev.RunEnded(at=AT, outcome="shutdown")).status == "paused"
    waiting = started(ev.RunWaiting(at=AT, reason="somebody"))
    assert apply(waiting, ev.RunEnded(at=AT, outcome="shutdown")).status == "waiting"


def test_a_rollback_is_on_the_record() -> None:
    state = started(PLANNED, LAUNCHED, ev.ConfidenceReported(at=AT, value=0.8))
    back = ev.RolledBack(at=AT, from_seq=9, to_seq=4, reason="wrong", generation=1, confidence_factor=0.5)
    state = apply(state, back)
    assert (state.generation, state.metrics.rollbacks, state.confidence.overall) == (1, 1, 0.4)
    assert (state.rollbacks[0].to_seq, state.tasks[TASK].status) == (4, "pending")


def test_a_fork_knows_where_it_came_from() -> None:
    state = apply(started(ev.RunEnded(at=AT, outcome="completed")), FORKED)
    assert (state.run, state.family, state.status) == ("new", RUN, "running")
    assert state.origin is not None
    assert state.origin.seq == 3


@pytest.mark.parametrize("last", [LAUNCHED_AGAIN, FAILED])
def test_a_fork_counts_the_attempts_at_open_work_from_the_start(last: ev.Event) -> None:
    keyed = attrs.evolve(PLANNED, effect_key=EffectKey("r/find/1/structure/0"))
    tried = (LAUNCHED_AGAIN, FAILED) if last is FAILED else (LAUNCHED_AGAIN,)
    state = apply(started(keyed, LAUNCHED, FAILED, *tried, ev.Spent(at=AT, tokens_in=7)), FORKED)
    task = state.tasks[TASK]
    assert (task.status, task.attempts, task.failures, task.failure) == ("pending", 0, 0, None)
    assert task.effect_key == keyed.effect_key
    assert (state.agents[AGENT].attempts, state.open_failures) == (0, 0)
    assert state.metrics == Metrics(), "its origin has paid for what it brings along"


def test_a_fork_keeps_how_many_attempts_a_result_took() -> None:
    state = apply(started(PLANNED, LAUNCHED, FAILED, LAUNCHED_AGAIN, COMPLETED), FORKED)
    assert (state.tasks[TASK].attempts, state.tasks[TASK].failures, state.agents[AGENT].attempts) == (2, 1, 2)


def test_a_run_starts_once() -> None:
    with pytest.raises(IllegalEvent, match="has started already"):
        apply(started(), ev.RunStarted(at=AT, run=RUN, workflow=WorkflowRef(name="w")))


def test_the_newest_event_dates_the_state() -> None:
    state = apply_all(
        started(), [ev.RunPaused(at=Instant(5)), ev.SnapshotRequested(at=Instant(9), why="periodic")]
    )
    assert state.updated_at == 9


def test_every_kind_has_its_own_name() -> None:
    assert len(set(ev.EVENT_KINDS)) == len(ev.EVENT_KINDS) == len(get_args(ev.Event))


def test_headlines_say_who_and_what() -> None:
    state = started(PLANNED, LAUNCHED, COMPLETED)
    assert headline(COMPLETED, state).who == AGENT
    assert headline(COMPLETED, state).figures == (("confidence", 0.7),)
    assert headline(FAILED, state).what == f"{TASK}: ValueError: no"


def test_headlines_are_bounded() -> None:
    long = ev.RunPaused(at=AT, reason="x" * 5000)
    lines = headlines((long,) * (HEADLINE_EVENTS + 7), started())
    assert len(lines) == HEADLINE_EVENTS + 1
    assert lines[-1].figures == (("events", 7),)
    assert len(lines[0].what) == HEADLINE_CHARS
