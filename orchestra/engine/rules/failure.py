"""What is done about assignments that keep failing: the steps of `on_failure`, one after the other."""

from collections.abc import Iterator
from typing import assert_never

from orchestra.engine.board import Board, Group
from orchestra.engine.names import failure_wait, item_index, local_of, specialist_name, task_id
from orchestra.engine.rollback import spared
from orchestra.engine.rules.launch import is_exhausted, retry_of
from orchestra.engine.rules.moves import HOLD, NOTHING, Move, Rollback, decision, end_event
from orchestra.engine.view import View
from orchestra.ids import AgentId, Digest, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Task
from orchestra.model.workflow import FailureStep, Specialist

_RETRY, _SKIP, _FAIL = "retry", "skip", "fail"


def failures(view: View, board: Board, now: Instant) -> Move:
    """The next step for the first assignment that needs one."""
    for group, local in _exhausted(view, board):
        name = task_id(view.state, local)
        move = _handled(view, board, group, name, now)
        if move.events or move.rollback or move.hold:
            return move
    return NOTHING


def _exhausted(view: View, board: Board) -> Iterator[tuple[Group, str]]:
    if not view.state.open_failures:
        return
    for group in board.all_groups():
        for local in group.waiting:
            task = view.state.tasks[task_id(view.state, local)]
            if is_exhausted(task, retry_of(view, group.specialist), view, group.specialist):
                yield group, local


def _handled(view: View, board: Board, group: Group, name: TaskId, now: Instant) -> Move:
    task, specialist = view.state.tasks[name], group.specialist
    steps = _untried(view, name, steps_for(view, specialist))
    for place, step in enumerate(steps):
        move = _step(step, view, board, name, task, specialist, now, steps[place + 1 :])
        if move is not None:
            return move
    return _fail(view, board, name, task, now, ())


def steps_for(view: View, specialist: Specialist | None) -> tuple[FailureStep, ...]:
    """What is to be tried for a specialist, or for the evaluation."""
    return (specialist.on_failure if specialist else ()) or view.workflow.policy.recovery.on_failure


def _untried(view: View, name: TaskId, steps: tuple[FailureStep, ...]) -> tuple[FailureStep, ...]:
    """The steps that are left for an assignment: what stands before its last rollback was tried."""
    places = [place for place, step in enumerate(steps) if step == "rollback"]
    tried = min(len(places), sum(each.blamed == name for each in view.state.rollbacks))
    return steps[places[tried - 1] + 1 :] if tried else steps


def _step(
    step: FailureStep,
    view: View,
    board: Board,
    name: TaskId,
    task: Task,
    specialist: Specialist | None,
    now: Instant,
    rest: tuple[FailureStep, ...],
) -> Move | None:
    """What a step does; None when it was tried already or cannot be."""
    match step:
        case "restart":
            return None
        case "substitute":
            return _substitute(view, board, name, task, specialist, now, rest)
        case "rollback":
            return _roll_back(view, board, name, task, rest)
        case "degrade":
            return _degrade(view, name, task, now, rest)
        case "ask":
            return _ask(view, board, name, task, specialist, now)
        case "fail":
            return _fail(view, board, name, task, now, rest)
        case _:
            assert_never(step)


def _roll_back(
    view: View, board: Board, name: TaskId, task: Task, rest: tuple[FailureStep, ...]
) -> Move | None:
    """The run goes back, once siblings have ended whose results it would keep: they are not started again."""
    if task.failure is None or not task.failure.recoverable:
        return None  # it would fail the same way again, and what it needs would be paid for again
    spent = view.state.metrics.rollbacks + view.state.metrics.recoveries
    if spent >= view.workflow.policy.recovery.max_recoveries:
        return None
    if any(spared(view, board.running, name)):
        return HOLD
    waiting = (task_id(view.state, local) for group in board.all_groups() for local in group.waiting)
    if any(_will_go_on(view, each) for each in spared(view, waiting, name)):
        return NOTHING  # it was cut off, and begins again from what it saved
    return Move(rollback=Rollback(task=name, reason=_why(name, task), alternatives=rest))


def _will_go_on(view: View, name: TaskId) -> bool:
    """Whether an assignment began and is to be tried again."""
    task, specialist = view.state.tasks[name], view.specialist(specialist_name(local_of(name)))
    began = task.status == "pending" and task.attempts > 0
    return began and not is_exhausted(task, retry_of(view, specialist), view, specialist)


def _substitute(
    view: View,
    board: Board,
    name: TaskId,
    task: Task,
    specialist: Specialist | None,
    now: Instant,
    rest: tuple[FailureStep, ...],
) -> Move | None:
    if specialist is None or specialist.substitute is None or task.by == specialist.substitute:
        return None
    if task.effect_key is None:  # its task could not be worked out, which nobody else can do either
        return None
    chosen = decision(
        view,
        now,
        kind="failure_handling",
        description=f"Let {specialist.substitute} do {name} instead of {task.by}",
        rationale=_why(name, task),
        alternatives=rest,
    )
    return Move(events=(chosen, _anew(view, board, task, name, now, specialist.substitute)))


def _anew(
    view: View, board: Board, task: Task, name: TaskId, now: Instant, by: AgentId | None
) -> ev.TaskPlanned:
    """The same assignment, as if nothing had been tried; by somebody else, its key is another."""
    return ev.TaskPlanned(
        at=now,
        task=name,
        agent=task.agent,
        by=by,
        phase=task.phase,
        visit=task.visit,
        round=task.round,
        description=task.description,
        effect_key=task.effect_key,
        key=task.key if by is None or by == task.by else _key(view, board, task, name, by),
    )


def _key(view: View, board: Board, task: Task, name: TaskId, by: AgentId) -> Digest:
    local = local_of(name)
    held, index = board.groups[specialist_name(local)], item_index(local)
    item = None if index is None else held.items[index]
    return view.key(by, task.description, held.specialist, item)


def _degrade(view: View, name: TaskId, task: Task, now: Instant, rest: tuple[FailureStep, ...]) -> Move:
    chosen = decision(
        view,
        now,
        kind="failure_handling",
        description=f"Go on without {name}",
        rationale=_why(name, task),
        alternatives=rest,
    )
    retired = ev.TaskRetired(at=now, task=name, outcome="skipped", reason=_why(name, task))
    return Move(events=(chosen, retired))


def _ask(
    view: View, board: Board, name: TaskId, task: Task, specialist: Specialist | None, now: Instant
) -> Move | None:
    assert task.failure is not None, "BUG: only what failed is handled here"
    wait = failure_wait(name, task.failure.at)
    held = view.state.waits.get(wait)
    if held is None:
        asked = ev.WaitOpened(
            at=now,
            wait=wait,
            waits_for="question",
            text=f"{_why(name, task)}. What now?",
            choices=(_RETRY, _SKIP, _FAIL),
        )
        chosen = decision(
            view,
            now,
            kind="failure_handling",
            description=f"Ask a person about {name}",
            rationale=_why(name, task),
            alternatives=(_RETRY, _SKIP, _FAIL),
        )
        return Move(events=(chosen, asked))
    if held.status == "open":
        return NOTHING
    answer = view.opened_value(held.answer)
    if answer == _RETRY:
        return Move(events=(_anew(view, board, task, name, now, task.by),))
    if answer == _SKIP:
        return _degrade(view, name, task, now, ())
    return _fail(view, board, name, task, now, ())


def _fail(
    view: View, board: Board, name: TaskId, task: Task, now: Instant, rest: tuple[FailureStep, ...]
) -> Move:
    """The run fails, once what is under way has ended: its results are work that was paid for."""
    if board.running:
        return HOLD
    assert task.failure is not None, "BUG: only what failed is handled here"
    chosen = decision(
        view,
        now,
        kind="failure_handling",
        description="Fail the run",
        rationale=_why(name, task),
        alternatives=rest,
    )
    return Move(events=(chosen, end_event(now, "failed", _why(name, task), task.failure)))


def _why(name: TaskId, task: Task) -> str:
    assert task.failure is not None, "BUG: only what failed is handled here"
    times = "once" if task.failures == 1 else f"{task.failures} times"
    return f"{name} failed {times}: {task.failure.error}: {task.failure.message}"[:2000]
