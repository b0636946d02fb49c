"""How a run starts and resumes: its definition as data, what changed in it, and the first events."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from orchestra.checkpoint.commit import ActiveRun
from orchestra.codec.address import Addresser
from orchestra.codec.definitions import definition_from_plain, definition_to_plain
from orchestra.codec.values import address_of, contribution, freeze, thaw
from orchestra.engine.board import Board
from orchestra.engine.orders import ASKED_FOR, FORKED, breakpoint_closings
from orchestra.engine.rules.moves import failed_end
from orchestra.engine.turn import Turn, settle
from orchestra.engine.view import View
from orchestra.errors import DefinitionChanged, NotResumable
from orchestra.ids import Digest, Instant, RunId
from orchestra.limits import DIFF_LINES
from orchestra.model import events as ev
from orchestra.model.apply.apply import begin
from orchestra.model.records import Environment
from orchestra.model.state import State, WorkflowRef
from orchestra.model.value import Value
from orchestra.model.workflow import Workflow


def definition_changes(before: Any, after: Any) -> list[str]:
    """What was added, removed and changed, by place."""
    found = list(islice(_changes("", before, after), DIFF_LINES))
    return [*found, "and more"] if len(found) == DIFF_LINES else found


def _changes(place: str, before: Any, after: Any) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, list) and isinstance(after, list):
        before, after = _by_name(before), _by_name(after)
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(each for each in after if each not in before)]:
            inner = f"{place}.{name}" if place else str(name)
            if name not in after:
                yield f"{inner} is gone"
            elif name not in before:
                yield f"{inner} is new"
            else:
                yield from _changes(inner, before[name], after[name])
        return
    yield f"{place} was {_short(before)} and is {_short(after)}"


def _by_name(items: list[Any]) -> dict[str, Any]:
    """A list by the names of its items, so that one that was inserted does not change all after it."""
    names = [item.get("id") or item.get("name") if isinstance(item, dict) else None for item in items]
    return {str(name or place): item for place, (name, item) in enumerate(zip(names, items, strict=True))}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


_NOT_YET: Final = ", not resumed yet"


def definition_digest(workflow: Workflow, addresser: Addresser) -> Digest:
    """What tells one definition from another."""
    return address_of(definition_to_plain(workflow), addresser)


def reference(workflow: Workflow, addresser: Addresser, file: str | None) -> WorkflowRef:
    """A workflow as a state names and keeps it."""
    plain = definition_to_plain(workflow)
    digest, kept = address_of(plain, addresser), freeze(plain, addresser)
    return WorkflowRef(name=workflow.name, digest=digest, definition=kept, file=file)


def read_definition(value: Value) -> Workflow:
    """The workflow a state keeps; its bytes must be there. Raises `Damaged`."""
    return definition_from_plain(thaw(value), Workflow, what="the definition of a workflow")


def first_events(
    workflow: Workflow,
    run: RunId,
    inputs: Mapping[str, Any],
    now: Instant,
    *,
    addresser: Addresser,
    held: WorkflowRef,
    environment: Environment,
) -> tuple[ev.RunStarted, tuple[ev.Event, ...], State]:
    """The events with which a run begins and the state they lead to; raises `UnstorableValue`."""
    started = ev.RunStarted(
        at=now,
        run=run,
        workflow=held,
        inputs=freeze(dict(inputs), addresser, where="inputs") if inputs else None,
        thresholds=workflow.policy.confidence.watch,
        environment=environment,
    )
    turn = Turn(View(workflow, begin(started), thaw, addresser), Board())
    for each in workflow.context:
        if each.initial is not None:
            made = contribution(each.reducer, thaw(each.initial), addresser, where=f"context.{each.name}")
            turn.add(ev.ContextContributed(at=now, name=each.name, contribution=made))
    settle(turn, lambda: now)  # what comes first is stored together with the beginning
    return started, tuple(turn.events), turn.state.freeze()


def check_changes(state: State, stored: Workflow, current: Workflow, *, accepted: bool) -> None:
    """Raise `DefinitionChanged` unless the run may go on with another definition than the one it keeps."""
    told = definition_changes(definition_to_plain(stored), definition_to_plain(current))[:20]
    stands = state.cursor.phase
    if stands is not None and all(each.id != stands for each in current.phases):
        raise DefinitionChanged(run=state.run, changes="; ".join((*told, f"phase {stands} is gone")))
    clash = [
        f"context.{each.name} holds what {held.reducer} made, which {each.reducer} cannot go on with"
        for each in current.context
        if (held := state.context.get(each.name)) is not None and held.reducer != each.reducer
    ]
    if clash or not accepted:
        raise DefinitionChanged(run=state.run, changes="; ".join((*told, *clash)))


def resume_events(
    workflow: Workflow, active: ActiveRun, now: Instant, *, by_hand: bool
) -> tuple[ev.Event, ...]:
    """The events with which a run is taken up again; raises `NotResumable`.

    A run that was under way when its process died counts as recovered. One that has been recovered as often
    as it may is parked as failed: it may be what kills its processes. By hand it can still be resumed.
    """
    state = active.state
    if not state.is_resumable:
        raise NotResumable(run=state.run, status=state.status)
    crashed = state.status == "running"
    limit = workflow.policy.recovery.max_recoveries
    if crashed and not by_hand and state.metrics.recoveries >= limit:
        reason = f"it was recovered {limit} times and its process died again"
        return (failed_end(now, reason, error="Parked"),)
    passed = breakpoint_closings(state, now) if by_hand else ()
    return (ev.RunResumed(at=now, reason=_before(state, active.left), recovered=crashed), *passed)


def _before(state: State, left: str) -> str:
    """How a run stood when it was taken up again; `left` is why it was paused, if that is known."""
    if state.status == "running":
        return "its process died"
    if state.status == "failed":
        return "it had failed"
    if left == FORKED and state.origin is not None:
        return f"forked from {state.origin.run}@{state.origin.seq}, not started until now"
    if left.endswith(_NOT_YET):
        return left.removesuffix(_NOT_YET)
    said = f": {left}" if left not in ("", ASKED_FOR) else ""
    return f"it was {state.status}{said}"
