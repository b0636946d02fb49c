"""What events about agents, tasks, judgements and content do to a state."""

from typing import Literal

import pytest

from orchestra.errors import IllegalEvent
from orchestra.ids import AgentId, Digest, Instant, PhaseId, TaskId
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply
from orchestra.model.records import Blocker, Decision, Issue, Output, Part, Score, Verdict
from orchestra.model.reducers import Appended, Merged, Summed
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value
from tests.unit.model.states import (
    AGENT,
    AT,
    COMPLETED,
    FAILED,
    LAUNCHED,
    PHASE,
    PLANNED,
    RESULT,
    TASK,
    started,
)


def test_a_task_from_plan_to_result() -> None:
    state = started(PLANNED)
    assert state.tasks[TASK].status == "pending"
    state = apply(state, LAUNCHED)
    assert (state.tasks[TASK].status, state.agents[AGENT].status) == ("running", "launched")
    assert state.agents[AGENT].task == TASK
    state = apply(state, COMPLETED)
    assert (state.tasks[TASK].status, state.tasks[TASK].result) == ("completed", RESULT)
    assert (state.agents[AGENT].status, state.agents[AGENT].progress) == ("completed", 1.0)
    assert (state.completed_tasks, state.confidence.overall) == (1, 0.7)
    assert [sample.value for sample in state.agents[AGENT].history] == [0.7]


def test_a_duration_is_known_once_a_task_is_over() -> None:
    state = started(PLANNED, LAUNCHED)
    assert state.tasks[TASK].duration_us is None
    done = apply(state, ev.TaskCompleted(at=Instant(AT + 25), task=TASK))
    assert done.tasks[TASK].duration_us == 25


def test_a_failure_is_open_until_the_task_is_settled() -> None:
    state = started(PLANNED, LAUNCHED, FAILED)
    assert (state.tasks[TASK].status, state.open_failures, state.has_open_failure) == ("pending", 1, True)
    assert apply(state, FAILED).open_failures == 1
    assert apply(state, COMPLETED).open_failures == 0
    assert apply(state, ev.TaskRetired(at=AT, task=TASK, outcome="skipped")).open_failures == 0
    assert apply(state, PLANNED).open_failures == 0


def test_a_final_failure_ends_the_task() -> None:
    state = started(PLANNED, LAUNCHED, ev.TaskFailed(at=AT, task=TASK, failure=FAILED.failure, final=True))
    assert state.tasks[TASK].status == "failed"
    with pytest.raises(IllegalEvent, match="is failed already"):
        apply(state, COMPLETED)


@pytest.mark.parametrize("outcome", ["skipped", "retired", "abandoned"])
def test_a_task_and_its_agent_are_left_in_the_same_word(
    outcome: Literal["skipped", "retired", "abandoned"],
) -> None:
    state = started(PLANNED, LAUNCHED, ev.TaskRetired(at=AT, task=TASK, outcome=outcome))
    assert (state.tasks[TASK].status, state.agents[AGENT].status) == (outcome, outcome)


@pytest.mark.parametrize("late", [COMPLETED, FAILED, LAUNCHED])
def test_a_late_word_about_a_retired_task_is_refused(late: ev.Event) -> None:
    state = started(PLANNED, LAUNCHED, ev.TaskRetired(at=AT, task=TASK, outcome="abandoned", reason="stuck"))
    assert state.agents[AGENT].status == "abandoned"
    with pytest.raises(IllegalEvent, match="is abandoned already"):
        apply(state, late)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (COMPLETED, "never planned"),
        (LAUNCHED, "never planned"),
        (ev.TextEmitted(at=AT, agent=AGENT, text="x"), "never launched"),
        (ev.MilestoneReached(at=AT, agent=AGENT), "never launched"),
        (ev.MessageStreamed(at=AT, message="m", text="x"), "not streaming"),
    ],
)
def test_what_does_not_fit_names_why_and_changes_nothing(event: ev.Event, said: str) -> None:
    state = started()
    with pytest.raises(IllegalEvent, match=said):
        apply(state, event)
    assert state == started()


def test_a_completed_task_is_not_planned_again() -> None:
    with pytest.raises(IllegalEvent, match="completed already"):
        apply(started(PLANNED, LAUNCHED, COMPLETED), PLANNED)


def test_a_milestone_changes_only_what_it_says() -> None:
    blocker = Blocker(by="OPENAI_API_KEY", reason="no key", at=AT)
    first = ev.MilestoneReached(at=AT, agent=AGENT, progress=0.5, step="parse", blockers=(blocker,))
    state = started(PLANNED, LAUNCHED, first)
    state = apply(state, ev.MilestoneReached(at=AT, agent=AGENT, step_number=3, private=RESULT))
    agent = state.agents[AGENT]
    assert (agent.progress, agent.step, agent.step_number, agent.private) == (0.5, "parse", 3, RESULT)
    assert agent.blockers == (blocker,)
    assert apply(state, ev.MilestoneReached(at=AT, agent=AGENT, blockers=())).agents[AGENT].blockers == ()


def test_it_is_known_where_an_agent_is_and_when_it_was_last_heard_of() -> None:
    """CHECKLIST 000.15."""
    state = started(PLANNED, LAUNCHED)
    assert (state.agents[AGENT].phase, state.agents[AGENT].updated_at) == (PHASE, AT)
    state = apply(state, ev.MilestoneReached(at=Instant(AT + 25), agent=AGENT, progress=0.5))
    assert (state.agents[AGENT].phase, state.agents[AGENT].updated_at) == (PHASE, AT + 25)
    elsewhere, other = PhaseId("write"), TaskId("write/1/structure")
    at = Instant(AT + 60)
    state = apply(state, ev.TaskPlanned(at=at, task=other, agent=AGENT, phase=elsewhere))
    assert (state.agents[AGENT].phase, state.agents[AGENT].updated_at) == (PHASE, AT + 25)
    state = apply(state, ev.AgentLaunched(at=at, agent=AGENT, task=other))
    assert (state.agents[AGENT].phase, state.agents[AGENT].updated_at) == (elsewhere, at)


def test_streamed_text_gathers_and_goes_with_the_result() -> None:
    state = started(PLANNED, LAUNCHED, ev.TextEmitted(at=AT, agent=AGENT, text="Hel"))
    state = apply(state, ev.TextEmitted(at=AT, agent=AGENT, text="lo"))
    assert state.agents[AGENT].partial == "Hello"
    assert apply(state, COMPLETED).agents[AGENT].partial == ""


def test_a_decision_is_logged_and_remembered_by_its_agent() -> None:
    decision = Decision(at=AT, agent=AGENT, kind="choice", description="Go left", alternatives=("right",))
    state = started(PLANNED, LAUNCHED, ev.DecisionMade(at=AT, decision=decision))
    assert list(state.decisions) == [decision]
    assert state.agents[AGENT].last_decision == "Go left"


def test_confidence_of_an_agent_and_overall() -> None:
    state = started(PLANNED, LAUNCHED, ev.ConfidenceReported(at=AT, agent=AGENT, value=0.9))
    assert (state.agents[AGENT].confidence, state.confidence.overall) == (0.9, 0.9)
    state = apply(state, ev.ConfidenceReported(at=AT, value=0.4))
    assert (state.agents[AGENT].confidence, state.confidence.overall) == (0.9, 0.4)
    assert len(state.confidence.history) == 2


def test_an_evaluation_keeps_its_scores_one_by_one() -> None:
    apollo = AgentId("apollo")

    def scored(criterion: str, score: float, round: int = 1) -> ev.CriterionScored:
        issue = Issue(description=f"weak {criterion}")
        mark = Score(criterion=criterion, score=score)
        return ev.CriterionScored(
            at=AT, evaluation="e", agent=apollo, phase=PHASE, score=mark, round=round, issues=(issue,)
        )

    state = started(scored("evidence", 0.2), scored("coverage", 0.9), scored("evidence", 0.4))
    assert {each.criterion: each.score for each in state.evaluations["e"].scores} == {
        "coverage": 0.9,
        "evidence": 0.4,
    }
    verdict = Verdict(kind="revise", score=0.6)
    state = apply(
        state, ev.EvaluationCompleted(at=AT, evaluation="e", agent=apollo, phase=PHASE, verdict=verdict)
    )
    again = apply(state, scored("evidence", 0.8, round=2))
    assert [each.verdict for each in again.evaluations["e"].iterations] == [verdict]
    assert len(again.evaluations["e"].scores) == 1


def test_a_message_streams_and_ends() -> None:
    post = ev.MessagePosted(at=AT, message="m", role="assistant", status="streaming")
    tool = Part(kind="tool_call", data=RESULT)
    state = started(post, ev.MessageStreamed(at=AT, message="m", text="Hel"))
    state = apply(state, ev.MessageStreamed(at=AT, message="m", text="lo", parts=(tool,)))
    state = apply(state, ev.MessageStreamed(at=Instant(AT + 9), message="m", text="!", status="complete"))
    message = state.messages["m"]
    assert [part.text for part in message.parts] == ["Hello", "", "!"]
    assert (message.status, message.completed_at, message.created_at) == ("complete", AT + 9, AT)
    with pytest.raises(IllegalEvent, match="not streaming"):
        apply(state, ev.MessageStreamed(at=AT, message="m", text="?"))


def test_context_joins_by_its_reducer() -> None:
    one, two = Value(b"\x01"), Value(b"\x02")

    def gives(name: str, contribution: Appended | Merged | Summed) -> ev.ContextContributed:
        return ev.ContextContributed(at=AT, name=name, contribution=contribution)

    state = started(
        gives("list", Appended(items=Vec([one]))),
        gives("list", Appended(items=Vec([two]))),
        gives("map", Merged(entries=Table([("a", one), ("b", one)]))),
        gives("map", Merged(entries=Table([("a", two)]))),
        gives("sum", Summed(total=1)),
        gives("sum", Summed(total=2.5)),
    )
    assert state.context["list"] == Appended(items=Vec([one, two]))
    assert state.context["map"] == Merged(entries=Table([("a", two), ("b", one)]))
    assert state.context["sum"] == Summed(total=3.5)
    with pytest.raises(IllegalEvent, match="reduced by append, not by sum"):
        apply(state, gives("list", Summed(total=1)))


def test_outputs_are_referenced() -> None:
    output = Output(digest=Digest(b"d" * 32), media_type="text/plain", size=3, task=TaskId("t"), at=AT)
    assert started(ev.OutputWritten(at=AT, path="a/b.md", output=output)).outputs["a/b.md"] == output
