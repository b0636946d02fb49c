"""Where the run goes after a phase: the first transition whose condition holds."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from orchestra.engine.board import Board
from orchestra.engine.rules.moves import NOTHING, Move, decision, end_event, failed_end, move_of
from orchestra.engine.view import View
from orchestra.errors import BadExpression
from orchestra.expressions.expression import condition, with_place
from orchestra.expressions.names import TRANSITION_NAMES
from orchestra.ids import Instant
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.state import skipped_text
from orchestra.model.workflow import END, Phase, Transition

_phase_started: Final = maker(ev.PhaseStarted)


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
    return _go_on(view, now, phase, looks)


def _go_on(view: View, now: Instant, phase: Phase, looks: list[_Look]) -> Move:
    to = looks[-1].transition.to
    events: list[ev.Event] = []
    if len(phase.next or ()) > 1:
        events.append(
            _decision_of(view, now, phase, looks, f"Go on with {to}" if to != END else "End the run")
        )
    if to == END:
        return Move(events=(*events, _completed(view, now)))
    limit = view.workflow.policy.max_iterations
    if view.state.cursor.ordinal >= limit:
        reason = f"the run visited {limit} phases, its limit (policy.max_iterations)"
        return Move(events=(*events, failed_end(now, reason, error="TooManyIterations")))
    visit = 1 + (view.state.visits.get(to) or 0)
    return move_of(events=(*events, _phase_started(at=now, phase=to, visit=visit)))


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
    worn_out = limit if limit is not None and (view.state.visits.get(to) or 0) >= limit else None
    if worn_out is not None:
        return _Look(transition=transition, outcome="was visited as often as it may be", worn_out=worn_out)
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
    last = looks[-1].transition
    evaluated = [
        {"to": look.transition.to, "when": look.transition.when, "outcome": look.outcome} for look in looks
    ]
    others = [each.to for each in phase.next or () if each.to != last.to]
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
