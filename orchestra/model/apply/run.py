"""What events about the run itself do to a state. See `orchestra.model.apply.apply`."""

from collections.abc import Callable
from typing import Any, Final

from orchestra.ids import EffectKey, RunId
from orchestra.model import events as ev
from orchestra.model.apply.checks import illegal
from orchestra.model.apply.work import is_open_failure
from orchestra.model.draft import Draft
from orchestra.model.frozen import changer, evolve, maker
from orchestra.model.records import Confidence, Metrics, RollbackRecord, Wait
from orchestra.model.state import TERMINAL, Cursor, Origin, RunStatus, State, Visit

_cursor: Final = maker(Cursor)
_visit: Final = maker(Visit)
_over: Final = changer(Visit, "completed_at")
_summed: Final = changer(
    Metrics, "api_calls", "tokens_in", "tokens_out", "cost_micros", "elapsed_us", "memory_peak_bytes"
)
_ACTIVE_AGENT = frozenset({"launched", "running", "waiting"})


def start_state(event: ev.RunStarted) -> State:
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


def _start_phase(draft: Draft, event: ev.PhaseStarted) -> None:
    if draft.status in TERMINAL:
        raise illegal(event, draft.run, f"the run is {draft.status}")
    visit = 1 + (draft.visits.get(event.phase) or 0)
    draft.change(
        cursor=_cursor(phase=event.phase, visit=visit, ordinal=draft.cursor.ordinal + 1, round=1),
        path=draft.path.append(_visit(phase=event.phase, visit=visit, started_at=event.at)),
        visits=draft.visits.set(event.phase, visit),
        status="running",
    )


def _complete_phase(draft: Draft, event: ev.PhaseCompleted) -> None:
    if draft.cursor.phase != event.phase or not draft.path:
        raise illegal(event, draft.run, f"the run is in {draft.cursor.phase!r}, not in {event.phase!r}")
    last = len(draft.path) - 1
    draft.change(path=draft.path.set(last, _over(draft.path[last], completed_at=event.at)))


def _spend(draft: Draft, event: ev.Spent) -> None:
    held = draft.metrics
    metrics = _summed(
        held,
        api_calls=held.api_calls + event.api_calls,
        tokens_in=held.tokens_in + event.tokens_in,
        tokens_out=held.tokens_out + event.tokens_out,
        cost_micros=held.cost_micros + event.cost_micros,
        elapsed_us=held.elapsed_us + event.elapsed_us,
        memory_peak_bytes=max(held.memory_peak_bytes, event.memory_peak_bytes),
    )
    draft.change(metrics=metrics)
    agent = draft.agents.get(event.agent) if event.agent is not None else None
    if agent is not None:
        tokens = agent.tokens + event.tokens_in + event.tokens_out
        draft.change_agent(event.agent, tokens=tokens, updated_at=event.at)


def _settle_effect(draft: Draft, event: ev.EffectSettled) -> None:
    effect = draft.effects.get(event.effect)
    if effect is None:
        raise illegal(event, draft.run, f"effect {event.effect!r} was never intended")
    settled = evolve(effect, status=event.status, outcome=event.outcome, settled_at=event.at)
    draft.change(effects=draft.effects.set(event.effect, settled))


def _open_wait(draft: Draft, event: ev.WaitOpened) -> None:
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
    draft.change(waits=draft.waits.set(event.wait, wait))
    draft.change_agent(event.agent, status="waiting", updated_at=event.at)


def _close_wait(draft: Draft, event: ev.WaitClosed) -> None:
    wait = draft.waits.get(event.wait)
    if wait is None or wait.status != "open":
        raise illegal(event, draft.run, f"nothing waits for {event.wait!r}")
    closed = evolve(wait, status="closed", answer=event.answer, closed_at=event.at)
    status: RunStatus = "running" if draft.status == "waiting" else draft.status
    draft.change(waits=draft.waits.set(event.wait, closed), status=status)
    draft.change_agent(wait.agent, status="running", updated_at=event.at)


def _resume(draft: Draft, event: ev.RunResumed) -> None:
    if draft.status in TERMINAL:
        raise illegal(event, draft.run, f"the run is {draft.status}")
    was_failed = draft.status == "failed"
    metrics = evolve(draft.metrics, recoveries=draft.metrics.recoveries + int(event.recovered))
    draft.change(status="running", failure=None, metrics=metrics)
    if event.live:
        return
    if was_failed:
        _forgive(draft)
    _settle(draft)


def _forgive(draft: Draft) -> None:
    """Let nothing have failed for good: what failed may be tried anew."""
    tasks, agents = draft.tasks, draft.agents
    for name, task in draft.tasks.items():
        if not is_open_failure(task):
            continue
        tasks = tasks.set(name, evolve(task, status="pending", failures=0, failure=None))
        agent = agents.get(task.agent)
        if agent is not None and agent.task == name:
            agents = agents.set(task.agent, evolve(agent, status="idle"))
    draft.change(tasks=tasks, agents=agents, open_failures=0)


def _settle(draft: Draft) -> None:
    """Let nothing run: what was running is pending again."""
    tasks, agents = draft.tasks, draft.agents
    for name, task in draft.tasks.items():
        if task.status == "running":
            tasks = tasks.set(name, evolve(task, status="pending"))
    for name, agent in draft.agents.items():
        if agent.status in _ACTIVE_AGENT:
            agents = agents.set(name, evolve(agent, status="idle"))
    draft.change(tasks=tasks, agents=agents)


def _begin_anew(draft: Draft, generation: int | None = None) -> None:
    """Let pending work not have been tried; in a new generation it has new effect keys."""
    tasks, agents = draft.tasks, draft.agents
    for name, task in draft.tasks.items():
        if task.status != "pending":
            continue
        key = task.effect_key
        if key is not None and generation is not None:
            key = EffectKey(f"{key.rpartition('/')[0]}/{generation}")
        fresh = evolve(task, attempts=0, failures=0, failure=None, effect_key=key, started_at=None)
        tasks, agent = tasks.set(name, fresh), agents.get(task.agent)
        if agent is not None and agent.task == name:
            agents = agents.set(task.agent, evolve(agent, attempts=0))
    failures = sum(is_open_failure(task) for task in tasks.values())
    draft.change(tasks=tasks, agents=agents, open_failures=failures)


def _roll_back(draft: Draft, event: ev.RolledBack) -> None:
    record = RollbackRecord(
        at=event.at,
        from_seq=event.from_seq,
        to_seq=event.to_seq,
        reason=event.reason,
        generation=event.generation,
        kept=event.kept,
        undone=event.undone,
        blamed=event.blamed,
    )
    confidence = draft.confidence
    if confidence.overall is not None and event.confidence_factor != 1.0:
        confidence = evolve(confidence, overall=confidence.overall * event.confidence_factor)
    _settle(draft)
    _begin_anew(draft, event.generation)
    draft.change(
        status="running",
        failure=None,
        generation=event.generation,
        metrics=evolve(draft.metrics, rollbacks=draft.metrics.rollbacks + 1),
        confidence=confidence,
        rollbacks=draft.rollbacks.append(record),
    )


def _fork(draft: Draft, event: ev.Forked) -> None:
    origin = Origin(run=event.from_run, seq=event.from_seq, digest=event.from_digest)
    if draft.status == "failed":
        _forgive(draft)
    _settle(draft)
    _begin_anew(draft)  # under the same effect keys: what its origin did for them is not done twice
    draft.change(run=event.run, origin=origin, status="running", failure=None)


def _edit(draft: Draft, event: ev.StateEdited) -> None:
    section, _, name = event.path.partition(".")
    if section == "inputs" and event.inputs is not None:
        draft.change(inputs=event.inputs)
    elif section == "context" and event.context is not None and name:
        draft.change(context=draft.context.set(name, event.context))
    else:
        raise illegal(event, draft.run, f"{event.path!r} cannot be set")


def _end(draft: Draft, event: ev.RunEnded) -> None:
    if draft.status in TERMINAL:
        raise illegal(event, draft.run, f"the run is {draft.status} already")
    status: RunStatus
    if event.outcome == "shutdown":
        status = "paused" if draft.status == "running" else draft.status
    else:
        status = event.outcome
    draft.change(status=status, failure=event.failure or draft.failure)
    if event.outcome in ("failed", "cancelled"):
        _settle(draft)
    if event.outcome == "failed":
        _fail_tasks(draft)


def _fail_tasks(draft: Draft) -> None:
    """Let what was to be tried again have failed, because the run has; `_forgive` takes it back."""
    tasks = draft.tasks
    for name, task in draft.tasks.items():
        if task.status == "pending" and task.failure is not None:
            tasks = tasks.set(name, evolve(task, status="failed"))
    draft.change(tasks=tasks)


HANDLERS: Final[dict[type[ev.Event], Callable[[Draft, Any], None]]] = {
    ev.PhaseStarted: _start_phase,
    ev.PhaseCompleted: _complete_phase,
    ev.RoundStarted: lambda draft, event: draft.change(cursor=evolve(draft.cursor, round=event.round)),
    ev.Spent: _spend,
    ev.SnapshotRequested: lambda draft, event: None,  # taken for its own sake
    ev.WaitOpened: _open_wait,
    ev.WaitClosed: _close_wait,
    ev.EffectIntended: lambda draft, event: draft.change(
        effects=draft.effects.set(event.effect, event.details)
    ),
    ev.EffectSettled: _settle_effect,
    ev.RunPaused: lambda draft, event: draft.change(status="paused"),
    ev.RunWaiting: lambda draft, event: draft.change(status="waiting"),
    ev.RunResumed: _resume,
    ev.RolledBack: _roll_back,
    ev.Forked: _fork,
    ev.RunEnded: _end,
    ev.DefinitionAccepted: lambda draft, event: draft.change(workflow=event.workflow),
    ev.StateEdited: _edit,
}
"""What events about the run itself do to a draft."""
