"""What events about the run itself do to a state. See `orchestra.model.apply`."""

from typing import assert_never

from orchestra.errors import IllegalEvent
from orchestra.ids import EffectKey, Instant, RunId
from orchestra.model import events as ev
from orchestra.model.apply_work import is_open_failure
from orchestra.model.evolve import evolve
from orchestra.model.parts import AgentState, Confidence, Effect, RollbackRecord, Task, Wait
from orchestra.model.state import FINAL, Cursor, Origin, RunStatus, State, Visit
from orchestra.model.tree import Table

_ACTIVE_AGENT = frozenset({"launched", "running", "waiting"})


def started(event: ev.RunStarted) -> State:
    """The first state of a run."""
    return State(
        run=event.run,
        family=RunId(event.run),
        workflow=event.workflow,
        status="running",
        created_at=event.at,
        updated_at=event.at,
        inputs=event.inputs,
        confidence=Confidence(thresholds=event.thresholds),
        environment=event.environment,
    )


def progress(
    state: State,
    event: ev.PhaseStarted | ev.PhaseCompleted | ev.RoundStarted | ev.Spent | ev.SnapshotRequested,
) -> State:
    """Phases begin and end, resources are spent, snapshots are asked for."""
    match event:
        case ev.PhaseStarted():
            return _phase_started(state, event)
        case ev.PhaseCompleted():
            return _phase_completed(state, event)
        case ev.RoundStarted():
            return evolve(state, cursor=evolve(state.cursor, round=event.round))
        case ev.Spent():
            return _spent(state, event)
        case ev.SnapshotRequested():
            return state
        case _:
            assert_never(event)


def _phase_started(state: State, event: ev.PhaseStarted) -> State:
    if state.status in FINAL:
        raise IllegalEvent(kind=event.kind, run=state.run, reason=f"the run is {state.status}")
    visit = 1 + (state.visits.get(event.phase) or 0)
    cursor = Cursor(phase=event.phase, visit=visit, ordinal=state.cursor.ordinal + 1, round=1)
    path = state.path.append(Visit(phase=event.phase, visit=visit, started_at=event.at))
    visits = state.visits.set(event.phase, visit)
    return evolve(state, cursor=cursor, path=path, visits=visits, status="running")


def _phase_completed(state: State, event: ev.PhaseCompleted) -> State:
    if state.cursor.phase != event.phase or not state.path:
        raise IllegalEvent(
            kind=event.kind,
            run=state.run,
            reason=f"the run is in {state.cursor.phase!r}, not in {event.phase!r}",
        )
    last = len(state.path) - 1
    return evolve(state, path=state.path.set(last, evolve(state.path[last], completed_at=event.at)))


def _spent(state: State, event: ev.Spent) -> State:
    held = state.metrics
    metrics = evolve(
        held,
        api_calls=held.api_calls + event.api_calls,
        tokens_in=held.tokens_in + event.tokens_in,
        tokens_out=held.tokens_out + event.tokens_out,
        cost_micros=held.cost_micros + event.cost_micros,
        elapsed_us=held.elapsed_us + event.elapsed_us,
        memory_peak_bytes=max(held.memory_peak_bytes, event.memory_peak_bytes),
    )
    following = evolve(state, metrics=metrics)
    agent = state.agents.get(event.agent) if event.agent is not None else None
    if event.agent is None or agent is None:
        return following
    spent = evolve(agent, tokens=agent.tokens + event.tokens_in + event.tokens_out, updated_at=event.at)
    return evolve(following, agents=following.agents.set(event.agent, spent))


def wait_or_effect(
    state: State, event: ev.WaitOpened | ev.WaitClosed | ev.EffectIntended | ev.EffectSettled
) -> State:
    """The run waits for the world, or acts on it."""
    match event:
        case ev.WaitOpened():
            return _wait_opened(state, event)
        case ev.WaitClosed():
            return _wait_closed(state, event)
        case ev.EffectIntended():
            return evolve(state, effects=state.effects.set(event.effect, event.details))
        case ev.EffectSettled():
            effect: Effect | None = state.effects.get(event.effect)
            if effect is None:
                raise IllegalEvent(
                    kind=event.kind, run=state.run, reason=f"effect {event.effect!r} was never intended"
                )
            settled = evolve(effect, status=event.status, outcome=event.outcome, settled_at=event.at)
            return evolve(state, effects=state.effects.set(event.effect, settled))
        case _:
            assert_never(event)


def _wait_opened(state: State, event: ev.WaitOpened) -> State:
    wait = Wait(
        kind=event.waits_for,
        agent=event.agent,
        task=event.task,
        text=event.text,
        choices=event.choices,
        details=event.details,
        until=event.until,
        opened_at=event.at,
    )
    following = evolve(state, waits=state.waits.set(event.wait, wait))
    return _agent_status(following, event.agent, "waiting", event.at)


def _wait_closed(state: State, event: ev.WaitClosed) -> State:
    wait = state.waits.get(event.wait)
    if wait is None or wait.status != "open":
        raise IllegalEvent(kind=event.kind, run=state.run, reason=f"nothing waits for {event.wait!r}")
    closed = evolve(wait, status="closed", answer=event.answer, closed_at=event.at)
    status: RunStatus = "running" if state.status == "waiting" else state.status
    following = evolve(state, waits=state.waits.set(event.wait, closed), status=status)
    return _agent_status(following, wait.agent, "running", event.at)


def _agent_status(state: State, agent_id: str | None, status: str, at: Instant) -> State:
    agent = state.agents.get(agent_id) if agent_id is not None else None
    if agent_id is None or agent is None:
        return state
    return evolve(state, agents=state.agents.set(agent_id, evolve(agent, status=status, updated_at=at)))


def life(
    state: State,
    event: ev.RunPaused | ev.RunWaiting | ev.RunResumed | ev.RolledBack | ev.Forked | ev.RunEnded,
) -> State:
    """The run pauses, goes on, goes back, begins elsewhere or ends."""
    match event:
        case ev.RunPaused():
            return evolve(state, status="paused")
        case ev.RunWaiting():
            return evolve(state, status="waiting")
        case ev.RunResumed():
            return _resumed(state, event)
        case ev.RolledBack():
            return _rolled_back(state, event)
        case ev.Forked():
            return _forked(state, event)
        case ev.RunEnded():
            return _ended(state, event)
        case _:
            assert_never(event)


def _resumed(state: State, event: ev.RunResumed) -> State:
    if state.status in FINAL:
        raise IllegalEvent(kind=event.kind, run=state.run, reason=f"the run is {state.status}")
    metrics = evolve(state.metrics, recoveries=state.metrics.recoveries + int(event.recovered))
    running = evolve(state, status="running", failure=None, metrics=metrics)
    if event.live:
        return running
    return _settled(_forgiven(running) if state.status == "failed" else running)


def _forgiven(state: State) -> State:
    """The state in which nothing has failed for good: what failed may be tried anew."""
    tasks = state.tasks
    for name, task in state.tasks.items():
        if is_open_failure(task):
            tasks = tasks.set(name, evolve(task, status="pending", failures=0, failure=None))
    return evolve(state, tasks=tasks, open_failures=0)


def _settled(state: State) -> State:
    """The state in which nothing runs: what was running is pending again."""
    tasks: Table[Task] = state.tasks
    for name, task in state.tasks.items():
        if task.status == "running":
            tasks = tasks.set(name, evolve(task, status="pending"))
    agents: Table[AgentState] = state.agents
    for name, agent in state.agents.items():
        if agent.status in _ACTIVE_AGENT:
            agents = agents.set(name, evolve(agent, status="idle"))
    return evolve(state, tasks=tasks, agents=agents)


def _begun_anew(state: State, generation: int) -> State:
    """The state in which pending work has not been tried in this generation, and has its effect keys."""
    tasks: Table[Task] = state.tasks
    for name, task in state.tasks.items():
        if task.status == "pending":
            key = task.effect_key and EffectKey(f"{task.effect_key.rpartition('/')[0]}/{generation}")
            fresh = evolve(task, attempts=0, failures=0, failure=None, effect_key=key, started_at=None)
            tasks = tasks.set(name, fresh)
    failures = sum(is_open_failure(task) for task in tasks.values())
    return evolve(state, tasks=tasks, open_failures=failures)


def _rolled_back(state: State, event: ev.RolledBack) -> State:
    record = RollbackRecord(
        at=event.at,
        from_seq=event.from_seq,
        to_seq=event.to_seq,
        reason=event.reason,
        generation=event.generation,
        kept=event.kept,
        undone=event.undone,
    )
    metrics = evolve(state.metrics, rollbacks=state.metrics.rollbacks + 1)
    confidence = state.confidence
    if confidence.overall is not None and event.confidence_factor != 1.0:
        confidence = evolve(confidence, overall=confidence.overall * event.confidence_factor)
    return evolve(
        _begun_anew(_settled(state), event.generation),
        status="running",
        failure=None,
        generation=event.generation,
        metrics=metrics,
        confidence=confidence,
        rollbacks=state.rollbacks.append(record),
    )


def _forked(state: State, event: ev.Forked) -> State:
    origin = Origin(run=event.from_run, seq=event.from_seq, digest=event.from_digest)
    begun = _settled(_forgiven(state) if state.status == "failed" else state)
    return evolve(begun, run=event.run, origin=origin, status="running", failure=None)


def edited(state: State, event: ev.DefinitionAccepted | ev.StateEdited) -> State:
    """A person changed what the run works with."""
    match event:
        case ev.DefinitionAccepted():
            return evolve(state, workflow=event.workflow)
        case ev.StateEdited():
            section, _, name = event.path.partition(".")
            if section == "inputs" and event.inputs is not None:
                return evolve(state, inputs=event.inputs)
            if section == "context" and event.context is not None and name:
                return evolve(state, context=state.context.set(name, event.context))
            raise IllegalEvent(kind=event.kind, run=state.run, reason=f"{event.path!r} cannot be set")
        case _:
            assert_never(event)


def _ended(state: State, event: ev.RunEnded) -> State:
    if state.status in FINAL:
        raise IllegalEvent(kind=event.kind, run=state.run, reason=f"the run is {state.status} already")
    outcome: dict[str, RunStatus] = {
        "completed": "completed",
        "failed": "failed",
        "cancelled": "cancelled",
        "shutdown": "paused" if state.status == "running" else state.status,
    }
    return evolve(state, status=outcome[event.outcome], failure=event.failure or state.failure)
