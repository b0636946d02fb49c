"""Changes by hand: another definition, another value. What is still valid is kept, the rest is done again."""

from collections.abc import Iterator
from typing import Any

from orchestra.codec.values import contribution, freeze
from orchestra.engine.agents import conversation
from orchestra.engine.board import Board, Group
from orchestra.engine.names import EVALUATION, item_index, local_of, specialist_name, task_id
from orchestra.engine.rules.kept_items import unplan_task
from orchestra.engine.rules.launch import plan_evaluation
from orchestra.engine.view import View
from orchestra.errors import BadExpression, BadOrder
from orchestra.expressions.expression import template
from orchestra.expressions.names import TASK_NAMES
from orchestra.ids import Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all
from orchestra.model.records import Task, Wait
from orchestra.model.workflow import Spawn, Specialist


def edit(view: View, path: str, value: Any, now: Instant) -> tuple[ev.Event, ...]:
    """The events that set what is at a path; raises `BadOrder` or `UnstorableValue`.

    That is `inputs.NAME`, `context.NAME`, or a place in a message or tool call of a conversation.
    """
    if path.startswith(ev.CONVERSATION_PATHS):
        return _edit_conversation(view, path, value, now)
    section, _, name = path.partition(".")
    inputs, reducers = [each.name for each in view.workflow.inputs], view.index.reducers
    if section == "inputs" and name in inputs:
        changed = freeze(view.inputs() | {name: value}, view.addresser, where=path)
        return (ev.StateEdited(at=now, path=path, inputs=changed),)
    if section == "context" and name in reducers:
        made = contribution(reducers[name], value, view.addresser, where=path)
        return (ev.StateEdited(at=now, path=path, context=made),)
    known = [*(f"inputs.{each}" for each in inputs), *(f"context.{each}" for each in reducers)]
    raise BadOrder(order="set", reason=f"{path!r} cannot be set; there are {', '.join(known) or 'none'}")


def _edit_conversation(view: View, path: str, value: Any, now: Instant) -> tuple[ev.Event, ...]:
    """The events that set something in a conversation, and have its assignment gone through again."""
    changed, name = conversation.edit_event(view, path, value, now)
    waits = view.state.waits
    questions = conversation.withdrawals(waits, [each for each in waits if _is_open(waits[each])], name, now)
    done = (ev.StateEdited(at=now, path=path), changed, *questions)
    task = view.state.tasks[name]
    if task.status != "completed":
        return done
    if name not in view.current_tasks():
        raise BadOrder(order="set", reason=f"{name} is over: fork from a snapshot before its end")
    local = local_of(name)
    if local == EVALUATION and view.phase is not None and view.phase.evaluate is not None:
        return *done, plan_evaluation(view, view.phase.evaluate, now)
    specialist = view.specialist(specialist_name(local))
    assert specialist is not None, "BUG: an assignment of this visit belongs to a specialist"
    return *done, *_undo(view, specialist, local, task, now)


def _is_open(wait: Wait) -> bool:
    return wait.status == "open"


def replan_events(view: View, now: Instant, *, context_edited: bool = False) -> tuple[ev.Event, ...]:
    """Events that plan anew whatever of the current visit no longer follows from what it was made of.

    A result stays when its key is the same, unless the context was edited by hand, which agents read as they
    like. What is done again is only marked here; its task is worked out when it starts.
    """
    phase, path = view.phase, view.state.path
    if phase is None or path[len(path) - 1].completed_at is not None:
        return ()
    events: list[ev.Event] = []

    def add(more: tuple[ev.Event, ...]) -> None:
        nonlocal view
        events.extend(more)
        view = View(view.workflow, apply_all(view.state, more), view.open_value, view.addresser)

    for specialist in view.in_order():
        for name, task in view.current_tasks().items():
            local = local_of(name)
            if specialist_name(local) != specialist.id or task.call is not None:
                continue
            if context_edited or not _is_valid(view, specialist, local, task):
                add(tuple(_undo(view, specialist, local, task, now)))
    for name in _orphans(view):
        add((ev.TaskRetired(at=now, task=name, outcome="retired", reason="it is in the workflow no more"),))
    judged = view.state.tasks.get(task_id(view.state, EVALUATION))
    if judged is not None and phase.evaluate is not None:
        made = plan_evaluation(view, phase.evaluate, now)
        if judged.status == "completed" and made.key != judged.key:
            add((made,))
    return tuple(events)


def _is_valid(view: View, specialist: Specialist, local: str, task: Task) -> bool:
    """Whether what there is of an assignment still follows from what it was made of."""
    group = _group(view, specialist)
    if group.unmet or group.problem is not None:
        return False
    if group.skipped:
        return task.status == "skipped" and task.effect_key is None
    if task.effect_key is None or task.by not in view.index.agents:
        return False
    if "+" not in local and task.by not in (specialist.agent, specialist.substitute):
        return False
    prefix, outputs = task_id(view.state, local).rpartition("/")[0], view.state.outputs
    if task.status == "completed" and any(f"{prefix}/{each}" not in outputs for each in specialist.outputs):
        return False
    return _key(view, group, specialist, local, task) == task.key


def _group(view: View, specialist: Specialist) -> Group:
    board = Board()
    board.refresh(view)
    return board.groups[specialist.id]


def _key(view: View, group: Group, specialist: Specialist, local: str, task: Task) -> bytes | None:
    """The key an assignment would have now; None when it could not be planned."""
    assert task.by is not None, "BUG: it was looked at before"
    index = item_index(local)
    if index is not None and index >= len(group.items):
        return None
    item = None if index is None else group.items[index]
    wanted = template(_task_text(view, specialist, local, task), TASK_NAMES)
    try:
        rendered = wanted.render(view.names(wanted.names, specialist, item=item, index=index))
    except BadExpression:
        return None
    return view.key(task.by, rendered, view.sources(specialist), item)


def _task_text(view: View, specialist: Specialist, local: str, task: Task) -> str:
    """The task of an assignment, of an additional one that of whom it stands in for."""
    reactions = view.phase.on_low_confidence if "+" in local and view.phase is not None else ()
    for reaction in reactions:
        if isinstance(reaction, Spawn):
            model = view.specialist(reaction.specialist) or specialist
            if (reaction.agent or model.agent) == task.by:
                return model.task
    return specialist.task


def _undo(view: View, specialist: Specialist, local: str, task: Task, now: Instant) -> Iterator[ev.Event]:
    """The assignment as if it had never been planned; one that is needed no more is retired."""
    name = task_id(view.state, local)
    yield unplan_task(name, task, specialist, now)
    index = item_index(local)
    strange = (index is None) != (specialist.foreach is None)
    group = _group(view, specialist)
    over = index is not None and group.total is not None and not group.skipped and index >= group.total
    if "+" in local or strange or over:  # over: the list is known to have fewer items now
        yield ev.TaskRetired(at=now, task=name, outcome="retired", reason="it is needed no more")


def _orphans(view: View) -> list[TaskId]:
    """Assignments of this visit that wait for a specialist who is not in the workflow any more."""
    assert view.phase is not None, "BUG: only a phase has specialists"
    known = {each.id for each in view.phase.specialists} | {EVALUATION}
    waiting = [
        n for n, task in view.current_tasks().items() if task.status in ("pending", "running", "failed")
    ]
    return [name for name in waiting if specialist_name(local_of(name)) not in known]
