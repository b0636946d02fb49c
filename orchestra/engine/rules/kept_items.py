"""Keeping: items of a `foreach` that a rollback kept although what they were made from was done again.

Once that is there anew, an item whose key is still the same stays done. One with another key is planned anew,
and one that is in the list no more is retired.
"""

from collections.abc import Collection, Iterator
from itertools import count

from orchestra.engine.board import Board, Group
from orchestra.engine.names import item_name, task_id
from orchestra.engine.rules.moves import NOTHING, Move, basis_of, plan_task
from orchestra.engine.view import View
from orchestra.errors import BadExpression
from orchestra.ids import Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Task
from orchestra.model.state import State
from orchestra.model.workflow import Specialist


def outdated_items(view: View, board: Board, now: Instant) -> Move:
    """Items that were kept and do not follow any more from what they would be made of now."""
    if not view.state.rollbacks:
        return NOTHING
    board.open_all(view)
    events: list[ev.Event] = []
    for group in board.groups.values():
        if group.total is not None and not group.proved:
            group.proved = True
            events += _of_group(view, group, now)
    return Move(events=tuple(events))


def _of_group(view: View, group: Group, now: Instant) -> Iterator[ev.Event]:
    specialist = group.specialist
    if specialist is None or specialist.foreach is None or not specialist.needs:
        return
    for index, name, task in _items(view, specialist):
        if group.skipped or index >= len(group.items):
            yield from _retired(name, task, specialist, now)
        elif task.status != "completed":
            continue
        elif (made := _planned(view, group, specialist, index, task, now)) is None:
            yield unplan_task(name, task, specialist, now)
        elif made.key != task.key:
            yield made


def _retired(name: TaskId, task: Task, specialist: Specialist, now: Instant) -> Iterator[ev.Event]:
    """An item that is needed no more."""
    if task.status == "completed":
        yield unplan_task(name, task, specialist, now)
    if task.status in ("completed", "pending"):
        yield ev.TaskRetired(at=now, task=name, outcome="retired", reason="it is needed no more")


def gaps(view: View, target: State, kept: Collection[TaskId], now: Instant) -> Iterator[ev.TaskPlanned]:
    """Items that come before others which a rollback keeps, as if they had never been planned.

    The items of a list are known one after the other, so none may be missing in between.
    """
    for specialist in view.phase.specialists if view.phase is not None else ():
        items = list(_items(view, specialist)) if specialist.foreach is not None else []
        last = max((index for index, name, _ in items if name in kept), default=-1)
        for _, name, task in items[:last]:
            if name not in kept and name not in target.tasks:
                yield unplan_task(name, task, specialist, now)


def _items(view: View, specialist: Specialist) -> Iterator[tuple[int, TaskId, Task]]:
    for index in count():
        name = task_id(view.state, item_name(specialist.id, index))
        task = view.state.tasks.get(name)
        if task is None:
            return
        yield index, name, task


def _planned(
    view: View, group: Group, specialist: Specialist, index: int, task: Task, now: Instant
) -> ev.TaskPlanned | None:
    """An item as it would be planned now; None when its task makes no sense any more."""
    try:
        if group.basis is None:
            group.basis = basis_of(view, specialist.task, specialist)
        return plan_task(
            view,
            now,
            local=group.local(index),
            by=task.by or specialist.agent,
            text=specialist.task,
            specialist=specialist,
            basis=group.basis,
            item=group.items[index],
            index=index,
        )
    except BadExpression:
        return None


def unplan_task(name: TaskId, task: Task, specialist: Specialist, now: Instant) -> ev.TaskPlanned:
    """An assignment as if it had never been planned: its task is worked out when it starts."""
    return ev.TaskPlanned(
        at=now,
        task=name,
        agent=task.agent,
        by=specialist.agent,
        phase=task.phase,
        visit=task.visit,
        round=task.round,
        description=specialist.task,
    )
