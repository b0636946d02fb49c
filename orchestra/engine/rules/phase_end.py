"""The end of a phase: reactions to a low confidence, the evaluation, another round, then completion."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, assert_never

import attrs

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
Confidences: TypeAlias = list[tuple[Specialist, float]]
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
        said = _confidences(done)
        if said:
            reaction = _reactions(view, board, now, said)
            if reaction.hold or _is_busy(reaction.events):
                return reaction
            events.extend(reaction.events)
            # How sure they are together; each rollback there was makes the run less sure.
            lowered = view.workflow.policy.confidence.rollback_factor ** len(view.state.rollbacks)
            overall = round(lowered * sum(each for _, each in said) / len(said), 6)
            events.append(ev.ConfidenceReported(at=now, value=overall))
    if phase.evaluate is not None and group is not None:
        if group.next == 0:
            try:
                made = plan_evaluation(view, phase.evaluate, now)
            except BadExpression as error:
                return Move(events=(*events, failed_end(now, str(error), error="BadExpression")))
            return Move(events=(*events, made, launch_event(now, made, "apollo")))
        if not group.is_complete:
            return NOTHING
        held = view.evaluation()
        # A verdict of an earlier round does not count.
        if held is not None and held["verdict"] == "revise" and held["round"] == view.state.cursor.round:
            if view.state.cursor.round <= phase.evaluate.rounds:
                return Move(events=_another_round(view, phase.evaluate, held, now))
            events.append(_rounds_used_up(view, phase.evaluate, held, now))
    return move_of(events=(*events, *_completion(view, now, done)))


def _is_busy(events: tuple[ev.Event, ...]) -> bool:
    """Whether a reaction begins something that must end first."""
    return any(isinstance(event, (ev.TaskPlanned, ev.WaitOpened, ev.RunEnded)) for event in events)


# Reactions to a low confidence.


def _reactions(view: View, board: Board, now: Instant, said: Confidences) -> Move:
    """The reactions to everybody who is too unsure; the first that begins something comes alone."""
    events: list[ev.Event] = []
    for specialist, confidence in said:
        threshold = specialist.threshold
        if threshold is None:
            threshold = view.workflow.policy.confidence.threshold
        if threshold is not None and confidence < threshold:
            why = f"Mercury {specialist.id} confidence ({confidence:g}) below threshold ({threshold:g})"
            move = _reaction_to(_Doubt(view, board, now, specialist, why))
            if move.hold or _is_busy(move.events):
                return move
            events.extend(move.events)
    return Move(events=tuple(events))


def _reaction_to(doubt: "_Doubt") -> Move:
    assert doubt.view.phase is not None, "BUG: only a phase is closed"
    reactions = doubt.view.phase.on_low_confidence or (Proceed(),)
    names = [_name(each) for each in reactions]
    for place, reaction in enumerate(reactions):
        move = doubt.react(reaction, names[place + 1 :] or ["fail"])
        if move is not None:
            return move
    return doubt.proceed(names)


def _confidences(done: Done) -> Confidences:
    """How sure each specialist is who said so: the best of additional ones, the mean of a `foreach`."""
    found: Confidences = []
    for specialist, tasks in done:
        said = [task.confidence for _, task in tasks if task.confidence is not None]
        if said:
            together = max(said) if specialist.foreach is None else sum(said) / len(said)
            found.append((specialist, round(together, 6)))
    return found


def _name(reaction: Reaction) -> str:
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


@attrs.frozen
class _Doubt:
    """A specialist whose confidence is too low. `others` are the reactions that would be tried next."""

    view: View
    board: Board
    now: Instant
    specialist: Specialist
    why: str

    def react(self, reaction: Reaction, others: list[str]) -> Move | None:
        """What a reaction does; None when it was tried already."""
        match reaction:
            case Spawn():
                return self._spawn(reaction, others)
            case Ask():
                return self._ask(reaction, others)
            case Proceed():
                return self.proceed(others)
            case Fail():
                return self._give_up(others)
            case _:
                assert_never(reaction)

    def proceed(self, others: list[str], said: str = "") -> Move:
        """Go on all the same; `said` is what a person answered."""
        return Move(events=(self._decision("Proceed with low confidence", others, said),))

    def _give_up(self, others: list[str], said: str = "") -> Move:
        end = failed_end(self.now, self.why + said, error="LowConfidence")
        return Move(events=(self._decision("Fail the run", others, said), end))

    def _spawn(self, reaction: Spawn, others: list[str]) -> Move | None:
        view, specialist = self.view, self.specialist
        number = self.board.groups[specialist.id].extras + 1
        if number > reaction.max:
            return None
        model = view.specialist(reaction.specialist) or specialist
        local, by = f"{specialist.id}+{number}", reaction.agent or model.agent
        try:
            made = plan_task(view, self.now, local=local, by=by, text=model.task, specialist=specialist)
        except BadExpression:
            return None
        return Move(events=(self._decision(f"Spawn additional specialist {local} ({by})", others), made))

    def _ask(self, reaction: Ask, others: list[str]) -> Move:
        name = confidence_wait(self.view.state)
        held = self.view.state.waits.get(name)
        if held is None:
            text, choices = f"{reaction.question} {self.why}.", reaction.choices
            asked = ev.WaitOpened(at=self.now, wait=name, waits_for="question", text=text, choices=choices)
            return Move(events=(self._decision("Ask a person whether to go on", others), asked))
        if held.status == "open":
            return HOLD
        answer = self.view.open_value(held.answer)
        said = f"; a person answered {answer!r}"
        if (answer.strip().lower() if isinstance(answer, str) else answer) in _YES:
            return self.proceed(others, said)
        return self._give_up(others, said)

    def _decision(self, description: str, others: list[str], said: str = "") -> ev.DecisionMade:
        return decision(self.view, self.now, "workflow_adjustment", description, self.why + said, others)


# The evaluation.


def _another_round(
    view: View, evaluate: Evaluate, held: dict[str, Any], now: Instant
) -> tuple[ev.Event, ...]:
    """The evaluation `held` asks for another round."""
    cursor, feedback = view.state.cursor, f": {held['feedback']}" if held["feedback"] else ""
    assert cursor.phase is not None, "BUG: only a phase is closed"
    what = f"Revise {here(view.state)}: round {cursor.round + 1}"
    why = f"score {held['score']:.2f} below threshold ({evaluate.threshold:g}){feedback}"[:2000]
    chosen = decision(view, now, "evaluation", what, why, ("accept as it is", "reject"))
    following = ev.RoundStarted(at=now, phase=cursor.phase, round=cursor.round + 1, feedback=held["feedback"])
    return chosen, following


def _rounds_used_up(view: View, evaluate: Evaluate, held: dict[str, Any], now: Instant) -> ev.DecisionMade:
    """A verdict that asks for more than there are rounds is on the record as such."""
    rounds = "a round" if view.state.cursor.round == 1 else f"{view.state.cursor.round} rounds"
    what = f"Go on with {here(view.state)} as it is"
    why = f"score {held['score']:.2f} below {evaluate.threshold:g} after {rounds}"
    return decision(view, now, "evaluation", what, why, ("revise again", "reject"))


# Completion.


def _completion(view: View, now: Instant, done: Done) -> tuple[ev.Event, ...]:
    """The results enter the context, and the phase is completed."""
    phase = view.phase
    assert phase is not None, "BUG: only a phase is closed"
    try:
        contributed = tuple(_contributions(view, now, done))
    except OrchestraError as error:
        return (failed_end(now, str(error), error=type(error).__name__),)
    deliverables: tuple[str, ...] = ()
    if view.state.outputs:
        prefix = f"{here(view.state)}/"
        deliverables = tuple(path for path in view.state.outputs if path.startswith(prefix))
    return (*contributed, _phase_completed(at=now, phase=phase.id, deliverables=deliverables))


def _contributions(view: View, now: Instant, done: Done) -> Iterator[ev.Event]:
    for specialist, tasks in done:
        if specialist.into is None:
            continue
        name, agent = specialist.into, AgentId(specialist.id)
        made = view.contribution(specialist, tasks)
        if made is not None:
            yield _context_contributed(at=now, name=name, contribution=made, agent=agent)
