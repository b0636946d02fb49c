"""The end of a phase: low confidence, evaluation, another round, completion, and where the run goes then."""

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
    basis_of,
    decision,
    end_event,
    failed_end,
    launch_event,
    move_of,
    plan_task,
)
from orchestra.engine.view import View
from orchestra.errors import BadExpression, OrchestraError
from orchestra.expressions.expression import condition, with_place
from orchestra.expressions.names import TRANSITION_NAMES
from orchestra.ids import AgentId, Instant, PhaseId, TaskId
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.records import Task
from orchestra.model.state import skipped_text
from orchestra.model.workflow import END, Ask, Fail, Phase, Proceed, Reaction, Spawn, Specialist, Transition

Done: TypeAlias = list[tuple[Specialist, list[tuple[TaskId, Task]]]]
"""Specialists and their assignments that are done."""
Confidences: TypeAlias = list[tuple[Specialist, float]]
"""Specialists and how sure they are."""
_context_contributed: Final = maker(ev.ContextContributed)
_phase_completed: Final = maker(ev.PhaseCompleted)
_phase_started: Final = maker(ev.PhaseStarted)
_NAMES: Final = {"ask": "request_human_review", "proceed": "proceed_with_low_confidence", "fail": "fail"}
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
                return _another_round(view, phase, phase.evaluate.threshold, held, now)
            events.append(_rounds_used_up(view, phase.evaluate.threshold, held, now))
    return move_of(events=(*events, *_completion(view, phase, now, done)))


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
            move = _Doubt(view, board, now, specialist, why).move()
            if move.hold or _is_busy(move.events):
                return move
            events.extend(move.events)
    return Move(events=tuple(events))


def _confidences(done: Done) -> Confidences:
    """How sure each specialist is who said so: the best of additional ones, the mean of a `foreach`."""
    found: Confidences = []
    for specialist, tasks in done:
        said = [task.confidence for _, task in tasks if task.confidence is not None]
        if said:
            together = max(said) if specialist.foreach is None else sum(said) / len(said)
            found.append((specialist, round(together, 6)))
    return found


@attrs.frozen
class _Doubt:
    """A specialist whose confidence is too low. `others` are the reactions that would be tried next."""

    view: View
    board: Board
    now: Instant
    specialist: Specialist
    why: str

    def move(self) -> Move:
        """The first reaction that was not tried already."""
        assert self.view.phase is not None, "BUG: only a phase is closed"
        reactions = self.view.phase.on_low_confidence or (Proceed(),)
        names = [
            f"spawn_{each.specialist}" if isinstance(each, Spawn) else _NAMES[each.kind] for each in reactions
        ]
        for place, reaction in enumerate(reactions):
            move = self._react(reaction, names[place + 1 :] or ["fail"])
            if move is not None:
                return move
        return self._proceed(names)

    def _react(self, reaction: Reaction, others: list[str]) -> Move | None:
        """What a reaction does; None when it was tried already."""
        match reaction:
            case Spawn():
                return self._spawn(reaction, others)
            case Ask():
                return self._ask(reaction, others)
            case Proceed():
                return self._proceed(others)
            case Fail():
                return self._give_up(others)
            case _:
                assert_never(reaction)

    def _proceed(self, others: list[str], said: str = "") -> Move:
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
            basis = basis_of(view, model.task, specialist)
            made = plan_task(view, self.now, local, by, model.task, basis)
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
            return self._proceed(others, said)
        return self._give_up(others, said)

    def _decision(self, description: str, others: list[str], said: str = "") -> ev.DecisionMade:
        return decision(self.view, self.now, "workflow_adjustment", description, self.why + said, others)


# The evaluation.


def _another_round(view: View, phase: Phase, threshold: float, held: dict[str, Any], now: Instant) -> Move:
    """The evaluation `held` asks for another round."""
    round, feedback = view.state.cursor.round + 1, held["feedback"]
    what, said = f"Revise {here(view.state)}: round {round}", f": {feedback}" if feedback else ""
    why = f"score {held['score']:.2f} below threshold ({threshold:g}){said}"[:2000]
    chosen = decision(view, now, "evaluation", what, why, ("accept as it is", "reject"))
    return Move(events=(chosen, ev.RoundStarted(at=now, phase=phase.id, round=round, feedback=feedback)))


def _rounds_used_up(view: View, threshold: float, held: dict[str, Any], now: Instant) -> ev.DecisionMade:
    """A verdict that asks for more than there are rounds is on the record as such."""
    rounds = "a round" if view.state.cursor.round == 1 else f"{view.state.cursor.round} rounds"
    what = f"Go on with {here(view.state)} as it is"
    why = f"score {held['score']:.2f} below {threshold:g} after {rounds}"
    return decision(view, now, "evaluation", what, why, ("revise again", "reject"))


# Completion.


def _completion(view: View, phase: Phase, now: Instant, done: Done) -> tuple[ev.Event, ...]:
    """The results enter the context, and the phase is completed."""
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
        made = view.contribution(specialist, tasks) if specialist.into is not None else None
        if specialist.into is not None and made is not None:
            agent = AgentId(specialist.id)
            yield _context_contributed(at=now, name=specialist.into, contribution=made, agent=agent)


# What follows: the first transition whose condition holds.


@attrs.frozen(kw_only=True)
class _Look:
    """One transition that was looked at, and what came of it."""

    transition: Transition
    outcome: str  # holds, does not hold, visited too often
    taken: bool = False
    worn_out: int | None = None  # it would be taken, but its phase had all the visits it may have


def leave(view: View, _board: Board, now: Instant) -> Move:
    """Once a phase is completed, the next one starts or the run ends."""
    path, phase = view.state.path, view.phase
    if phase is None or path[len(path) - 1].completed_at is None:
        return NOTHING
    if _is_rejected(view, phase):
        return Move(events=(failed_end(now, f"the evaluation of {phase.id} rejected it", error="Rejected"),))
    if not phase.next:
        return Move(events=(_completed(view, now),))
    try:
        looks = _looks(view, phase)
    except BadExpression as error:
        return Move(events=(failed_end(now, str(error), error="BadExpression"),))
    if not looks[-1].taken:
        passed_over = "; ".join(_passed_over(looks))
        reason = f"no transition of {phase.id} {f'can be taken: {passed_over}' if passed_over else 'holds'}"
        return Move(events=(_decision_of(view, now, phase, looks, reason), failed_end(now, reason)))
    to, following = looks[-1].transition.to, _following(view, now, looks[-1].transition.to)
    if len(phase.next) == 1:
        return move_of(events=(following,))
    what = f"Go on with {to}" if to != END else "End the run"
    return Move(events=(_decision_of(view, now, phase, looks, what), following))


def _following(view: View, now: Instant, to: PhaseId) -> ev.Event:
    """What comes after a phase: the phase `to`, or the end of the run."""
    if to == END:
        return _completed(view, now)
    limit = view.workflow.policy.max_iterations
    if view.state.cursor.ordinal >= limit:
        reason = f"the run visited {limit} phases, its limit (policy.max_iterations)"
        return failed_end(now, reason, error="TooManyIterations")
    return _phase_started(at=now, phase=to, visit=1 + (view.state.visits.get(to) or 0))


def _completed(view: View, now: Instant) -> ev.RunEnded:
    """The end of a run; it says whom the run went on without."""
    return end_event(now, "completed", skipped_text(view.state.skipped_tasks))


def _looks(view: View, phase: Phase) -> list[_Look]:
    """The transitions in order, up to and including the one that is taken."""
    looks: list[_Look] = []
    for at, transition in enumerate(phase.next or ()):
        try:
            look = _look(view, transition)
        except BadExpression as error:
            raise with_place(error, f"phases.{phase.id}.next[{at}].when") from None
        looks.append(look)
        if look.taken:
            break
    return looks


def _look(view: View, transition: Transition) -> _Look:
    if transition.when is not None:
        asked = condition(transition.when, TRANSITION_NAMES)
        if not asked.holds(view.names(asked.names)):
            return _Look(transition=transition, outcome="does not hold")
    to = transition.to
    limit = None if to == END else view.workflow.phase(to).max_visits
    if limit is not None and (view.state.visits.get(to) or 0) >= limit:
        return _Look(transition=transition, outcome="was visited as often as it may be", worn_out=limit)
    return _Look(transition=transition, outcome="holds", taken=True)


def _is_rejected(view: View, phase: Phase) -> bool:
    """Whether the verdict is a rejection that no transition asks about."""
    evaluation: Any = view.evaluation()
    if evaluation is None or evaluation["verdict"] != "reject":
        return False
    asked = [each.when for each in phase.next or () if each.when is not None]
    return not any("evaluation" in condition(when, TRANSITION_NAMES).names for when in asked)


def _decision_of(
    view: View, now: Instant, phase: Phase, looks: list[_Look], description: str
) -> ev.DecisionMade:
    tried = [(look.transition, look.outcome) for look in looks]
    evaluated = [{"to": each.to, "when": each.when, "outcome": outcome} for each, outcome in tried]
    others = [each.to for each in phase.next or () if each.to != looks[-1].transition.to]
    details = {"from": phase.id, "evaluated": evaluated}
    return decision(view, now, "transition", description, _rationale(looks), others, details=details)


def _rationale(looks: list[_Look]) -> str:
    """Why the last transition was taken, or none: which were passed over, and what holds."""
    last, said = looks[-1], list(_passed_over(looks))
    if last.taken and last.transition.when:
        said.append(f"{last.transition.when} holds")
    elif not said or any(look.outcome == "does not hold" for look in looks):
        before = " before it" if last.taken else ""
        said.append(f"no {'other ' if said else ''}condition{before} holds")
    return "; ".join(said)


def _passed_over(looks: list[_Look]) -> Iterator[str]:
    """Transitions that would have been taken, had their phases not been visited as often as they may be."""
    for look in looks:
        if look.worn_out is not None:
            visits = "its visit" if look.worn_out == 1 else f"all its {look.worn_out} visits"
            held = f"{look.transition.when} holds, but " if look.transition.when else ""
            yield f"{held}{look.transition.to} has had {visits} (max_visits)"
