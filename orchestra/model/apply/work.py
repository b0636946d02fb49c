"""What events about agents, tasks and decisions do to a state. See `orchestra.model.apply.apply`."""

from collections.abc import Callable, Collection
from typing import Any, Final

from orchestra.errors import IllegalEvent
from orchestra.ids import AgentId, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.draft import Draft
from orchestra.model.frozen import changer, evolve, maker
from orchestra.model.records import AgentState, AgentStatus, Confidence, ConfidenceSample, Task
from orchestra.model.state import State

OVERALL = AgentId("overall")
"""Who a sample of the overall confidence is said to come from."""

_task: Final = maker(Task)
_agent_state: Final = maker(AgentState)
_done: Final = changer(Task, "status", "result", "confidence", "failure", "finished_at")
_ended: Final = changer(AgentState, "status", "progress", "output", "partial", "updated_at")
_put_to_work: Final = changer(
    AgentState, "role", "status", "phase", "task", "attempts", "model", "max_steps", "updated_at"
)
_UNKNOWN: Final = AgentState(role="mercury")
"""An agent of which nothing is known yet."""
_OPEN = frozenset({"pending", "running"})


def plan_and_launch(draft: Draft, planned: ev.TaskPlanned, event: ev.AgentLaunched) -> bool:
    """Plan an assignment and launch its first attempt in one go, if that is all there is to it."""
    if event.task != planned.task or draft.tasks.get(event.task) is not None:
        return False
    task = _task(
        agent=event.agent,
        phase=planned.phase,
        visit=planned.visit,
        description=planned.description,
        effect_key=planned.effect_key,
        key=planned.key,
        by=planned.by,
        round=planned.round,
        status="running",
        attempts=event.attempt,
        started_at=event.at,
    )
    agent = _at_work(draft.agents.get(event.agent), event, task)
    draft.change(agents=draft.agents.set(event.agent, agent), tasks=draft.tasks.set(event.task, task))
    return True


def apply_plan(draft: Draft, event: ev.TaskPlanned) -> None:
    """An assignment was planned, perhaps once more."""
    held = draft.tasks.get(event.task)
    task = _task(
        agent=event.agent,
        phase=event.phase,
        visit=event.visit,
        description=event.description,
        effect_key=event.effect_key,
        key=event.key,
        by=event.by,
        round=event.round,
    )
    if held is not None:
        _planned_anew(draft, event, held)
    draft.change(tasks=draft.tasks.set(event.task, task))


def _planned_anew(draft: Draft, event: ev.TaskPlanned, held: Task) -> None:
    done = held.status == "completed"
    if done and held.key == event.key:
        raise IllegalEvent(kind=event.kind, run=draft.run, reason=f"task {event.task!r} is completed already")
    draft.change(
        completed_tasks=draft.completed_tasks - int(done),
        open_failures=draft.open_failures - is_open_failure(held),
    )
    if held.key != event.key:
        _forget(draft, held.agent, event)


def _forget(draft: Draft, agent_id: AgentId, event: ev.TaskPlanned) -> None:
    """Let an agent not go on from what was saved: it was made from something else."""
    agent = draft.agents.get(agent_id)
    if agent is None or agent.task != event.task:
        return
    fresh = evolve(agent, private=None, partial="", progress=0.0, step=None, step_number=0, blockers=())
    _set_agent(draft, agent_id, fresh)


def is_open_failure(task: Task | None) -> int:
    """1 when the last attempt at a task failed and it is not settled since, else 0."""
    return int(
        task is not None and task.failure is not None and task.status in ("pending", "running", "failed")
    )


def _launched(draft: Draft, event: ev.AgentLaunched) -> None:
    task = _open_task(draft, event.task, event.kind)
    agent = _at_work(draft.agents.get(event.agent), event, task)
    running = evolve(
        task,
        agent=event.agent,
        status="running",
        attempts=event.attempt,
        started_at=task.started_at or event.at,
    )
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


def _milestone(draft: Draft, event: ev.MilestoneReached) -> None:
    agent = _agent(draft, event.agent, event.kind)
    changed = evolve(
        agent,
        status="running",
        progress=agent.progress if event.progress is None else event.progress,
        step=agent.step if event.step is None else event.step,
        step_number=agent.step_number if event.step_number is None else event.step_number,
        private=agent.private if event.private is None else event.private,
        blockers=agent.blockers if event.blockers is None else event.blockers,
        updated_at=event.at,
    )
    _set_agent(draft, event.agent, changed)


def _emitted(draft: Draft, event: ev.TextEmitted) -> None:
    agent = _agent(draft, event.agent, event.kind)
    _set_agent(draft, event.agent, evolve(agent, partial=agent.partial + event.text))


def _completed(draft: Draft, event: ev.TaskCompleted) -> None:
    task = _open_task(draft, event.task, event.kind)
    done = _done(
        task,
        status="completed",
        result=event.result,
        confidence=event.confidence,
        failure=None,
        finished_at=event.at,
    )
    agents, agent = draft.agents, draft.agents.get(task.agent)
    if agent is not None:
        agents = agents.set(task.agent, _rested(agent, event))
    draft.change(
        tasks=draft.tasks.set(event.task, done),
        agents=agents,
        completed_tasks=draft.completed_tasks + 1,
        open_failures=draft.open_failures - is_open_failure(task),
    )
    said = event.confidence
    if agent is not None and said is not None and not _is_said(agent, task, said):
        _confident(draft, task.agent, said, event.at)


def _rested(agent: AgentState, event: ev.TaskCompleted) -> AgentState:
    """An agent whose task is done."""
    return _ended(
        agent,
        status="completed",
        progress=1.0,
        output=event.output or agent.output,
        partial="",
        updated_at=event.at,
    )


def _is_said(agent: AgentState, task: Task, confidence: float) -> bool:
    """Whether an agent said on the way already how sure it is of its result."""
    if not agent.history or task.started_at is None:
        return False
    last = agent.history[len(agent.history) - 1]
    return last.at >= task.started_at and last.value == confidence


def _failed(draft: Draft, event: ev.TaskFailed) -> None:
    task = _open_task(draft, event.task, event.kind)
    status = "failed" if event.final else "pending"
    failed = evolve(
        task,
        status=status,
        failure=event.failure,
        failures=task.failures + 1,
        finished_at=event.at,
    )
    failures = draft.open_failures + 1 - is_open_failure(task)
    draft.change(tasks=draft.tasks.set(event.task, failed), open_failures=failures)
    _agent_ended(draft, task.agent, "failed", event.at)


def _retired(draft: Draft, event: ev.TaskRetired) -> None:
    task = _open_task(draft, event.task, event.kind, _OPEN | {"failed"})
    retired = evolve(task, status=event.outcome, finished_at=event.at)
    failures = draft.open_failures - is_open_failure(task)
    draft.change(tasks=draft.tasks.set(event.task, retired), open_failures=failures)
    _agent_ended(draft, task.agent, event.outcome, event.at)


def _reported(draft: Draft, event: ev.ConfidenceReported) -> None:
    if event.agent is not None:
        _confident(draft, event.agent, event.value, event.at)
    else:
        draft.change(confidence=_sampled(draft.confidence, OVERALL, event.value, event.at))


def _decided(draft: Draft, event: ev.DecisionMade) -> None:
    decision = event.decision
    draft.change(decisions=draft.decisions.append(decision))
    agent = draft.agents.get(decision.agent)
    if agent is not None:
        _set_agent(draft, decision.agent, evolve(agent, last_decision=decision.description))


def _confident(draft: Draft, agent_id: AgentId, value: float, at: Instant) -> None:
    draft.change(confidence=_sampled(draft.confidence, agent_id, value, at))
    agent = draft.agents.get(agent_id)
    if agent is not None:
        sample = ConfidenceSample(value=value, agent=agent_id, at=at)
        sure = evolve(agent, confidence=value, history=agent.history.append(sample))
        _set_agent(draft, agent_id, sure)


def _sampled(confidence: Confidence, agent: AgentId, value: float, at: Instant) -> Confidence:
    """A sample joins the history; overall counts what the run said of itself, else the first sample."""
    sample = ConfidenceSample(value=value, agent=agent, at=at)
    overall = value if agent == OVERALL or confidence.overall is None else confidence.overall
    return evolve(confidence, overall=overall, history=confidence.history.append(sample))


def _agent(state: State, agent: AgentId, kind: str) -> AgentState:
    held = state.agents.get(agent)
    if held is None:
        raise IllegalEvent(kind=kind, run=state.run, reason=f"agent {agent!r} was never launched")
    return held


def _open_task(state: State, task: TaskId, kind: str, statuses: Collection[str] = _OPEN) -> Task:
    held = state.tasks.get(task)
    if held is None:
        raise IllegalEvent(kind=kind, run=state.run, reason=f"task {task!r} was never planned")
    if held.status not in statuses:
        raise IllegalEvent(kind=kind, run=state.run, reason=f"task {task!r} is {held.status} already")
    return held


def _set_agent(draft: Draft, agent: AgentId, changed: AgentState) -> None:
    draft.change(agents=draft.agents.set(agent, changed))


def _agent_ended(draft: Draft, agent_id: AgentId, status: AgentStatus, at: Instant) -> None:
    agent = draft.agents.get(agent_id)
    if agent is not None:
        _set_agent(draft, agent_id, evolve(agent, status=status, updated_at=at))


HANDLERS: Final[dict[type[ev.Event], Callable[[Draft, Any], None]]] = {
    ev.TaskPlanned: apply_plan,
    ev.AgentLaunched: _launched,
    ev.MilestoneReached: _milestone,
    ev.TextEmitted: _emitted,
    ev.TaskCompleted: _completed,
    ev.TaskFailed: _failed,
    ev.TaskRetired: _retired,
    ev.DecisionMade: _decided,
    ev.ConfidenceReported: _reported,
}
"""What events about agents, tasks and decisions do to a draft."""
