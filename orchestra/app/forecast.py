"""How often a run can come to each of its agents at most: what a workflow bounds, read without playing it."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from orchestra.engine.names import EVALUATION
from orchestra.expressions.expression import expression, expression_paths
from orchestra.expressions.names import SPECIALIST_NAMES
from orchestra.ids import AgentId, PhaseId
from orchestra.model.workflow import END, Phase, Spawn, Specialist, Transition, Workflow

_BOUND: Final = re.compile(r"^\s*visits(?:\.(\w+)|\[[\"']([^\"']+)[\"']\])\s*(<=?)\s*(\d+)\s*$")


@attrs.frozen(kw_only=True)
class Use:
    """An agent at a place in a workflow, and how many assignments it can have there in one run."""

    phase: PhaseId
    name: str  # the specialist, or `evaluation`
    agent: AgentId
    assignments: int
    items_of: str = ""  # the list it goes over, where nobody knows how long that is
    items: int = 1  # how long that list is taken to be


def most_visits(workflow: Workflow) -> dict[PhaseId, int]:
    """How often each phase can be visited in one run."""
    limit = workflow.policy.max_iterations
    ways = {each.id: _ways(each) for each in workflow.phases}
    loops = {each for each in ways if each in _reached(each, ways)}
    found = {
        each.id: min(each.max_visits or limit, limit) if each.id in loops else 1 for each in workflow.phases
    }
    for _ in range(len(found)):  # a phase is come to as often as others lead there, and not more
        for phase in found:
            free = sum(found[each] for each in ways if any(_is_free(way, phase) for way in ways[each]))
            held = max((_bound(way, phase) for each in ways for way in ways[each]), default=0)
            begun = int(phase == workflow.phases[0].id)
            found[phase] = min(found[phase], max(begun, held) + free)
    return found


def uses(workflow: Workflow, inputs: Mapping[str, Any], seen: Callable[[PhaseId, str], int]) -> Iterator[Use]:
    """Every agent at every place, with as many assignments as it can have.

    `seen` tells how long the list of a specialist was, where that does not follow from the inputs.
    """
    visits = most_visits(workflow)
    for phase in workflow.phases:
        rounds = visits[phase.id] * (1 + (phase.evaluate.rounds if phase.evaluate is not None else 0))
        for each in phase.specialists:
            known = _length(each, inputs)
            count = max(1, seen(phase.id, each.id)) if known is None else known
            listed = each.foreach or "" if known is None else ""
            for agent in filter(None, (each.agent, each.substitute)):
                yield Use(
                    phase=phase.id,
                    name=each.id,
                    agent=agent,
                    assignments=rounds * count,
                    items_of=listed,
                    items=count,
                )
        yield from _judges(phase, rounds)


def _judges(phase: Phase, rounds: int) -> Iterator[Use]:
    """The evaluator, and the additional specialists that come when confidence is low."""
    own = {each.id: each.agent for each in phase.specialists}
    for reaction in phase.on_low_confidence:
        if isinstance(reaction, Spawn):
            agent = reaction.agent or own.get(reaction.specialist, AgentId(reaction.specialist))
            name = f"{reaction.specialist}+"
            yield Use(phase=phase.id, name=name, agent=agent, assignments=rounds * reaction.max)
    if phase.evaluate is not None:
        yield Use(phase=phase.id, name=EVALUATION, agent=phase.evaluate.agent, assignments=rounds)


def _length(specialist: Specialist, inputs: Mapping[str, Any]) -> int | None:
    """How many items a specialist goes over; None where that follows from more than the inputs."""
    if specialist.foreach is None:
        return 1
    named = {path.partition(".")[0] for path in expression_paths(specialist.foreach)}
    if not named <= {"inputs"}:
        return None
    listed = expression(specialist.foreach, SPECIALIST_NAMES).value({"inputs": dict(inputs)})
    return len(listed) if isinstance(listed, list) else None


def _ways(phase: Phase) -> tuple[Transition, ...]:
    return tuple(way for way in phase.next or () if way.to != END)


def _reached(phase: PhaseId, ways: dict[PhaseId, tuple[Transition, ...]]) -> set[PhaseId]:
    """The phases that a run can come to after a phase."""
    found: set[PhaseId] = set()
    waiting = [phase]
    while waiting:
        for way in ways[waiting.pop()]:
            if way.to not in found:
                found.add(way.to)
                waiting.append(way.to)
    return found


def _bound(way: Transition, phase: PhaseId) -> int:
    """How often a phase was visited at most once this way there was taken; 0: the way does not say."""
    if way.to != phase or way.when is None or " or " in way.when:
        return 0
    found = [_BOUND.match(part) for part in way.when.split(" and ")]
    return min(
        (int(each[4]) + (each[3] == "<=") for each in found if each and (each[1] or each[2]) == phase),
        default=0,
    )


def _is_free(way: Transition, phase: PhaseId) -> bool:
    """Whether a way leads to a phase however often that was visited."""
    return way.to == phase and _bound(way, phase) == 0
