"""What events about work do to a state: agents, tasks, decisions, judgements, messages, context, outputs."""

from collections.abc import Callable, Collection
from typing import Any, Final

from orchestra.ids import AgentId, Instant
from orchestra.model import events as ev
from orchestra.model.apply.checks import illegal
from orchestra.model.apply.conversation import end_stream
from orchestra.model.frozen import changer, converter, evolve, maker
from orchestra.model.records import (
    AgentState,
    Confidence,
    ConfidenceSample,
    Evaluation,
    Iteration,
    Task,
)
from orchestra.model.reducers import ReducerMismatch, combine
from orchestra.model.state import Draft, State

OVERALL = AgentId("overall")  # who a sample of the overall confidence is said to come from

_pending: Final = converter(ev.TaskPlanned, Task)
_running: Final = converter(ev.TaskPlanned, Task, "agent", "status", "attempts", "started_at")
_agent_state: Final = maker(AgentState)
_done: Final = changer(Task, "status", "result", "confidence", "failure", "finished_at")
_ended: Final = changer(AgentState, "status", "progress", "output", "partial", "updated_at")
_put_to_work: Final = changer(
    AgentState, "role", "status", "phase", "task", "attempts", "model", "max_steps", "updated_at"
)
_UNKNOWN: Final = AgentState(role="mercury")  # an agent of which nothing is known yet
_OPEN = frozenset({"pending", "running"})
_OfTask = ev.AgentLaunched | ev.TaskCompleted | ev.TaskFailed | ev.TaskRetired


def plan_and_launch(draft: Draft, planned: ev.TaskPlanned, event: ev.AgentLaunched) -> bool:
    """Plan an assignment and launch its first attempt in one go, if that is all there is to it."""
    if event.task != planned.task or draft.tasks.get(event.task) is not None:
        return False
    task = _running(planned, agent=event.agent, status="running", attempts=event.attempt, started_at=event.at)
    agent = _at_work(draft.agents.get(event.agent), event, task)
    draft.change(agents=draft.agents.set(event.agent, agent), tasks=draft.tasks.set(event.task, task))
    return True


def apply_plan(draft: Draft, event: ev.TaskPlanned) -> None:
    """An assignment was planned, perhaps once more."""
    held = draft.tasks.get(event.task)
    if held is not None:
        _plan_again(draft, event, held)
    draft.change(tasks=draft.tasks.set(event.task, _pending(event)))


def _plan_again(draft: Draft, event: ev.TaskPlanned, held: Task) -> None:
    done = held.status == "completed"
    if done and held.key == event.key:
        raise illegal(event, draft.run, f"task {event.task!r} is completed already")
    draft.change(
        completed_tasks=draft.completed_tasks - int(done),
        open_failures=draft.open_failures - is_open_failure(held),
    )
    agent = draft.agents.get(held.agent)
    if held.key != event.key and agent is not None and agent.task == event.task:
        # It must not go on from what it saved, which was made from something else.
        fresh: dict[str, Any] = {"private": None, "partial": "", "progress": 0.0, "step": None}
        draft.change_agent(held.agent, **fresh, step_number=0, blockers=())


def is_open_failure(task: Task | None) -> int:
    """1 when the last attempt at a task failed and it is not settled since, else 0."""
    return int(
        task is not None and task.failure is not None and task.status in ("pending", "running", "failed")
    )


def _launch(draft: Draft, event: ev.AgentLaunched) -> None:
    task = _open_task(draft, event)
    agent = _at_work(draft.agents.get(event.agent), event, task)
    started = task.started_at or event.at
    running = evolve(task, agent=event.agent, status="running", attempts=event.attempt, started_at=started)
    draft.change(agents=draft.agents.set(event.agent, agent), tasks=draft.tasks.set(event.task, running))


def _at_work(held: AgentState | None, event: ev.AgentLaunched, task: Task) -> AgentState:
    """An agent at work. It brings all along to another attempt, confidence and spending to a new task."""
    known = held or _UNKNOWN
    at_work: dict[str, Any] = {
        "role": event.role,
        "status": "launched",
        "phase": task.phase,
        "task": event.task,
        "attempts": event.attempt,
        "model": event.model,
        "max_steps": event.max_steps,
        "updated_at": event.at,
    }
    if known.task == event.task:
        return _put_to_work(known, **at_work)
    return _agent_state(tokens=known.tokens, confidence=known.confidence, history=known.history, **at_work)


def _reach_milestone(draft: Draft, event: ev.MilestoneReached) -> None:
    agent = _agent(draft, event)
    draft.change_agent(
        event.agent,
        status="running",
        progress=agent.progress if event.progress is None else event.progress,
        step=agent.step if event.step is None else event.step,
        step_number=agent.step_number if event.step_number is None else event.step_number,
        private=agent.private if event.private is None else event.private,
        blockers=agent.blockers if event.blockers is None else event.blockers,
        updated_at=event.at,
    )


def _emit_text(draft: Draft, event: ev.TextEmitted) -> None:
    draft.change_agent(event.agent, partial=_agent(draft, event).partial + event.text)


def _complete(draft: Draft, event: ev.TaskCompleted) -> None:
    task = _open_task(draft, event)
    said = event.confidence
    done = _done(
        task, status="completed", result=event.result, confidence=said, failure=None, finished_at=event.at
    )
    agents, agent = draft.agents, draft.agents.get(task.agent)
    if agent is not None:
        output = event.output or agent.output
        rested = _ended(
            agent, status="completed", progress=1.0, output=output, partial="", updated_at=event.at
        )
        agents = agents.set(task.agent, rested)
    draft.change(
        tasks=draft.tasks.set(event.task, done),
        agents=agents,
        completed_tasks=draft.completed_tasks + 1,
        open_failures=draft.open_failures - is_open_failure(task),
    )
    if agent is not None and said is not None and said != last_confidence(agent, task):
        _add_confidence(draft, task.agent, said, event.at)


def last_confidence(agent: AgentState, task: Task) -> float | None:
    """The confidence that an agent reported last while it worked on a task."""
    if not agent.history or task.started_at is None:
        return None
    last = agent.history[len(agent.history) - 1]
    return last.value if last.at >= task.started_at else None


def _fail(draft: Draft, event: ev.TaskFailed) -> None:
    task = _open_task(draft, event)
    status, count = "failed" if event.final else "pending", task.failures + 1
    failed = evolve(task, status=status, failure=event.failure, failures=count, finished_at=event.at)
    failures = draft.open_failures + 1 - is_open_failure(task)
    draft.change(tasks=draft.tasks.set(event.task, failed), open_failures=failures)
    end_stream(draft, task.agent, "error", event.at)
    draft.change_agent(task.agent, status="failed", updated_at=event.at)


def _retire(draft: Draft, event: ev.TaskRetired) -> None:
    task = _open_task(draft, event, _OPEN | {"failed"})
    retired = evolve(task, status=event.outcome, finished_at=event.at)
    failures = draft.open_failures - is_open_failure(task)
    draft.change(tasks=draft.tasks.set(event.task, retired), open_failures=failures)
    end_stream(draft, task.agent, "interrupted", event.at)
    draft.change_agent(task.agent, status=event.outcome, updated_at=event.at)


def _report_confidence(draft: Draft, event: ev.ConfidenceReported) -> None:
    if event.agent is not None:
        _add_confidence(draft, event.agent, event.value, event.at)
    else:
        draft.change(confidence=_with_sample(draft.confidence, OVERALL, event.value, event.at))


def _decide(draft: Draft, event: ev.DecisionMade) -> None:
    decision = event.decision
    draft.change(decisions=draft.decisions.append(decision))
    draft.change_agent(decision.agent, last_decision=decision.description)


def _add_confidence(draft: Draft, agent_id: AgentId, value: float, at: Instant) -> None:
    draft.change(confidence=_with_sample(draft.confidence, agent_id, value, at))
    agent = draft.agents.get(agent_id)
    if agent is not None:
        sample = ConfidenceSample(value=value, agent=agent_id, at=at)
        draft.change_agent(agent_id, confidence=value, history=agent.history.append(sample))


def _with_sample(confidence: Confidence, agent: AgentId, value: float, at: Instant) -> Confidence:
    """A sample joins the history; overall counts what the run said of itself, else the first sample."""
    sample = ConfidenceSample(value=value, agent=agent, at=at)
    overall = value if agent == OVERALL or confidence.overall is None else confidence.overall
    return evolve(confidence, overall=overall, history=confidence.history.append(sample))


def _agent(state: State, event: ev.MilestoneReached | ev.TextEmitted) -> AgentState:
    held = state.agents.get(event.agent)
    if held is None:
        raise illegal(event, state.run, f"agent {event.agent!r} was never launched")
    return held


def _open_task(state: State, event: _OfTask, statuses: Collection[str] = _OPEN) -> Task:
    held = state.tasks.get(event.task)
    if held is None:
        raise illegal(event, state.run, f"task {event.task!r} was never planned")
    if held.status not in statuses:
        raise illegal(event, state.run, f"task {event.task!r} is {held.status} already")
    return held


def _score(draft: Draft, event: ev.CriterionScored) -> None:
    held = _evaluation(draft, event)
    others = tuple(score for score in held.scores if score.criterion != event.score.criterion)
    issues, feedback = (*held.issues, *event.issues), held.feedback + event.feedback
    scored = evolve(held, scores=(*others, event.score), issues=issues, feedback=feedback)
    draft.change(evaluations=draft.evaluations.set(event.evaluation, scored))


def _evaluation(state: State, event: ev.CriterionScored | ev.EvaluationCompleted) -> Evaluation:
    """The evaluation an event is about; scores about something else than what is judged now are dropped."""
    held = state.evaluations.get(event.evaluation)
    if held is not None and held.round == event.round and held.judged == event.judged:
        return held
    return Evaluation(
        agent=event.agent,
        phase=event.phase,
        visit=event.visit,
        round=event.round,
        judged=event.judged,
        iterations=held.iterations if held else (),
    )


def _conclude(draft: Draft, event: ev.EvaluationCompleted) -> None:
    held = _evaluation(draft, event)
    iteration = Iteration(round=held.round, verdict=event.verdict, at=event.at)
    scores, issues = event.scores or held.scores, (*held.issues, *event.issues)
    iterations = (*held.iterations, iteration)
    judged = evolve(held, verdict=event.verdict, scores=scores, issues=issues, iterations=iterations)
    draft.change(evaluations=draft.evaluations.set(event.evaluation, judged))


def _contribute(draft: Draft, event: ev.ContextContributed) -> None:
    try:
        joined = combine(draft.context.get(event.name), event.contribution)
    except ReducerMismatch as mismatch:
        raise illegal(event, draft.run, f"{event.name!r}: {mismatch}") from None
    draft.change(context=draft.context.set(event.name, joined))


HANDLERS: Final[dict[type[ev.Event], Callable[[Draft, Any], None]]] = {
    ev.TaskPlanned: apply_plan,
    ev.AgentLaunched: _launch,
    ev.MilestoneReached: _reach_milestone,
    ev.TextEmitted: _emit_text,
    ev.TaskCompleted: _complete,
    ev.TaskFailed: _fail,
    ev.TaskRetired: _retire,
    ev.DecisionMade: _decide,
    ev.ConfidenceReported: _report_confidence,
    ev.CriterionScored: _score,
    ev.EvaluationCompleted: _conclude,
    ev.ContextContributed: _contribute,
    ev.OutputWritten: lambda draft, event: draft.change(outputs=draft.outputs.set(event.path, event.output)),
}
"""What events about work do to a draft."""
