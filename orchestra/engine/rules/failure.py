"""What is done about assignments that keep failing: the steps of `on_failure`, one after the other."""

from typing import assert_never

import attrs

from orchestra.engine.board import Board
from orchestra.engine.names import (
    caller_of,
    failure_wait,
    item_index,
    local_of,
    specialist_name,
    task_id,
)
from orchestra.engine.rollback import tasks_not_redone
from orchestra.engine.rules.launch import is_exhausted, specialist_of, steps_for
from orchestra.engine.rules.moves import HOLD, NOTHING, Move, Rollback, decision, end_event, replan_task
from orchestra.engine.view import View
from orchestra.ids import Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Failure, Task
from orchestra.model.workflow import FailureStep, Specialist

_RETRY, _SKIP, _FAIL = "retry", "skip", "fail"
_Steps = tuple[FailureStep, ...]


def failures(view: View, board: Board, now: Instant) -> Move:
    """The next step for the first assignment that needs one."""
    for group in board.all_groups() if view.state.open_failures else ():
        for local in group.waiting:
            name = task_id(view.state, local)
            task = view.state.tasks[name]
            specialist = specialist_of(view, name)
            if task.failure is not None and is_exhausted(view, task, specialist):
                move = _Case(view, board, now, name, task, specialist, task.failure).move()
                if move.events or move.rollback or move.hold:
                    return move
    return NOTHING


@attrs.frozen
class _Case:
    """An assignment that keeps failing. What a step does is a move, None when it cannot be taken."""

    view: View
    board: Board
    now: Instant
    name: TaskId
    task: Task
    specialist: Specialist | None  # None: the evaluation
    failure: Failure

    def move(self) -> Move:
        """The first step that can be taken; what stands before the last rollback was tried already."""
        if self.task.call is not None:
            return self._tell_caller()
        steps = steps_for(self.view, self.specialist)
        places = [place for place, step in enumerate(steps) if step == "rollback"]
        tried = min(len(places), sum(each.blamed == self.name for each in self.view.state.rollbacks))
        for place in range(places[tried - 1] + 1 if tried else 0, len(steps)):
            move = self._take(steps[place], steps[place + 1 :])
            if move is not None:
                return move
        return self._fail(())

    def _take(self, step: FailureStep, rest: _Steps) -> Move | None:
        """What a step does; `rest` are those that would be tried after it."""
        match step:
            case "restart":
                return None  # it was tried already
            case "substitute":
                return self._substitute(rest)
            case "rollback":
                return self._roll_back(rest)
            case "degrade":
                return self._degrade(rest)
            case "ask":
                return self._ask()
            case "fail":
                return self._fail(rest)
            case _:
                assert_never(step)

    def _tell_caller(self) -> Move:
        """An errand that failed is its caller's to cope with, as any tool that fails."""
        retired = ev.TaskRetired(at=self.now, task=self.name, outcome="skipped", reason=self._why())
        told = f"Tell {local_of(caller_of(self.name))} that {self.name} failed"
        return Move(events=(self._decision(told, ("restart", "fail")), retired))

    def _fail(self, rest: _Steps) -> Move:
        """The run fails, once what is under way has ended: its results are work that was paid for."""
        if self.board.running:
            return HOLD
        end = end_event(self.now, "failed", self._why(), self.failure)
        return Move(events=(self._decision("Fail the run", rest), end))

    def _roll_back(self, rest: _Steps) -> Move | None:
        """The run goes back once siblings have ended whose results it keeps: they are not started again."""
        if not self.failure.recoverable:
            return None  # it would fail the same way again, and what it needs would be paid for again
        view, board = self.view, self.board
        spent = view.state.metrics.rollbacks + view.state.metrics.recoveries
        if spent >= view.workflow.policy.recovery.max_recoveries:
            return None
        if any(tasks_not_redone(view, board.running, self.name)):
            return HOLD
        waiting = (task_id(view.state, local) for group in board.all_groups() for local in group.waiting)
        if any(_will_go_on(view, each) for each in tasks_not_redone(view, waiting, self.name)):
            return NOTHING  # it was cut off, and begins again from what it saved
        return Move(rollback=Rollback(task=self.name, reason=self._why(), alternatives=rest))

    def _substitute(self, rest: _Steps) -> Move | None:
        other = self.specialist.substitute if self.specialist is not None else None
        if other is None or self.task.by == other:
            return None
        if self.task.effect_key is None:  # its task could not be worked out, which nobody else can do either
            return None
        chosen = self._decision(f"Let {other} do {self.name} instead of {self.task.by}", rest)
        local = local_of(self.name)
        group, index = self.board.groups[specialist_name(local)], item_index(local)
        item = None if index is None else group.items[index]
        key = self.view.key(other, self.task.description, self.view.sources(group.specialist), item)
        return Move(events=(chosen, replan_task(self.name, self.task, self.now, by=other, key=key)))

    def _degrade(self, rest: _Steps) -> Move:
        retired = ev.TaskRetired(at=self.now, task=self.name, outcome="skipped", reason=self._why())
        return Move(events=(self._decision(f"Go on without {self.name}", rest), retired))

    def _ask(self) -> Move | None:
        wait, choices = failure_wait(self.name, self.failure.at), (_RETRY, _SKIP, _FAIL)
        held = self.view.state.waits.get(wait)
        if held is None:
            text = f"{self._why()}. What now?"
            asked = ev.WaitOpened(at=self.now, wait=wait, waits_for="question", text=text, choices=choices)
            return Move(events=(self._decision(f"Ask a person about {self.name}", choices), asked))
        if held.status == "open":
            return NOTHING
        answer = self.view.open_value(held.answer)
        if answer == _RETRY:
            return Move(events=(replan_task(self.name, self.task, self.now),))
        return self._degrade(()) if answer == _SKIP else self._fail(())

    def _decision(self, description: str, rest: tuple[str, ...]) -> ev.DecisionMade:
        return decision(self.view, self.now, "failure_handling", description, self._why(), rest)

    def _why(self) -> str:
        times = "once" if self.task.failures == 1 else f"{self.task.failures} times"
        return f"{self.name} failed {times}: {self.failure.error}: {self.failure.message}"[:2000]


def _will_go_on(view: View, name: TaskId) -> bool:
    """Whether an assignment began and is to be tried again."""
    task, specialist = view.state.tasks[name], specialist_of(view, name)
    return task.status == "pending" and task.attempts > 0 and not is_exhausted(view, task, specialist)
