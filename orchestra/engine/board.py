"""The board: what is to be done, under way and done in the visit and round a run is in.

Everything on it follows from the workflow and the state; it is kept beside them so that deciding what to do
next costs what changed, not how much there is. `note` brings it up to date event by event, `refresh` works it
out anew, and a property test proves the two equal.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from orchestra.engine.names import EVALUATION, caller_of, item_name, local_of, specialist_name, task_id
from orchestra.engine.view import View
from orchestra.errors import BadExpression
from orchestra.expressions.expression import condition, expression, with_place
from orchestra.expressions.names import SPECIALIST_NAMES
from orchestra.ids import Instant, TaskId
from orchestra.limits import FOREACH_ITEMS
from orchestra.model import events as ev
from orchestra.model.state import State
from orchestra.model.workflow import Phase, Specialist

ERRANDS: Final = ":"
"""The name of the group of errands; no specialist can have it."""
_ANEW: Final = (
    ev.RoundStarted,
    ev.RolledBack,
    ev.Forked,
    ev.RunResumed,
    ev.RunStarted,
    ev.DefinitionAccepted,
    ev.StateEdited,
)
"""After these, and after a phase was entered, the board is worked out anew."""


class Group:
    """A specialist's assignments: one, or one for each item, and additional ones."""

    def __init__(self, specialist: Specialist | None, unmet: int, total: int | None = None) -> None:
        self.specialist = specialist  # None: the evaluation, or errands
        self.id = specialist.id if specialist is not None else EVALUATION if total else ERRANDS
        self.unmet = unmet  # how many of those it needs are not done yet
        self.total = total  # how many assignments, once that is known
        self.next = 0  # the first item that is not planned yet
        self.extras = 0  # additional specialists
        self.done = 0
        self.waiting: deque[str] = deque()  # planned and not under way, by local name
        self.items: list[Any] = []  # of a `foreach`
        self.basis: Any = None  # what its assignments are made from, once one was planned
        self.skipped = False
        self.proved = False  # whether what a rollback kept of it was looked at
        self.released = False  # whether those that need it have been told
        self.problem: str | None = None  # why its assignments cannot be worked out

    @property
    def is_foreach(self) -> bool:
        """Whether it has an assignment for each item of a list."""
        return self.specialist is not None and self.specialist.foreach is not None

    @property
    def is_complete(self) -> bool:
        return self.total is not None and self.done >= self.total + self.extras

    def local(self, index: int) -> str:
        return item_name(self.id, index if self.is_foreach else None)


class Board:
    """The groups of the current visit and round."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.judging: Group | None = None
        self.errands = Group(None, 0, total=0)
        self.callers: dict[TaskId, TaskId] = {}  # of errands that are not over
        self.running: dict[TaskId, str] = {}  # assignments under way and the group each belongs to
        self.open_waits: dict[str, None] = {}
        self.unfinished = 0  # groups that are not complete
        self.since = Instant(0)  # when this process began to play
        self.stale = True
        self._dependants: dict[str, list[str]] = {}
        self._over_here: set[TaskId] = set()  # assignments that are over
        self._untouched = False  # whether the visit has just begun and nothing was planned in it

    def refresh(self, view: View) -> None:
        """Work everything out anew when that is needed."""
        if not self.stale:
            return
        self.stale = False
        self.running, self.groups, self._dependants, self._over_here = {}, {}, {}, set()
        self.open_waits = {name: None for name, wait in view.state.waits.items() if wait.status == "open"}
        self._build(view.phase)
        if view.phase is None:
            return
        # Nothing was planned in a visit that has just begun, unless a rollback kept what comes later.
        recall = not self._untouched or view.state.generation > 0
        self._untouched = False
        for specialist in view.in_order():
            group = self.groups[specialist.id]
            if group.unmet == 0:
                self.open(group, view, recall=recall)
        if self.judging is not None and recall:
            self._recall(self.judging, view.state, EVALUATION)
        for name, task in view.current_tasks().items() if recall else ():
            if task.call is not None:
                self._recall(self.errands, view.state, local_of(name))
                if task.status in ("pending", "running", "failed"):
                    self.callers[name] = caller_of(name)

    @property
    def at_work(self) -> int:
        """How many assignments are under way that do not wait for an errand."""
        waiting = self.running.keys() & set(self.callers.values()) if self.callers else ()
        return len(self.running) - len(waiting)

    def _build(self, phase: Phase | None) -> None:
        specialists = phase.specialists if phase is not None else ()
        self.groups = {each.id: Group(each, len(each.needs)) for each in specialists}
        self.unfinished, self.judging = len(self.groups), None
        self.errands, self.callers = Group(None, 0, total=0), {}
        for each in specialists:
            for need in each.needs:
                self._dependants.setdefault(need, []).append(each.id)
        if phase is not None and phase.evaluate is not None:
            self.judging = Group(None, 0, total=1)

    def open(self, group: Group, view: View, *, recall: bool = True) -> None:
        """What a group needs is there: find out which assignments it has, and what became of them."""
        assert group.specialist is not None, "BUG: the evaluation is not opened"
        try:
            group.total = _count(group, view)
        except BadExpression as error:
            assert view.phase is not None, "BUG: only a phase has groups"
            key = "when" if error.data["expression"] == group.specialist.when else "foreach"
            place = f"phases.{view.phase.id}.specialists.{group.specialist.id}.{key}"
            group.total, group.problem = 1, str(with_place(error, place))
        if recall:
            for index in range(group.total):
                if not self._recall(group, view.state, group.local(index)) and group.is_foreach:
                    break
            while self._recall(group, view.state, f"{group.id}+{group.extras + 1}", extra=True):
                pass
        self._settle(group, was_complete=False)

    def _recall(self, group: Group, state: State, local: str, *, extra: bool = False) -> bool:
        """What became of one assignment; False when it is not planned yet."""
        name = task_id(state, local)
        task = state.tasks.get(name)
        if task is None:
            return False
        group.extras += int(extra)
        group.next += int(not extra)
        if task.status == "running":
            self.running[name] = group.id
        elif task.status in ("pending", "failed"):
            group.waiting.append(local)
        else:
            group.done += 1
            self._over_here.add(name)
        return True

    def note(self, events: Iterable[ev.Event]) -> None:
        """Bring the board up to date with events that were applied."""
        for event in events:
            note = _NOTED.get(type(event))
            if note is not None:
                note(self, event)

    def renew(self, *, entered: bool = False) -> None:
        """What was noted does not hold any more: work everything out anew when it is next looked at."""
        self.stale, self._untouched = True, entered

    def _note_failed(self, event: ev.TaskFailed) -> None:
        group = self._group(event.task)
        self.running.pop(event.task, None)
        if group is not None and local_of(event.task) not in group.waiting:
            group.waiting.append(local_of(event.task))

    def _note_planned(self, event: ev.TaskPlanned) -> None:
        group, local = self._group(event.task), local_of(event.task)
        if group is None or group.total is None or local in group.waiting:
            return  # a group that is not open yet finds its assignments when it is opened
        if event.task in self._over_here:
            self.stale = True  # what was over is to be done again: rare enough to look at everything
            return
        group.waiting.append(local)
        if group is self.errands:
            self.callers[event.task] = caller_of(event.task)
            group.next += 1
        elif "+" in local:
            was_complete = group.is_complete
            group.extras += 1
            self.unfinished += int(was_complete and group.specialist is not None)
        else:
            group.next += 1

    def _note_launched(self, event: ev.AgentLaunched) -> None:
        group = self._group(event.task)
        if group is not None:
            group.waiting.remove(local_of(event.task))
            self.running[event.task] = group.id

    def _note_over(self, event: ev.TaskCompleted | ev.TaskRetired) -> None:
        task = event.task
        group, local = self._group(task), local_of(task)
        if group is None:
            return
        if self.running.pop(task, None) is None and local in group.waiting:
            group.waiting.remove(local)
        self._over_here.add(task)
        self.callers.pop(task, None)
        was_complete = group.is_complete
        group.done += 1
        self._settle(group, was_complete=was_complete)

    def _settle(self, group: Group, *, was_complete: bool) -> None:
        """Release those that need a group once its own assignments are done; count it once all are."""
        if group.specialist is None or group.total is None or group.done < group.total:
            return
        if not group.released:
            group.released = True
            for name in self._dependants.get(group.id, ()):
                self.groups[name].unmet -= 1
        self.unfinished -= int(group.is_complete and not was_complete)

    def _group(self, task: TaskId) -> Group | None:
        """The group an assignment belongs to; None while the board is to be worked out anew."""
        if self.stale:
            self._untouched = False
            return None
        local = local_of(task)
        name = specialist_name(local)
        if ":" in local:
            return self.errands
        return self.judging if name == EVALUATION and self.judging is not None else self.groups.get(name)

    def open_all(self, view: View) -> None:
        """Find out about every group of which what it needs is there; one that is empty releases others."""
        while ready := [each for each in self.groups.values() if each.total is None and each.unmet == 0]:
            for group in ready:
                self.open(group, view)

    def all_groups(self) -> list[Group]:
        """Every group, errands first and the evaluation last."""
        groups = [self.errands, *self.groups.values()]
        return [*groups, self.judging] if self.judging is not None else groups


_NOTED: Final[dict[type[ev.Event], Callable[[Board, Any], None]]] = {
    **dict.fromkeys(_ANEW, lambda board, _: board.renew()),
    ev.PhaseStarted: lambda board, _: board.renew(entered=True),
    ev.WaitOpened: lambda board, event: board.open_waits.update({event.wait: None}),
    ev.WaitClosed: lambda board, event: board.open_waits.pop(event.wait, None),
    ev.TaskPlanned: Board._note_planned,
    ev.AgentLaunched: Board._note_launched,
    ev.TaskFailed: Board._note_failed,
    ev.TaskCompleted: Board._note_over,
    ev.TaskRetired: Board._note_over,
}
"""What events do to a board."""


def _count(group: Group, view: View) -> int:
    specialist = group.specialist
    assert specialist is not None, "BUG: the evaluation is always one"
    if specialist.when is not None:
        asked = condition(specialist.when, SPECIALIST_NAMES)
        group.skipped = not asked.holds(view.names(asked.names, specialist))
    if group.skipped or specialist.foreach is None:
        return 1
    group.items = items_of(specialist, view)
    return len(group.items)


def items_of(specialist: Specialist, view: View) -> list[Any]:
    """The items of a `foreach`; raises `BadExpression` when it gives something else than a list."""
    assert specialist.foreach is not None, "BUG: only a foreach has items"
    wanted = expression(specialist.foreach, SPECIALIST_NAMES)
    found = wanted.value(view.names(wanted.names, specialist))
    if not isinstance(found, list):
        reason = f"foreach needs a list, and this gives {type(found).__name__}"
    elif len(found) > FOREACH_ITEMS:
        reason = f"it gives {len(found)} items, more than {FOREACH_ITEMS}"
    else:
        return found
    raise BadExpression(expression=specialist.foreach, reason=reason)
