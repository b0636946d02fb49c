"""Starting assignments: as soon as what they need is there, as many at once as the policy allows."""

import attrs

from orchestra.engine.board import Board, Group
from orchestra.engine.names import (
    EVALUATION,
    breakpoint_wait,
    here,
    item_index,
    local_of,
    specialist_name,
    task_id,
)
from orchestra.engine.rules.moves import (
    NOTHING,
    Move,
    basis_of,
    launch_event,
    move_of,
    plan_of,
    plan_task,
    planned_at,
    relaunch_event,
)
from orchestra.engine.view import View
from orchestra.errors import BadExpression
from orchestra.ids import AgentId, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Failure, Task
from orchestra.model.workflow import Evaluate, FailureStep, Retry, Specialist


def errand_launches(view: View, board: Board, now: Instant) -> Move:
    """Every errand that can start now: also while nothing else may, as somebody at work waits for it."""
    if not board.errands.waiting:
        return NOTHING
    starts = _Starts(view, board, now, view.workflow.policy.concurrency - board.at_work)
    if starts.room > 0:
        starts.start_again(board.errands)
    return starts.move()


def launches(view: View, board: Board, now: Instant) -> Move:
    """Every assignment that can start now."""
    starts = _Starts(view, board, now, view.workflow.policy.concurrency - board.at_work)
    board.open_all(view)
    for group in board.groups.values():
        if starts.room > 0 and group.unmet == 0 and not group.is_complete:
            starts.start_group(group)
    judging = board.judging
    if judging is not None and starts.room > 0 and not board.unfinished and not judging.is_complete:
        starts.start_again(judging)
    return starts.move()


@attrs.define
class _Starts:
    """What is begun in one move."""

    view: View
    board: Board
    now: Instant
    room: int  # how many more attempts may begin
    events: list[ev.Event] = attrs.field(factory=list)
    wake: Instant | None = None  # when to look again

    def move(self) -> Move:
        """What is begun, or when to look again."""
        if self.events or self.wake is not None:
            return move_of(events=tuple(self.events), wake=self.wake)
        return NOTHING

    def _add(self, events: tuple[ev.Event, ...]) -> None:
        self.events.extend(events)
        self.room -= type(events[-1]) is ev.AgentLaunched  # a launch comes after what it launches

    def start_group(self, group: Group) -> None:
        """Start a group's assignments: those that wait for another attempt, then those that never began."""
        if group.waiting:
            self.start_again(group)
        specialist = group.specialist
        assert specialist is not None, "BUG: the evaluation is not among the groups"
        assert group.total is not None, "BUG: a group that is ready was opened"
        if specialist.breakpoint and group.next == 0:
            paused = breakpoint_events(self.view, self.board, self.now, before=group.id, local=group.id)
            if paused is not None:
                self.events.extend(paused)
                return
        for index in range(group.next, min(group.total, group.next + self.room)):
            self._add(self._first(group, specialist, index))

    def start_again(self, group: Group) -> None:
        """Start those that wait for another attempt, or look again when there may be one."""
        for local in tuple(group.waiting):
            if self.room <= 0:
                return
            events, due = self._again(group, local)
            if events:
                self._add(events)
            elif due:
                self.wake = due if self.wake is None else min(due, self.wake)

    def _first(self, group: Group, specialist: Specialist, index: int) -> tuple[ev.Event, ...]:
        """The events that plan and start an assignment, or say why it is not started."""
        now, problem = self.now, group.problem
        if not group.skipped and problem is None:
            try:
                made = plan_of(self.view, group, index, now)
                return made, launch_event(now, made)
            except BadExpression as error:
                problem = str(error)
        event = planned_at(  # its task is not worked out
            self.view.state.cursor,
            at=now,
            task=task_id(self.view.state, group.local(index)),
            agent=AgentId(group.local(index)),
            by=specialist.agent,
            description=specialist.task,
            effect_key=None,
            key=None,
        )
        if problem is None:
            reason = f"{specialist.when} does not hold"
            return event, ev.TaskRetired(at=now, task=event.task, outcome="skipped", reason=reason)
        failure = Failure(error="BadExpression", message=problem, at=now, recoverable=False)
        return event, ev.TaskFailed(at=now, task=event.task, failure=failure)

    def _again(self, group: Group, local: str) -> tuple[tuple[ev.Event, ...], Instant]:
        """A further attempt, or the time at which there may be one; `Instant(0)`: there is none to come."""
        view, now, name = self.view, self.now, task_id(self.view.state, local)
        task = view.state.tasks[name]
        specialist = specialist_of(view, name)
        if task.failure is not None:
            if is_exhausted(view, task, specialist):
                return (), Instant(0)
            wait = retry_of(view, specialist).wait_us(task.failures)
            due = Instant(task.failure.at + wait)
            if now < due <= now + wait:  # a time further ahead was told by a clock that was set since
                return (), due
        for each in self.board.open_waits:
            held = view.state.waits[each]
            if held.task == name and held.kind == "rate_limit" and held.until:
                return (), held.until  # its provider wants it to wait, also over an interruption
        if task.call is not None:
            return (relaunch_event(now, name, task, "mercury"),), now
        if group.specialist is None:
            evaluate = view.phase.evaluate if view.phase is not None else None
            assert evaluate is not None, "BUG: an evaluation was planned"
            made = plan_evaluation(view, evaluate, now)
            if made.key != task.key:  # what it judges has changed: it begins from the start
                return (made, launch_event(now, made, "apollo")), now
            return (relaunch_event(now, name, task, "apollo"),), now
        if task.effect_key is None:  # it could not be started: its task or condition did not make sense
            return self._first(group, group.specialist, item_index(local) or 0), now
        return (relaunch_event(now, name, task, "mercury"),), now


def breakpoint_events(
    view: View, board: Board, now: Instant, *, before: str, local: str = ""
) -> tuple[ev.Event, ...] | None:
    """The wait at a breakpoint is opened, or is open already. None: somebody let the run go on."""
    name = breakpoint_wait(view.state, local)
    if name in board.open_waits:
        return ()
    if name in view.state.waits:
        return None
    return (ev.WaitOpened(at=now, wait=name, waits_for="breakpoint", text=f"before {before}"),)


def plan_evaluation(view: View, evaluate: Evaluate, now: Instant) -> ev.TaskPlanned:
    """The evaluation of the phase as an assignment; raises `BadExpression`."""
    text = evaluate.task or f"Judge the results of {here(view.state)}"
    return plan_task(view, now, EVALUATION, evaluate.agent, text, basis_of(view, text, None))


def specialist_of(view: View, name: TaskId) -> Specialist | None:
    """Whom an assignment belongs to; an errand to whom its caller does, the evaluation to nobody."""
    return view.specialist(specialist_name(local_of(name)))


def retry_of(view: View, specialist: Specialist | None) -> Retry:
    """How an assignment is tried again."""
    if specialist is not None:
        return specialist.retry or view.workflow.policy.retry
    evaluate = view.phase.evaluate if view.phase is not None else None
    return (evaluate.retry if evaluate is not None else None) or view.workflow.policy.retry


def steps_for(view: View, specialist: Specialist | None) -> tuple[FailureStep, ...]:
    """What is to be tried when a specialist, or the evaluation, fails."""
    return (specialist.on_failure if specialist else ()) or view.workflow.policy.recovery.on_failure


def is_exhausted(view: View, task: Task, specialist: Specialist | None) -> bool:
    """Whether an assignment failed and is not tried again as it is."""
    if task.failure is None:
        return False
    is_tried_again = task.call is not None or "restart" in steps_for(view, specialist)
    attempts = retry_of(view, specialist).attempts if is_tried_again else 1
    return not task.failure.recoverable or task.failures >= attempts
