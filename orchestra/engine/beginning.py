"""How a run begins, and how it is taken up again: definitions as data, and the events of both."""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestra.codec.address import Addresser
from orchestra.codec.definitions import definition_from_plain, definition_to_plain
from orchestra.codec.values import address_of, contribution, freeze, thaw
from orchestra.engine.board import Board
from orchestra.engine.changes import changes
from orchestra.engine.decide import decide
from orchestra.engine.moves import only_launches
from orchestra.engine.orders import passed_breakpoints
from orchestra.engine.turn import Turn
from orchestra.engine.view import View
from orchestra.errors import DefinitionChanged, NotResumable
from orchestra.ids import Digest, Instant, RunId
from orchestra.limits import TURN_MOVES
from orchestra.model import events as ev
from orchestra.model.apply import begin
from orchestra.model.parts import Environment, Failure
from orchestra.model.state import State, WorkflowRef
from orchestra.model.value import Value
from orchestra.model.workflow import Workflow


def definition(workflow: Workflow) -> Any:
    """A workflow as plain data."""
    return definition_to_plain(workflow)


def definition_digest(workflow: Workflow, addresser: Addresser) -> Digest:
    """What tells one definition from another."""
    return address_of(definition(workflow), addresser)


def reference(workflow: Workflow, addresser: Addresser, file: str | None) -> WorkflowRef:
    """A workflow as a state names and keeps it."""
    plain = definition(workflow)
    return WorkflowRef(
        name=workflow.name,
        digest=address_of(plain, addresser),
        definition=freeze(plain, addresser),
        file=file,
    )


def read_definition(value: Value) -> Workflow:
    """The workflow a state keeps; its bytes must be there. Raises `Damaged`."""
    return definition_from_plain(thaw(value), Workflow, what="the definition of a workflow")


def begun(
    workflow: Workflow,
    run: RunId,
    inputs: Mapping[str, Any],
    now: Instant,
    *,
    addresser: Addresser,
    held: WorkflowRef,
    environment: Environment,
) -> tuple[ev.RunStarted, tuple[ev.Event, ...], State]:
    """The events with which a run begins, the first launches included, and the state they lead to.

    Raises `UnstorableValue`.
    """
    started = ev.RunStarted(
        at=now,
        run=run,
        workflow=held,
        inputs=freeze(dict(inputs), addresser, where="inputs") if inputs else None,
        thresholds=workflow.policy.confidence.watch,
        environment=environment,
    )
    first = tuple(_initial(workflow, now, addresser))
    turn = Turn(View(workflow, begin(started), thaw, addresser), Board())
    turn.add(*first)
    _open(turn, now)
    return started, tuple(turn.events), turn.state.frozen()


def _open(turn: Turn, now: Instant) -> None:
    """Let Atlas decide what comes first, so that it is stored together with the beginning."""
    for _ in range(TURN_MOVES):
        move = decide(turn.view, turn.board, now)
        if not move.events:
            break
        turn.add(*move.events)
        if only_launches(move.events):
            break


def _initial(workflow: Workflow, now: Instant, addresser: Addresser) -> Iterator[ev.Event]:
    for each in workflow.context:
        if each.initial is not None:
            made = contribution(each.reducer, thaw(each.initial), addresser, where=f"context.{each.name}")
            yield ev.ContextContributed(at=now, name=each.name, contribution=made)


def check_changes(state: State, stored: Workflow, current: Workflow, *, accepted: bool) -> None:
    """Raise `DefinitionChanged` unless the run may go on with another definition than the one it keeps."""
    told = changes(definition(stored), definition(current))[:20]
    stands = state.cursor.phase
    if stands is not None and all(each.id != stands for each in current.phases):
        raise DefinitionChanged(run=state.run, changes="; ".join((*told, f"phase {stands} is gone")))
    clash = _reducer_clash(state, current)
    if clash or not accepted:
        raise DefinitionChanged(run=state.run, changes="; ".join((*told, *clash)))


def _reducer_clash(state: State, workflow: Workflow) -> list[str]:
    """Names of the context that hold something which a changed workflow would reduce otherwise."""
    return [
        f"context.{each.name} holds what {held.reducer} made, which {each.reducer} cannot go on with"
        for each in workflow.context
        if (held := state.context.get(each.name)) is not None and held.reducer != each.reducer
    ]


def resumed(workflow: Workflow, state: State, now: Instant, *, by_hand: bool) -> tuple[ev.Event, ...]:
    """The events with which a run is taken up again; raises `NotResumable`.

    A run that was under way when its process died counts as recovered. One that has been recovered as often
    as it may is parked as failed: it may be what kills its processes. By hand it can still be resumed.
    """
    if not state.resumable:
        raise NotResumable(run=state.run, status=state.status)
    crashed = state.status == "running"
    limit = workflow.policy.recovery.max_recoveries
    if crashed and not by_hand and state.metrics.recoveries >= limit:
        return (_parked(state, now, limit),)
    before = "had failed" if state.status == "failed" else f"was {state.status}"
    reason = "its process died" if crashed else f"it {before}"
    passed = passed_breakpoints(state, now) if by_hand else ()
    return (ev.RunResumed(at=now, reason=reason, recovered=crashed), *passed)


def _parked(state: State, now: Instant, limit: int) -> ev.RunEnded:
    message = f"it was recovered {limit} times and its process died again"
    failure = Failure(error="Parked", message=message, at=now, recoverable=True)
    return ev.RunEnded(at=now, outcome="failed", reason=message, failure=failure)
