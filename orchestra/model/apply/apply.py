"""`apply(state, event)`: the next state. Pure: no clock, no chance, no input or output.

An event that does not fit the state raises `IllegalEvent` and changes nothing, as a late result does.
Events about the run itself are handled here, those about its work in `orchestra.model.apply.work`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from orchestra.ids import AgentId, EffectKey, Instant, PhaseId
from orchestra.model import events as ev
from orchestra.model.apply import conversation, work
from orchestra.model.apply.checks import WITH_TEXTS, check_event, check_texts, illegal, misfit_of
from orchestra.model.apply.conversation import end_stream
from orchestra.model.apply.work import is_open_failure
from orchestra.model.frozen import changer, converter, evolve, maker
from orchestra.model.records import Account, Confidence, Crossed, Metrics, RollbackRecord, Task, Wait
from orchestra.model.state import TERMINAL, WHOLE_RUN, Cursor, Draft, Origin, RunStatus, State, Visit
from orchestra.model.tree import Table

T = TypeVar("T")
_cursor: Final = maker(Cursor)
_visit: Final = maker(Visit)
_wait: Final = converter(ev.WaitOpened, Wait, "kind", "opened_at")
_rollback_record: Final = converter(ev.RolledBack, RollbackRecord)
_over: Final = changer(Visit, "completed_at")
_summed: Final = changer(
    Metrics,
    "api_calls",
    "tokens_in",
    "tokens_out",
    "tool_calls",
    "cost_micros",
    "elapsed_us",
    "memory_peak_bytes",
)
_ACTIVE_AGENT = frozenset({"launched", "running", "waiting"})


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
        tool_calls=held.tool_calls + event.tool_calls,
        cost_micros=held.cost_micros + event.cost_micros,
        elapsed_us=held.elapsed_us + event.elapsed_us,
        memory_peak_bytes=max(held.memory_peak_bytes, event.memory_peak_bytes),
    )
    draft.change(metrics=metrics)
    if event.phase is not None:
        _spend_in_phase(draft, event, event.phase)
    agent = draft.agents.get(event.agent) if event.agent is not None else None
    if agent is not None:
        tokens = agent.tokens + event.tokens_in + event.tokens_out
        draft.change_agent(event.agent, tokens=tokens, updated_at=event.at)


def _spend_in_phase(draft: Draft, event: ev.Spent, phase: PhaseId) -> None:
    held = draft.spending.get(phase) or Account()
    spent = evolve(
        held,
        requests=held.requests + event.api_calls,
        tokens=held.tokens + event.tokens_in + event.tokens_out,
        cost_micros=held.cost_micros + event.cost_micros,
        tool_calls=held.tool_calls + event.tool_calls,
        elapsed_us=held.elapsed_us + event.elapsed_us,
    )
    draft.change(spending=draft.spending.set(phase, spent))


def _cross_limit(draft: Draft, event: ev.LimitCrossed) -> None:
    place = event.phase or WHOLE_RUN
    held = draft.spending.get(place) or Account()
    others = tuple(each for each in held.crossed if each.limit != event.limit)
    crossed = Crossed(limit=event.limit, allowed=event.allowed, course=event.course)
    draft.change(spending=draft.spending.set(place, evolve(held, crossed=(*others, crossed))))


def _settle_effect(draft: Draft, event: ev.EffectSettled) -> None:
    effect = draft.effects.get(event.effect)
    if effect is None:
        raise illegal(event, draft.run, f"effect {event.effect!r} was never intended")
    settled = evolve(effect, status=event.status, outcome=event.outcome, settled_at=event.at)
    draft.change(effects=draft.effects.set(event.effect, settled))


def _open_wait(draft: Draft, event: ev.WaitOpened) -> None:
    wait = _wait(event, kind=event.waits_for, opened_at=event.at)
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
    _settle(draft, event.at)


def _forgive(draft: Draft) -> None:
    """Let nothing have failed for good: what failed may be tried anew."""
    failed = {name: task for name, task in draft.tasks.items() if is_open_failure(task)}
    tasks = _evolve_all(draft.tasks, failed, status="pending", failures=0, failure=None)
    agents = _evolve_all(draft.agents, _workers(draft, failed), status="idle")
    draft.change(tasks=tasks, agents=agents, open_failures=0)


def _settle(draft: Draft, at: Instant) -> None:
    """Let nothing run: what was running is pending again, what was streamed is interrupted."""
    running = [name for name, task in draft.tasks.items() if task.status == "running"]
    active = [name for name, agent in draft.agents.items() if agent.status in _ACTIVE_AGENT]
    agents = _evolve_all(draft.agents, active, status="idle")
    streams = [AgentId(name) for name, agent in draft.agents.items() if agent.message is not None]
    draft.change(tasks=_evolve_all(draft.tasks, running, status="pending"), agents=agents)
    for name in streams:
        end_stream(draft, name, "interrupted", at)


def _begin_anew(draft: Draft, generation: int | None = None) -> None:
    """Let pending work not have been tried; in a new generation it has new effect keys."""
    pending = {name: task for name, task in draft.tasks.items() if task.status == "pending"}
    tasks = _evolve_all(draft.tasks, pending, attempts=0, failures=0, failure=None, started_at=None)
    for name, task in pending.items() if generation is not None else ():
        if task.effect_key is not None:
            key = EffectKey(f"{task.effect_key.rpartition('/')[0]}/{generation}")
            tasks = tasks.set(name, evolve(tasks[name], effect_key=key))
    agents = _evolve_all(draft.agents, _workers(draft, pending), attempts=0)
    failures = sum(is_open_failure(task) for task in tasks.values())
    draft.change(tasks=tasks, agents=agents, open_failures=failures)


def _evolve_all(table: Table[T], keys: Iterable[str], **changes: Any) -> Table[T]:
    for key in keys:
        table = table.set(key, evolve(table[key], **changes))
    return table


def _workers(draft: Draft, tasks: Mapping[str, Task]) -> list[str]:
    """The agents of tasks that have not gone on to another one since."""
    known = draft.agents
    return [
        task.agent for name, task in tasks.items() if (held := known.get(task.agent)) and held.task == name
    ]


def _roll_back(draft: Draft, event: ev.RolledBack) -> None:
    confidence = draft.confidence
    if confidence.overall is not None and event.confidence_factor != 1.0:
        confidence = evolve(confidence, overall=confidence.overall * event.confidence_factor)
    _settle(draft, event.at)
    _begin_anew(draft, event.generation)
    draft.change(
        status="running",
        failure=None,
        generation=event.generation,
        metrics=evolve(draft.metrics, rollbacks=draft.metrics.rollbacks + 1),
        confidence=confidence,
        rollbacks=draft.rollbacks.append(_rollback_record(event)),
    )


def _fork(draft: Draft, event: ev.Forked) -> None:
    origin = Origin(run=event.from_run, seq=event.from_seq, digest=event.from_digest)
    if draft.status == "failed":
        _forgive(draft)
    _settle(draft, event.at)
    _begin_anew(draft)  # under the same effect keys: what its origin did for them is not done twice
    paid = [name for name, agent in draft.agents.items() if agent.tokens]
    agents = _evolve_all(draft.agents, paid, tokens=0)  # its origin has paid, and counts it
    draft.change(
        run=event.run,
        origin=origin,
        status="running",
        failure=None,
        metrics=Metrics(),
        agents=agents,
        spending=Table(),
    )


def _edit(draft: Draft, event: ev.StateEdited) -> None:
    section, _, name = event.path.partition(".")
    if section == "inputs" and event.inputs is not None:
        draft.change(inputs=event.inputs)
    elif section == "context" and event.context is not None and name:
        draft.change(context=draft.context.set(name, event.context))
    elif not event.path.startswith(ev.CONVERSATION_PATHS):
        raise illegal(event, draft.run, f"{event.path!r} cannot be set")


def _end(draft: Draft, event: ev.RunEnded) -> None:
    if draft.status in TERMINAL:
        raise illegal(event, draft.run, f"the run is {draft.status} already")
    status: RunStatus = draft.status if event.outcome == "shutdown" else event.outcome
    if status == "running":
        status = "paused"
    draft.change(status=status, failure=event.failure or draft.failure)
    if event.outcome in ("failed", "cancelled"):
        _settle(draft, event.at)
    if event.outcome == "failed":  # so has what was to be tried again; `_forgive` takes it back
        failed = [name for name, task in draft.tasks.items() if task.status == "pending" and task.failure]
        draft.change(tasks=_evolve_all(draft.tasks, failed, status="failed"))


def begin(event: ev.RunStarted) -> State:
    """The first state of a run."""
    check_event(event, event.run)
    return State(
        run=event.run,
        family=event.run,
        workflow=event.workflow,
        status="running",
        created_at=event.at,
        updated_at=event.at,
        inputs=event.inputs,
        confidence=Confidence(thresholds=event.thresholds),
        environment=event.environment,
    )


def apply(state: State, event: ev.Event) -> State:
    """The state after `event`; raises `IllegalEvent`."""
    return apply_all(state, (event,))


def apply_all(state: State, events: Iterable[ev.Event]) -> State:
    """The state after all `events`, in order; raises `IllegalEvent`."""
    draft = Draft.of(state)
    change(draft, events)
    return draft.freeze()


def change(draft: Draft, events: Iterable[ev.Event]) -> None:
    """Let all `events` happen to a draft, in order; raises `IllegalEvent` and leaves it as it was."""
    before = vars(draft).copy()
    at = draft.updated_at
    planned: ev.TaskPlanned | None = None  # waits to be looked at together with its launch
    try:
        for event in events:
            kind: Any = type(event)
            if misfit_of(kind)(event) is not None:
                check_event(event, draft.run)  # which says what is wrong
            at = event.at
            if planned is not None:
                first, planned = planned, None
                if kind is ev.AgentLaunched and work.plan_and_launch(draft, first, event):  # type: ignore[arg-type]
                    continue
                work.apply_plan(draft, first)
            if kind in WITH_TEXTS:
                check_texts(draft, event)
            if kind is ev.TaskPlanned:
                planned = event  # type: ignore[assignment]
            else:
                _HANDLERS[kind](draft, event)
        if planned is not None:
            work.apply_plan(draft, planned)
    except BaseException:
        draft.change(**before)
        raise
    draft.change(updated_at=at)


def _refuse_second_start(draft: Draft, event: ev.RunStarted) -> None:
    raise illegal(event, draft.run, "the run has started already")


_HANDLERS: Final[dict[type[ev.Event], Callable[[Draft, Any], None]]] = {
    **work.HANDLERS,
    **conversation.HANDLERS,
    ev.RunStarted: _refuse_second_start,
    ev.PhaseStarted: _start_phase,
    ev.PhaseCompleted: _complete_phase,
    ev.RoundStarted: lambda draft, event: draft.change(cursor=evolve(draft.cursor, round=event.round)),
    ev.Spent: _spend,
    ev.LimitCrossed: _cross_limit,
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
"""What each kind of event does to a draft."""
