"""What events about agents, tasks, judgements and content do to a state. See `orchestra.model.apply`."""

from typing import assert_never

from orchestra.errors import IllegalEvent
from orchestra.ids import AgentId, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.evolve import evolve
from orchestra.model.parts import (
    AgentState,
    AgentStatus,
    Confidence,
    ConfidenceSample,
    Evaluation,
    Iteration,
    Message,
    Part,
    Task,
)
from orchestra.model.reducers import ReducerMismatch, combine
from orchestra.model.state import State

OVERALL = AgentId("overall")
"""Who a sample of the overall confidence is said to come from."""

_OPEN = frozenset({"pending", "running"})


def agent_event(
    state: State, event: ev.TaskPlanned | ev.AgentLaunched | ev.MilestoneReached | ev.TextEmitted
) -> State:
    """An agent was given a task, started, saved its progress or spoke."""
    match event:
        case ev.TaskPlanned():
            return _planned(state, event)
        case ev.AgentLaunched():
            return _launched(state, event)
        case ev.MilestoneReached():
            return _milestone(state, event)
        case ev.TextEmitted():
            agent = _agent(state, event.agent, event.kind)
            return _with_agent(state, event.agent, evolve(agent, partial=agent.partial + event.text))
        case _:
            assert_never(event)


def _planned(state: State, event: ev.TaskPlanned) -> State:
    held = state.tasks.get(event.task)
    done = held is not None and held.status == "completed"
    if held is not None and done and held.key == event.key:
        raise IllegalEvent(kind=event.kind, run=state.run, reason=f"task {event.task!r} is completed already")
    task = Task(
        agent=event.agent,
        phase=event.phase,
        visit=event.visit,
        description=event.description,
        effect_key=event.effect_key,
        key=event.key,
        by=event.by,
        round=event.round,
    )
    following = evolve(
        state,
        tasks=state.tasks.set(event.task, task),
        completed_tasks=state.completed_tasks - int(done),
        open_failures=state.open_failures - is_open_failure(held),
    )
    return following if held is None or held.key == event.key else _forgotten(following, held.agent, event)


def _forgotten(state: State, agent_id: AgentId, event: ev.TaskPlanned) -> State:
    """The state in which an agent does not go on from what was saved: it was made from something else."""
    agent = state.agents.get(agent_id)
    if agent is None or agent.task != event.task:
        return state
    fresh = evolve(agent, private=None, partial="", progress=0.0, step=None, step_number=0, blockers=())
    return _with_agent(state, agent_id, fresh)


def is_open_failure(task: Task | None) -> int:
    """1 when the last attempt at a task failed and it is not settled since, else 0."""
    return int(
        task is not None and task.failure is not None and task.status in ("pending", "running", "failed")
    )


def _launched(state: State, event: ev.AgentLaunched) -> State:
    task = _open_task(state, event.task, event.kind)
    held = _for_task(state.agents.get(event.agent), event)
    agent = evolve(
        held,
        role=event.role,
        status="launched",
        phase=task.phase,
        task=event.task,
        attempts=event.attempt,
        model=event.model,
        max_steps=event.max_steps,
        updated_at=event.at,
    )
    running = evolve(
        task,
        agent=event.agent,
        status="running",
        attempts=event.attempt,
        started_at=task.started_at or event.at,
    )
    return evolve(
        state, agents=state.agents.set(event.agent, agent), tasks=state.tasks.set(event.task, running)
    )


def _for_task(held: AgentState | None, event: ev.AgentLaunched) -> AgentState:
    """What an agent brings along: all to another attempt, confidence and spending to a new task."""
    if held is None:
        return AgentState(role=event.role)
    if held.task == event.task:
        return held
    return AgentState(role=event.role, tokens=held.tokens, confidence=held.confidence, history=held.history)


def _milestone(state: State, event: ev.MilestoneReached) -> State:
    agent = _agent(state, event.agent, event.kind)
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
    return _with_agent(state, event.agent, changed)


def task_event(state: State, event: ev.TaskCompleted | ev.TaskFailed | ev.TaskRetired) -> State:
    """An attempt at a task came to its end."""
    task = _open_task(state, event.task, event.kind)
    match event:
        case ev.TaskCompleted():
            return _completed(state, event, task)
        case ev.TaskFailed():
            status = "failed" if event.final else "pending"
            failed = evolve(
                task,
                status=status,
                failure=event.failure,
                failures=task.failures + 1,
                finished_at=event.at,
            )
            failures = state.open_failures + 1 - is_open_failure(task)
            following = evolve(state, tasks=state.tasks.set(event.task, failed), open_failures=failures)
            return _agent_ended(following, task.agent, "failed", event.at)
        case ev.TaskRetired():
            retired = evolve(task, status=event.outcome, finished_at=event.at)
            failures = state.open_failures - is_open_failure(task)
            following = evolve(state, tasks=state.tasks.set(event.task, retired), open_failures=failures)
            ended: AgentStatus = "abandoned" if event.outcome == "abandoned" else "retired"
            return _agent_ended(following, task.agent, ended, event.at)
        case _:
            assert_never(event)


def _completed(state: State, event: ev.TaskCompleted, task: Task) -> State:
    done = evolve(
        task,
        status="completed",
        result=event.result,
        confidence=event.confidence,
        failure=None,
        finished_at=event.at,
    )
    following = evolve(
        state,
        tasks=state.tasks.set(event.task, done),
        completed_tasks=state.completed_tasks + 1,
        open_failures=state.open_failures - is_open_failure(task),
    )
    agent = state.agents.get(task.agent)
    if agent is None:
        return following
    ended = evolve(
        agent,
        status="completed",
        progress=1.0,
        output=event.output or agent.output,
        partial="",
        updated_at=event.at,
    )
    following = evolve(following, agents=following.agents.set(task.agent, ended))
    if event.confidence is None or _is_said(agent, task, event.confidence):
        return following
    return _confident(following, task.agent, event.confidence, event.at)


def _is_said(agent: AgentState, task: Task, confidence: float) -> bool:
    """Whether an agent said on the way already how sure it is of its result."""
    if not agent.history or task.started_at is None:
        return False
    last = agent.history[len(agent.history) - 1]
    return last.at >= task.started_at and last.value == confidence


def judgement(
    state: State,
    event: ev.DecisionMade | ev.ConfidenceReported | ev.CriterionScored | ev.EvaluationCompleted,
) -> State:
    """A decision, a confidence, a score or a verdict."""
    match event:
        case ev.DecisionMade():
            return _decided(state, event)
        case ev.ConfidenceReported():
            if event.agent is not None:
                return _confident(state, event.agent, event.value, event.at)
            return evolve(state, confidence=_sampled(state.confidence, OVERALL, event.value, event.at))
        case ev.CriterionScored():
            return _scored(state, event)
        case ev.EvaluationCompleted():
            return _evaluated(state, event)
        case _:
            assert_never(event)


def _decided(state: State, event: ev.DecisionMade) -> State:
    decision = event.decision
    following = evolve(state, decisions=state.decisions.append(decision))
    agent = state.agents.get(decision.agent)
    if agent is None:
        return following
    return _with_agent(following, decision.agent, evolve(agent, last_decision=decision.description))


def _scored(state: State, event: ev.CriterionScored) -> State:
    held = _evaluation(state, event)
    others = tuple(score for score in held.scores if score.criterion != event.score.criterion)
    scored = evolve(
        held,
        scores=(*others, event.score),
        issues=(*held.issues, *event.issues),
        feedback=held.feedback + event.feedback,
    )
    return evolve(state, evaluations=state.evaluations.set(event.evaluation, scored))


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


def _evaluated(state: State, event: ev.EvaluationCompleted) -> State:
    held = _evaluation(state, event)
    iteration = Iteration(round=held.round, verdict=event.verdict, at=event.at)
    judged = evolve(
        held,
        verdict=event.verdict,
        scores=event.scores or held.scores,
        issues=(*held.issues, *event.issues),
        iterations=(*held.iterations, iteration),
    )
    return evolve(state, evaluations=state.evaluations.set(event.evaluation, judged))


def content(
    state: State, event: ev.MessagePosted | ev.MessageStreamed | ev.ContextContributed | ev.OutputWritten
) -> State:
    """Messages, context and outputs."""
    match event:
        case ev.MessagePosted():
            return evolve(state, messages=state.messages.set(event.message, _message(state, event)))
        case ev.MessageStreamed():
            return evolve(state, messages=state.messages.set(event.message, _streamed(state, event)))
        case ev.ContextContributed():
            try:
                joined = combine(state.context.get(event.name), event.contribution)
            except ReducerMismatch as mismatch:
                raise IllegalEvent(
                    kind=event.kind, run=state.run, reason=f"{event.name!r}: {mismatch}"
                ) from None
            return evolve(state, context=state.context.set(event.name, joined))
        case ev.OutputWritten():
            return evolve(state, outputs=state.outputs.set(event.path, event.output))
        case _:
            assert_never(event)


def _message(state: State, event: ev.MessagePosted) -> Message:
    held = state.messages.get(event.message)
    return Message(
        role=event.role,
        agent=event.agent,
        parts=event.parts,
        status=event.status,
        step_number=event.step_number,
        model=event.model,
        max_steps=event.max_steps,
        created_at=held.created_at if held else event.at,
        updated_at=event.at,
        completed_at=None if event.status == "streaming" else event.at,
    )


def _streamed(state: State, event: ev.MessageStreamed) -> Message:
    held = state.messages.get(event.message)
    if held is None or held.status != "streaming":
        raise IllegalEvent(
            kind=event.kind, run=state.run, reason=f"message {event.message!r} is not streaming"
        )
    return evolve(
        held,
        parts=(*_grown(held.parts, event.text), *event.parts),
        status=event.status,
        updated_at=event.at,
        completed_at=None if event.status == "streaming" else event.at,
    )


def _grown(parts: tuple[Part, ...], text: str) -> tuple[Part, ...]:
    if not text:
        return parts
    if parts and parts[-1].kind == "text":
        return (*parts[:-1], evolve(parts[-1], text=parts[-1].text + text))
    return (*parts, Part(kind="text", text=text))


def _confident(state: State, agent_id: AgentId, value: float, at: Instant) -> State:
    following = evolve(state, confidence=_sampled(state.confidence, agent_id, value, at))
    agent = state.agents.get(agent_id)
    if agent is None:
        return following
    sample = ConfidenceSample(value=value, agent=agent_id, at=at)
    sure = evolve(following.agents[agent_id], confidence=value, history=agent.history.append(sample))
    return _with_agent(following, agent_id, sure)


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


def _open_task(state: State, task: TaskId, kind: str) -> Task:
    held = state.tasks.get(task)
    if held is None:
        raise IllegalEvent(kind=kind, run=state.run, reason=f"task {task!r} was never planned")
    if held.status not in _OPEN:
        raise IllegalEvent(kind=kind, run=state.run, reason=f"task {task!r} is {held.status} already")
    return held


def _with_agent(state: State, agent: AgentId, changed: AgentState) -> State:
    return evolve(state, agents=state.agents.set(agent, changed))


def _agent_ended(state: State, agent_id: AgentId, status: AgentStatus, at: Instant) -> State:
    agent = state.agents.get(agent_id)
    if agent is None:
        return state
    return _with_agent(state, agent_id, evolve(agent, status=status, updated_at=at))
