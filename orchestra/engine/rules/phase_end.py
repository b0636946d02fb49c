"""The end of a phase: reactions to a low confidence, the evaluation, another round, then completion."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, assert_never

from orchestra.engine.board import Board
from orchestra.engine.names import confidence_wait, here
from orchestra.engine.rules.launch import plan_evaluation
from orchestra.engine.rules.moves import (
    HOLD,
    NOTHING,
    Move,
    decision,
    failed_end,
    launch_event,
    move_of,
    plan_task,
)
from orchestra.engine.view import View
from orchestra.errors import BadExpression, OrchestraError
from orchestra.ids import AgentId, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.records import Task
from orchestra.model.workflow import Ask, Evaluate, Fail, Proceed, Reaction, Spawn, Specialist

Done: TypeAlias = list[tuple[Specialist, list[tuple[TaskId, Task]]]]
"""Specialists and their assignments that are done."""
Said: TypeAlias = list[tuple[Specialist, float]]
"""Specialists and how sure they are."""
_context_contributed: Final = maker(ev.ContextContributed)
_phase_completed: Final = maker(ev.PhaseCompleted)
_YES = frozenset({"yes", "y", "true", True})


def close(view: View, board: Board, now: Instant) -> Move:
    """What is left to do once every specialist of the phase is done."""
    phase, group = view.phase, board.judging
    if phase is None or board.unfinished or board.running or board.stale:
        return NOTHING
    events: list[ev.Event] = []
    done: Done = [(each, view.tasks(each, board.groups[each.id].extras)) for each in phase.specialists]
    if group is None or group.next == 0:
        said = _said(done)
        if said:
            reaction = _reacted(view, board, now, said)
            if reaction.hold or _is_busy(reaction.events):
                return reaction
            events.extend(reaction.events)
            events.append(_overall(view, now, said))
    if phase.evaluate is not None and group is not None:
        if group.next == 0:
            return Move(events=(*events, *_evaluation(view, phase.evaluate, now)))
        if not group.complete:
            return NOTHING
        again = _another_round(view, phase.evaluate, now)
        if again:
            return Move(events=again)
        events.extend(_used_up(view, phase.evaluate, now))
    return move_of(events=(*events, *_completed(view, now, done)))


def _is_busy(events: tuple[ev.Event, ...]) -> bool:
    """Whether a reaction begins something that must end first."""
    return any(isinstance(event, (ev.TaskPlanned, ev.WaitOpened, ev.RunEnded)) for event in events)


# Reactions to a low confidence.


def _reacted(view: View, board: Board, now: Instant, said: Said) -> Move:
    """The reactions to everybody who is too unsure; the first that begins something comes alone."""
    events: list[ev.Event] = []
    for specialist, confidence, threshold in _low(view, said):
        why = f"Mercury {specialist.id} confidence ({confidence:g}) below threshold ({threshold:g})"
        move = _reacted_to(view, board, now, specialist, why)
        if move.hold or _is_busy(move.events):
            return move
        events.extend(move.events)
    return Move(events=tuple(events))


def _reacted_to(view: View, board: Board, now: Instant, specialist: Specialist, why: str) -> Move:
    assert view.phase is not None, "BUG: only a phase is closed"
    reactions = view.phase.on_low_confidence or (Proceed(),)
    for place, reaction in enumerate(reactions):
        others = [_named(each) for each in reactions[place + 1 :]] or ["fail"]
        move = _reaction(reaction, view, board, now, specialist, why, others)
        if move is not None:
            return move
    return _proceed(view, now, why, [_named(each) for each in reactions])


def _said(done: Done) -> Said:
    """How sure each specialist is who said so, also with additional ones counted."""
    found: Said = []
    for specialist, tasks in done:
        said = [task.confidence for _, task in tasks if task.confidence is not None]
        if said:
            found.append((specialist, _together(specialist, said)))
    return found


def _low(view: View, said: Said) -> Iterator[tuple[Specialist, float, float]]:
    """Specialists whose confidence is too low."""
    for specialist, confidence in said:
        threshold = specialist.threshold
        if threshold is None:
            threshold = view.workflow.policy.confidence.threshold
        if threshold is not None and confidence < threshold:
            yield specialist, confidence, threshold


def _together(specialist: Specialist, said: list[float]) -> float:
    """One confidence for a specialist: the best of those who did the same, the mean of a `foreach`."""
    return round(max(said) if specialist.foreach is None else sum(said) / len(said), 6)


def _named(reaction: Reaction) -> str:
    match reaction:
        case Spawn():
            return f"spawn_{reaction.specialist}"
        case Ask():
            return "request_human_review"
        case Proceed():
            return "proceed_with_low_confidence"
        case Fail():
            return "fail"
        case _:
            assert_never(reaction)


def _reaction(
    reaction: Reaction,
    view: View,
    board: Board,
    now: Instant,
    specialist: Specialist,
    why: str,
    others: list[str],
) -> Move | None:
    """What a reaction does; None when it was tried already."""
    match reaction:
        case Spawn():
            return _spawn(reaction, view, board, now, specialist, why, others)
        case Ask():
            return _ask(reaction, view, board, now, why, others)
        case Proceed():
            return _proceed(view, now, why, others)
        case Fail():
            return _give_up(view, now, why, others)
        case _:
            assert_never(reaction)


def _spawn(
    reaction: Spawn,
    view: View,
    board: Board,
    now: Instant,
    specialist: Specialist,
    why: str,
    others: list[str],
) -> Move | None:
    assert view.phase is not None, "BUG: only a phase is closed"
    number = board.groups[specialist.id].extras + 1
    if number > reaction.max:
        return None
    model = next((each for each in view.phase.specialists if each.id == reaction.specialist), specialist)
    local, by = f"{specialist.id}+{number}", reaction.agent or model.agent
    try:
        made = plan_task(view, now, local=local, by=by, text=model.task, specialist=specialist)
    except BadExpression:
        return None
    chosen = decision(
        view,
        now,
        kind="workflow_adjustment",
        description=f"Spawn additional specialist {local} ({by})",
        rationale=why,
        alternatives=others,
    )
    return Move(events=(chosen, made))


def _ask(reaction: Ask, view: View, board: Board, now: Instant, why: str, others: list[str]) -> Move | None:
    name = confidence_wait(view.state)
    held = view.state.waits.get(name)
    if held is None:
        asked = ev.WaitOpened(
            at=now,
            wait=name,
            waits_for="question",
            text=f"{reaction.question} {why}.",
            choices=reaction.choices,
        )
        chosen = decision(
            view,
            now,
            kind="workflow_adjustment",
            description="Ask a person whether to go on",
            rationale=why,
            alternatives=others,
        )
        return Move(events=(chosen, asked))
    if held.status == "open":
        return HOLD
    answer = view.opened_value(held.answer)
    if (answer.strip().lower() if isinstance(answer, str) else answer) in _YES:
        return _proceed(view, now, f"{why}; a person answered {answer!r}", others)
    return _give_up(view, now, f"{why}; a person answered {answer!r}", others)


def _proceed(view: View, now: Instant, why: str, others: list[str]) -> Move:
    chosen = decision(
        view,
        now,
        kind="workflow_adjustment",
        description="Proceed with low confidence",
        rationale=why,
        alternatives=others,
    )
    return Move(events=(chosen,))


def _give_up(view: View, now: Instant, why: str, others: list[str]) -> Move:
    chosen = decision(
        view,
        now,
        kind="workflow_adjustment",
        description="Fail the run",
        rationale=why,
        alternatives=others,
    )
    return Move(events=(chosen, failed_end(now, why, error="LowConfidence")))


def _overall(view: View, now: Instant, said: Said) -> ev.ConfidenceReported:
    """How sure the phase's specialists are together; each rollback there was makes the run less sure."""
    known = [confidence for _, confidence in said]
    lowered = view.workflow.policy.confidence.rollback_factor ** len(view.state.rollbacks)
    return ev.ConfidenceReported(at=now, value=round(lowered * sum(known) / len(known), 6))


# The evaluation.


def _evaluation(view: View, evaluate: Evaluate, now: Instant) -> tuple[ev.Event, ...]:
    try:
        made = plan_evaluation(view, evaluate, now)
    except BadExpression as error:
        return (failed_end(now, str(error), error="BadExpression"),)
    return made, launch_event(now, made, "apollo")


def _revising(view: View) -> dict[str, Any] | None:
    """The evaluation when it asks for another round; one of an earlier round does not count."""
    held = view.evaluation()
    if held is None or held["verdict"] != "revise" or held["round"] != view.state.cursor.round:
        return None
    return held


def _another_round(view: View, evaluate: Evaluate, now: Instant) -> tuple[ev.Event, ...]:
    held, cursor = _revising(view), view.state.cursor
    if held is None or cursor.round > evaluate.rounds or cursor.phase is None:
        return ()
    feedback = f": {held['feedback']}" if held["feedback"] else ""
    chosen = decision(
        view,
        now,
        kind="evaluation",
        description=f"Revise {here(view.state)}: round {cursor.round + 1}",
        rationale=f"score {held['score']:.2f} below threshold ({evaluate.threshold:g}){feedback}"[:2000],
        alternatives=("accept as it is", "reject"),
    )
    following = ev.RoundStarted(at=now, phase=cursor.phase, round=cursor.round + 1, feedback=held["feedback"])
    return chosen, following


def _used_up(view: View, evaluate: Evaluate, now: Instant) -> tuple[ev.Event, ...]:
    """A verdict that asks for more than there are rounds is on the record as such."""
    held, round_ = _revising(view), view.state.cursor.round
    if held is None:
        return ()
    rounds = "a round" if round_ == 1 else f"{round_} rounds"
    return (
        decision(
            view,
            now,
            kind="evaluation",
            description=f"Go on with {here(view.state)} as it is",
            rationale=f"score {held['score']:.2f} below {evaluate.threshold:g} after {rounds}",
            alternatives=("revise again", "reject"),
        ),
    )


# Completion.


def _completed(view: View, now: Instant, done: Done) -> tuple[ev.Event, ...]:
    """The results enter the context, and the phase is completed."""
    phase = view.phase
    assert phase is not None, "BUG: only a phase is closed"
    try:
        contributed = tuple(_contributed(view, now, done))
    except OrchestraError as error:
        return (failed_end(now, str(error), error=type(error).__name__),)
    deliverables: tuple[str, ...] = ()
    if view.state.outputs:
        prefix = f"{here(view.state)}/"
        deliverables = tuple(path for path in view.state.outputs if path.startswith(prefix))
    return (*contributed, _phase_completed(at=now, phase=phase.id, deliverables=deliverables))


def _contributed(view: View, now: Instant, done: Done) -> Iterator[ev.Event]:
    for specialist, tasks in done:
        if specialist.into is None:
            continue
        made = view.contribution(specialist, tasks)
        if made is not None:
            yield _context_contributed(
                at=now, name=specialist.into, contribution=made, agent=AgentId(specialist.id)
            )
