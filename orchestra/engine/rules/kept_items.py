"""Items of a `foreach` that a rollback kept although what they were made from was done again.

Once that is there anew, an item whose key is still the same stays done. One with another key is planned anew,
and one that is in the list no more is retired.
"""

from collections.abc import Collection, Iterator
from itertools import count

from orchestra.engine.board import Board, Group
from orchestra.engine.names import item_name, task_id
from orchestra.engine.rules.moves import NOTHING, Move, plan_of, replan_task
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
            events += _outdated_in(view, group, now)
    return Move(events=tuple(events))


def _outdated_in(view: View, group: Group, now: Instant) -> Iterator[ev.Event]:
    specialist = group.specialist
    if specialist is None or specialist.foreach is None or not specialist.needs:
        return
    for index, name, task in _items(view, specialist):
        is_done = task.status == "completed"
        if group.skipped or index >= len(group.items):
            if is_done:
                yield unplan_task(name, task, specialist, now)
            if is_done or task.status == "pending":
                yield ev.TaskRetired(at=now, task=name, outcome="retired", reason="it is needed no more")
        elif is_done:
            try:
                made = plan_of(view, group, index, now, by=task.by)
            except BadExpression:  # its task makes no sense any more
                yield unplan_task(name, task, specialist, now)
                continue
            if made.key != task.key:
                yield made


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


def unplan_task(name: TaskId, task: Task, specialist: Specialist, now: Instant) -> ev.TaskPlanned:
    """An assignment as if it had never been planned: its task is worked out when it starts."""
    agent, text = specialist.agent, specialist.task
    return replan_task(name, task, now, by=agent, description=text, effect_key=None, key=None)
