"""Changes by hand: another definition, another value. What is still valid is kept, the rest is done again."""

from collections.abc import Iterator
from typing import Any

from orchestra.checkpoint.expression import template
from orchestra.codec.values import contribution, freeze
from orchestra.engine.board import Board
from orchestra.engine.naming import effect_key, item_name, task_id
from orchestra.engine.view import View
from orchestra.errors import BadExpression, BadOrder, OrchestraError
from orchestra.ids import AgentId, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.apply import apply_all
from orchestra.model.names import TASK_NAMES
from orchestra.model.state import State
from orchestra.model.workflow import Specialist


def edit(view: View, path: str, value: Any, now: Instant) -> ev.StateEdited:
    """The event that sets `inputs.NAME` or `context.NAME`; raises `BadOrder` or `UnstorableValue`."""
    section, _, name = path.partition(".")
    if section == "inputs" and name in {each.name for each in view.workflow.inputs}:
        inputs = view.inputs() | {name: value}
        return ev.StateEdited(at=now, path=path, inputs=freeze(inputs, view.addresser, where=path))
    reducers = {each.name: each.reducer for each in view.workflow.context}
    if section == "context" and name in reducers:
        made = contribution(reducers[name], value, view.addresser, where=path)
        return ev.StateEdited(at=now, path=path, context=made)
    known = [f"inputs.{each.name}" for each in view.workflow.inputs] + [
        f"context.{name}" for name in reducers
    ]
    raise BadOrder(order="set", reason=f"{path!r} cannot be set; there are {', '.join(known) or 'none'}")


def revalidated(view: View, now: Instant) -> tuple[ev.Event, ...]:
    """Events that plan anew whatever of the current visit no longer follows from what it was made of.

    A result stays when its key is the same: the same agent, task, inputs and results before it.
    """
    if view.phase is None:
        return ()
    events: list[ev.Event] = []
    for specialist in _in_order(view):
        for event in _stale(view, specialist, now):
            events.append(event)
            view = _after(view, apply_all(view.state, (event,)))
    return tuple(events)


def _after(view: View, state: State) -> View:
    """The same view of another state."""
    return View(view.workflow, state, view.opened_value, view.addresser)


def _in_order(view: View) -> list[Specialist]:
    assert view.phase is not None, "BUG: only a phase has specialists"
    order: dict[str, Specialist] = {}
    waiting = list(view.phase.specialists)
    while waiting:
        free = [each for each in waiting if all(need in order for need in each.needs)]
        assert free, "BUG: needs form a circle"
        order |= {each.id: each for each in free}
        waiting = [each for each in waiting if each.id not in order]
    return list(order.values())


def _stale(view: View, specialist: Specialist, now: Instant) -> Iterator[ev.TaskPlanned]:
    for local, item, index in _locals(view, specialist):
        name = task_id(view.state, local)
        task = view.state.tasks.get(name)
        if task is None or task.status != "completed" or task.key is None:
            continue
        wanted = template(specialist.task, TASK_NAMES)
        try:
            text = wanted.render(view.names(wanted.names, specialist, item=item, index=index))
        except BadExpression:
            text = specialist.task
        key = view.key(specialist.agent, text, specialist, item)
        if key != task.key:
            yield _planned(view, name, specialist, local, text, key, now)


def _planned(
    view: View, name: TaskId, specialist: Specialist, local: str, text: str, key: Any, now: Instant
) -> ev.TaskPlanned:
    cursor = view.state.cursor
    assert cursor.phase is not None, "BUG: assignments belong to a phase"
    return ev.TaskPlanned(
        at=now,
        task=name,
        agent=AgentId(local),
        by=specialist.agent,
        phase=cursor.phase,
        visit=cursor.visit,
        round=cursor.round,
        description=text,
        effect_key=effect_key(view.state, local),
        key=key,
    )


def _locals(view: View, specialist: Specialist) -> Iterator[tuple[str, Any, int | None]]:
    """The assignments a specialist has now, with their items."""
    if specialist.foreach is None:
        yield specialist.id, None, None
        return
    board = Board()
    try:
        board.refresh(view)
    except OrchestraError:
        return
    for index, item in enumerate(board.groups[specialist.id].items):
        yield item_name(specialist.id, index), item, index
