"""Checks of the graph of phases: every phase is reached, and from every phase the run can end."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from orchestra.config.check.declarations import Declarations
from orchestra.config.compile import transitions
from orchestra.config.models import PhaseForm, WorkflowForm
from orchestra.config.problems import Mistake, Path
from orchestra.expressions.analysis import constant
from orchestra.ids import PhaseId
from orchestra.model.workflow import END, Transition, transitions_of
from orchestra.suggest import meant


def graph_mistakes(form: WorkflowForm, names: Declarations) -> Iterator[Mistake]:
    """Every mistake in how phases lead to one another."""
    for name, phase in form.phases.items():
        targets = [transition.to for transition in phase.next or ()]
        yield from unknown_targets(("phases", name, "next"), targets, names.phases)
        yield from _shadowed(name, phase, form)
    if names.graph_whole and END not in form.phases:
        ways = _ways(form)
        reached = _reached([next(iter(form.phases))], ways)
        yield from _unreachable(form, reached)
        yield from _endless(reached, ways)


def unknown_targets(path: Path, targets: Iterable[str], phases: Collection[str]) -> Iterator[Mistake]:
    """Transitions that lead to a phase that is not there."""
    for at, to in enumerate(targets):
        if to != END and to not in phases:
            yield Mistake((*path, at, "to"), f"there is no phase `{to}`{meant(to, {*phases, END})}")


def _shadowed(name: str, form: PhaseForm, whole: WorkflowForm) -> Iterator[Mistake]:
    """A transition after one that always holds."""
    for at, transition in enumerate((form.next or ())[:-1]):
        if _always(transition.to, transition.when, whole):
            message = "this transition is never reached: the one before it always holds"
            yield Mistake(("phases", name, "next", at + 1), message)
            return


def _ways(form: WorkflowForm) -> dict[str, tuple[str, ...]]:
    """Where each phase can lead. Where no transition holds the run fails, which is no way to end."""
    below = dict(pairwise(map(PhaseId, form.phases)))
    return {
        name: _leads(transitions_of(transitions(phase), below.get(PhaseId(name))), form)
        for name, phase in form.phases.items()
    }


def _leads(ways: tuple[Transition, ...] | None, form: WorkflowForm) -> tuple[str, ...]:
    if not ways:
        return (END,)
    found: list[str] = []
    for way in ways:
        if way.when is None or constant(way.when) is not False:
            found.append(way.to)
        if _always(way.to, way.when, form):
            break
    return tuple(found)


def _always(to: str, when: str | None, form: WorkflowForm) -> bool:
    """Whether a transition is taken whenever it is looked at. `max_visits` of its phase can prevent it."""
    phase = form.phases.get(to)
    bounded = phase is not None and phase.max_visits is not None
    return not bounded and (when is None or constant(when) is True)


def _reached(starts: Iterable[str], ways: Mapping[str, Sequence[str]]) -> list[str]:
    """The phases that ways lead to from these, these included, in the order they are come across."""
    found = dict.fromkeys(starts)
    waiting = list(found)
    while waiting:
        for to in ways.get(waiting.pop(), ()):
            if to not in found:
                found[to] = None
                waiting.append(to)
    return list(found)


def _unreachable(form: WorkflowForm, reached: list[str]) -> Iterator[Mistake]:
    seen = set(reached)
    for name in form.phases:
        if name not in seen:
            message = f"the phase `{name}` is never reached: no transition leads to it from the first phase"
            yield Mistake(("phases", name), message, at_key=True)


def _endless(reached: list[str], ways: Mapping[str, tuple[str, ...]]) -> Iterator[Mistake]:
    """Phases from which the run cannot end, shown as the circle it would go in."""
    leaving = _leaving(reached, ways)
    told: set[str] = set()
    for name in reached:
        if name in leaving or name in told:
            continue
        circle, met = _circle(name, ways, told)
        told |= met
        if len(circle) == 1 and not ways[circle[0]]:
            yield Mistake(("phases", circle[0], "next"), "no transition of this phase can ever be taken")
        elif circle:
            shown = " → ".join(f"`{each}`" for each in [*circle, circle[0]])
            message = (
                f"this loop has no way out: {shown}; add a transition that leads to `end` or to another phase"
            )
            yield Mistake(("phases", circle[0], "next"), message)


def _leaving(reached: list[str], ways: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Phases from which the run can end. A phase that is not there counts: that mistake is told already."""
    back: dict[str, list[str]] = {}
    for name in reached:
        for to in ways.get(name, ()):
            back.setdefault(to, []).append(name)
    return set(_reached((name for name in reached if name not in ways), back))


def _circle(start: str, ways: Mapping[str, tuple[str, ...]], told: set[str]) -> tuple[list[str], set[str]]:
    """The circle that a run from `start` ends up in, unless it was told before; and all that was met."""
    trail: list[str] = []
    met: set[str] = set()
    name = start
    while name not in met:
        if name in told:
            return [], met
        met.add(name)
        trail.append(name)
        name = next(iter(ways[name]), name)
    return trail[trail.index(name) :], met
