"""Starting assignments: as soon as what they need is there, as many at once as the policy allows."""

import attrs

from orchestra.engine.board import Board, Group
from orchestra.engine.names import EVALUATION, breakpoint_wait, evaluator, here, item_index, task_id
from orchestra.engine.rules.moves import (
    NOTHING,
    Move,
    launch_event,
    move_of,
    plan_of,
    plan_task,
    relaunch_event,
)
from orchestra.engine.view import View
from orchestra.errors import BadExpression
from orchestra.ids import AgentId, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Failure, Task
from orchestra.model.workflow import Evaluate, FailureStep, Retry, Specialist


@attrs.define
class _Starts:
    """What is begun in one move."""

    room: int  # how many more attempts may begin
    events: list[ev.Event] = attrs.field(factory=list)
    wake: Instant | None = None  # when to look again

    def add(self, events: tuple[ev.Event, ...]) -> None:
        """Begin something, or say why it is not begun."""
        self.events.extend(events)
        self.room -= type(events[-1]) is ev.AgentLaunched  # a launch comes after what it launches

    def later(self, due: Instant) -> None:
        """There will be something to begin then."""
        self.wake = due if self.wake is None or due < self.wake else self.wake


def launches(view: View, board: Board, now: Instant) -> Move:
    """Every assignment that can start now."""
    starts = _Starts(view.workflow.policy.concurrency - len(board.running))
    board.open_all(view)
    for group in board.groups.values():
        if starts.room > 0 and group.unmet == 0 and not group.is_complete:
            _start_group(starts, group, view, board, now)
    judging = board.judging
    if judging is not None and starts.room > 0 and not board.unfinished and not judging.is_complete:
        _start_again(starts, judging, view, board, now)
    if starts.events or starts.wake is not None:
        return move_of(events=tuple(starts.events), wake=starts.wake)
    return NOTHING


def _start_group(starts: _Starts, group: Group, view: View, board: Board, now: Instant) -> None:
    """Start a group's assignments: those that wait for another attempt, then those that never began."""
    if group.waiting:
        _start_again(starts, group, view, board, now)
    specialist = group.specialist
    assert specialist is not None, "BUG: the evaluation is not among the groups"
    assert group.total is not None, "BUG: a group that is ready was opened"
    if specialist.breakpoint and group.next == 0:
        paused = breakpoint_events(view, board, now, before=group.id, local=group.id)
        if paused is not None:
            starts.events.extend(paused)
            return
    for index in range(group.next, min(group.total, group.next + starts.room)):
        starts.add(_first(group, specialist, index, view, now))


def _start_again(starts: _Starts, group: Group, view: View, board: Board, now: Instant) -> None:
    for local in tuple(group.waiting):
        if starts.room <= 0:
            return
        events, due = _again(group, local, view, board, now)
        if events:
            starts.add(events)
        elif due:
            starts.later(due)


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


def _first(
    group: Group, specialist: Specialist, index: int, view: View, now: Instant
) -> tuple[ev.Event, ...]:
    """The events that plan and start an assignment, or say why it is not started."""
    if group.skipped:
        event = _unstartable(view, specialist, group.local(index), now)
        reason = f"{specialist.when} does not hold"
        return event, ev.TaskRetired(at=now, task=event.task, outcome="skipped", reason=reason)
    problem = group.problem
    if problem is None:
        try:
            made = plan_of(view, group, index, now)
            return made, launch_event(now, made)
        except BadExpression as error:
            problem = str(error)
    event = _unstartable(view, specialist, group.local(index), now)
    failure = Failure(error="BadExpression", message=problem, at=now, recoverable=False)
    return event, ev.TaskFailed(at=now, task=event.task, failure=failure)


def _unstartable(view: View, specialist: Specialist, local: str, now: Instant) -> ev.TaskPlanned:
    """An assignment whose task is not worked out."""
    cursor = view.state.cursor
    assert cursor.phase is not None, "BUG: assignments belong to a phase"
    return ev.TaskPlanned(
        at=now,
        task=task_id(view.state, local),
        agent=AgentId(local),
        by=specialist.agent,
        phase=cursor.phase,
        visit=cursor.visit,
        round=cursor.round,
        description=specialist.task,
    )


def _again(
    group: Group, local: str, view: View, board: Board, now: Instant
) -> tuple[tuple[ev.Event, ...], Instant]:
    """A further attempt, or the time at which there may be one; `Instant(0)` when there is none to come."""
    name = task_id(view.state, local)
    task = view.state.tasks[name]
    if task.failure is not None:
        if is_exhausted(view, task, group.specialist):
            return (), Instant(0)
        wait = retry_of(view, group.specialist).wait_us(task.failures)
        due = Instant(task.failure.at + wait)
        if now < due <= now + wait:  # a time further ahead was told by a clock that was set since
            return (), due
    for each in board.open_waits:
        wait_held = view.state.waits[each]
        if wait_held.task == name and wait_held.kind == "rate_limit" and wait_held.until:
            return (), wait_held.until  # its provider wants it to wait, also over an interruption
    if group.specialist is None:
        return _judging_again(name, task, view, now), now
    if task.effect_key is None:  # it could not be started: its task or condition did not make sense
        return _first(group, group.specialist, item_index(local) or 0, view, now), now
    return (relaunch_event(now, name, task, "mercury"),), now


def _judging_again(name: TaskId, task: Task, view: View, now: Instant) -> tuple[ev.Event, ...]:
    """A further attempt at the evaluation; when what it judges has changed it begins from the start."""
    evaluate = view.phase.evaluate if view.phase is not None else None
    assert evaluate is not None, "BUG: an evaluation was planned"
    made = plan_evaluation(view, evaluate, now)
    if made.key == task.key:
        return (relaunch_event(now, name, task, "apollo"),)
    return made, launch_event(now, made, "apollo")


def plan_evaluation(view: View, evaluate: Evaluate, now: Instant) -> ev.TaskPlanned:
    """The evaluation of the phase as an assignment; raises `BadExpression`."""
    return plan_task(
        view,
        now,
        local=EVALUATION,
        agent=evaluator(evaluate.agent),
        by=evaluate.agent,
        text=evaluate.task or f"Judge the results of {here(view.state)}",
        specialist=None,
    )


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
    attempts = retry_of(view, specialist).attempts if "restart" in steps_for(view, specialist) else 1
    return not task.failure.recoverable or task.failures >= attempts
