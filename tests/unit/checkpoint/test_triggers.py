"""Every turn says why its snapshot was taken, and whether it is one to keep."""

from typing import Any

import pytest

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.checkpoint.triggers import is_marked, triggers_of
from orchestra.ids import AgentId, Digest, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.records import Decision, Effect, Failure, Score, Verdict
from orchestra.model.snapshot import TRIGGERS, Trigger
from orchestra.model.state import State, WorkflowRef

AT = Instant(1)
A, P, T = AgentId("a"), PhaseId("p"), TaskId("t")
DEFAULT = CheckpointSettings()
FAILURE = Failure(error="E", message="m", at=AT)
STARTED = ev.RunStarted(at=AT, run=RunId("r"), workflow=WorkflowRef(name="w"), thresholds=(0.5, 0.75))


def _wait(kind: Any) -> ev.WaitOpened:
    return ev.WaitOpened(at=AT, wait="w", waits_for=kind)


def _effect(risky: bool) -> ev.EffectIntended:
    return ev.EffectIntended(at=AT, effect="e", details=Effect(name="n", task=T, risky=risky, intended_at=AT))


def _decision() -> ev.DecisionMade:
    return ev.DecisionMade(at=AT, decision=Decision(at=AT, agent=A, kind="k", description="d"))


def _score() -> ev.CriterionScored:
    score = Score(criterion="c", score=1.0)
    return ev.CriterionScored(at=AT, evaluation="e", agent=A, phase=P, score=score)


def _verdict() -> ev.EvaluationCompleted:
    verdict = Verdict(kind="accept", score=1.0)
    return ev.EvaluationCompleted(at=AT, evaluation="e", agent=A, phase=P, verdict=verdict)


BY_EVENT: list[tuple[ev.Event, Trigger | None]] = [
    (STARTED, "run_started"),
    (ev.PhaseStarted(at=AT, phase=P), "phase_start"),
    (ev.PhaseCompleted(at=AT, phase=P), "phase_completed"),
    (ev.TaskPlanned(at=AT, task=T, agent=A, phase=P), None),
    (ev.AgentLaunched(at=AT, agent=A, task=T), "agent_launched"),
    (ev.MilestoneReached(at=AT, agent=A), "milestone"),
    (ev.TextEmitted(at=AT, agent=A, text="x"), "milestone"),
    (ev.TaskCompleted(at=AT, task=T), "specialist_finished"),
    (ev.TaskFailed(at=AT, task=T, failure=FAILURE), "error_encountered"),
    (ev.TaskRetired(at=AT, task=T, outcome="skipped"), None),
    (_decision(), "decision"),
    (ev.ConfidenceReported(at=AT, value=1.0), None),
    (ev.MessagePosted(at=AT, message="m", role="user"), None),
    (ev.MessageStreamed(at=AT, message="m"), "milestone"),
    (_score(), "evaluation_completed"),
    (_verdict(), "evaluation_completed"),
    (_wait("question"), "user_question"),
    (_wait("dependency"), "dependency_request"),
    (_wait("rate_limit"), "rate_limited"),
    (_wait("pause"), "paused"),
    (_wait("breakpoint"), "debug_breakpoint"),
    (_wait("timer"), None),
    (ev.WaitClosed(at=AT, wait="w"), None),
    (_effect(risky=True), "before_risky_operation"),
    (_effect(risky=False), None),
    (ev.EffectSettled(at=AT, effect="e", status="done"), None),
    (ev.Spent(at=AT), None),
    (ev.SnapshotRequested(at=AT, why="user_requested"), "user_requested"),
    (ev.SnapshotRequested(at=AT, why="periodic"), "periodic"),
    (ev.SnapshotRequested(at=AT, why="memory_pressure_high"), "memory_pressure_high"),
    (ev.RunPaused(at=AT), "paused"),
    (ev.RunResumed(at=AT), None),
    (ev.RunResumed(at=AT, recovered=True), "recovered"),
    (ev.RolledBack(at=AT, from_seq=2, to_seq=1, reason="r", generation=1), "rolled_back"),
    (
        ev.Forked(at=AT, run=RunId("s"), from_run=RunId("r"), from_seq=1, from_digest=Digest(bytes(32))),
        "forked",
    ),
    (ev.RunEnded(at=AT, outcome="shutdown"), "shutdown"),
    (ev.RunEnded(at=AT, outcome="completed"), "completed"),
    (ev.RunEnded(at=AT, outcome="failed"), "failed"),
    (ev.RunEnded(at=AT, outcome="cancelled"), "cancelled"),
]


@pytest.mark.parametrize(("event", "trigger"), BY_EVENT, ids=[f"{n}" for n in range(len(BY_EVENT))])
def test_what_each_event_triggers(event: ev.Event, trigger: Trigger | None) -> None:
    state = begin(STARTED)
    found = triggers_of(state, state, [event], DEFAULT)
    assert found == (() if trigger is None else (trigger,))


def test_every_trigger_can_happen() -> None:
    from_events = {trigger for _, trigger in BY_EVENT}
    assert set(TRIGGERS) - from_events == {"confidence_threshold_crossed", "interval"}


def test_triggers_come_in_their_order_and_once() -> None:
    state = begin(STARTED)
    events: list[ev.Event] = [_decision(), ev.PhaseStarted(at=AT, phase=P), _decision(), _wait("question")]
    assert triggers_of(state, state, events, DEFAULT) == ("phase_start", "decision", "user_question")


def _after(state: State, *values: float) -> State:
    return apply_all(state, [ev.ConfidenceReported(at=AT, value=value) for value in values])


@pytest.mark.parametrize(
    ("before", "values", "crossed"),
    [
        ([], [0.9], False),
        ([], [0.75], False),
        ([], [0.7], True),
        ([], [0.4], True),
        ([0.6], [0.65], False),
        ([0.6], [0.74], False),
        ([0.6], [0.75], True),
        ([0.6], [0.4], True),
        ([0.4], [0.45], False),
        ([0.6], [0.4, 0.6], True),
        ([0.6], [], False),
    ],
    ids=range(11),
)
def test_thresholds(before: list[float], values: list[float], crossed: bool) -> None:
    """A confidence that dips below and comes back within a turn has crossed it, too."""
    earlier = _after(begin(STARTED), *before)
    found = triggers_of(earlier, _after(earlier, *values), [], DEFAULT)
    assert found == (("confidence_threshold_crossed",) if crossed else ())


def test_no_thresholds_are_never_crossed() -> None:
    state = begin(ev.RunStarted(at=AT, run=RunId("r"), workflow=WorkflowRef(name="w")))
    assert triggers_of(state, _after(state, 0.1, 0.9), [], DEFAULT) == ()


@pytest.mark.parametrize(
    ("before", "after", "interval", "passed"),
    [
        (0, 1, 0, False),
        (0, 1, 1, True),
        (4, 5, 5, True),
        (5, 6, 5, False),
        (4, 11, 5, True),
        (5, 5, 5, False),
    ],
)
def test_intervals(before: int, after: int, interval: int, passed: bool) -> None:
    settings = CheckpointSettings(interval=interval)
    found = triggers_of(_completed(before), _completed(after), [], settings)
    assert found == (("interval",) if passed else ())
    assert is_marked(found, CheckpointSettings(interval=interval, on=frozenset())) == passed


def _completed(count: int) -> State:
    events: list[ev.Event] = []
    for number in range(count):
        task = TaskId(f"t{number}")
        events += [
            ev.TaskPlanned(at=AT, task=task, agent=A, phase=P),
            ev.TaskCompleted(at=AT, task=task),
        ]
    return apply_all(begin(STARTED), events)


def test_marks_follow_the_settings() -> None:
    assert is_marked(("decision",), DEFAULT)
    assert not is_marked(("agent_launched", "milestone"), DEFAULT)
    assert not is_marked((), DEFAULT)
    assert is_marked(("milestone",), CheckpointSettings(on=frozenset({"milestone"})))
    assert not is_marked(("decision",), CheckpointSettings(on=frozenset({"milestone"})))
