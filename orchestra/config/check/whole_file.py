"""Checks that need the whole file: names that must exist, and values that must fit together."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Final

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.config import models
from orchestra.config.check.agents import AgentReader, call_circle
from orchestra.config.check.expressions import Declarations, read_declarations, text_mistakes
from orchestra.config.check.validate import RULE
from orchestra.config.compile import transitions
from orchestra.config.forms import NAME_PATTERN
from orchestra.config.inputs import TYPES, misfit
from orchestra.config.problems import Mistake, Path, Problem, bad_workflow
from orchestra.errors import BadSetting
from orchestra.expressions.expression import constant
from orchestra.expressions.names import RESERVED_SPECIALISTS
from orchestra.ids import PhaseId
from orchestra.model.workflow import END, Phase, Spawn, Specialist, Transition, Workflow, transitions_of
from orchestra.suggest import meant

_NAME: Final = re.compile(NAME_PATTERN.removesuffix("$"))
_CYCLES: Final = 20
_INITIAL: Final = {"append": "list", "merge": "map", "sum": "number", "max": "number"}


def find_mistakes(
    form: models.WorkflowForm, data: Any, *, cut: Iterable[Path], agents: AgentReader
) -> Iterator[Mistake]:
    """Every mistake of a file that its models cannot see."""
    names = read_declarations(data, form, cut)
    yield from _names(form)
    yield from _checkpoint(form)
    for name, agent in form.agents.items():
        yield from agents.mistakes(name, agent)
    yield from agents.errand_mistakes(names.agents)
    prices = {name: each.model_dump(exclude_none=True) for name, each in form.prices.items()}
    yield from agents.price_mistakes(_bounded_by_money(form), prices)
    for name, input_ in form.inputs.items():
        yield from _input(("inputs", name), input_)
    for name, context in form.context.items():
        kind = _INITIAL.get(context.reducer, "any")
        if context.initial is not None and misfit(kind, context.initial):
            words = f"`initial` must be {TYPES[kind][0]}, because the reducer is {context.reducer}"
            yield Mistake(("context", name, "initial"), words)
    for name, phase in form.phases.items():
        yield from _phase(("phases", name), phase, names)
    yield from _graph(form, names)
    yield from text_mistakes(form, names)


def _bounded_by_money(form: models.WorkflowForm) -> set[str]:
    """The agents of phases that are limited in money and not in tokens."""
    found: set[str] = set()
    for phase in form.phases.values():
        limits = [each for each in (phase.limits, form.policy.limits) if each is not None]
        if all(each.tokens is None for each in limits) and any(each.cost is not None for each in limits):
            for name, each in phase.specialists.items():
                found |= {each.agent or name, each.substitute or name}
            found |= {each.agent or each.spawn or "" for each in phase.on_low_confidence}
            found |= {phase.evaluate.agent} if phase.evaluate is not None else set()
    return found


def check_names(workflow: Workflow) -> None:
    """Raise `BadWorkflow` when a workflow that is built in Python names what it does not hold."""
    found = [f"{'.'.join(map(str, each.path))}: {each.message}" for each in _unknown_names(workflow)]
    if found:
        raise bad_workflow(f"workflow {workflow.name}", [Problem(0, 0, each) for each in found])


def _unknown_names(workflow: Workflow) -> Iterator[Mistake]:
    if not workflow.phases:
        yield Mistake(("phases",), "a workflow has at least one phase")
    phases, agents = {each.id for each in workflow.phases}, {each.id for each in workflow.agents}
    context = {each.name for each in workflow.context}
    for agent in workflow.agents:
        for called in agent.calls:
            yield from _agent(("agents", agent.id, "calls"), called, agents)
    if circle := call_circle({each.id: each.calls for each in workflow.agents}):
        yield Mistake(("agents", circle[0], "calls"), f"agents call one another: {' → '.join(circle)}")
    yield from _twice(("phases",), [each.id for each in workflow.phases])
    for phase in workflow.phases:
        path, own = ("phases", phase.id), {each.id: each for each in phase.specialists}
        yield from _twice((*path, "specialists"), [each.id for each in phase.specialists])
        yield from _references(path, phase, own, own.keys(), agents, context)
        for at, reaction in enumerate(phase.on_low_confidence):
            if isinstance(reaction, Spawn):
                yield from _agent((*path, "on_low_confidence", at, "agent"), reaction.agent, agents)
        yield from _unknown_targets((*path, "next"), [way.to for way in phase.next or ()], phases)


def _references(
    path: Path,
    phase: models.PhaseForm | Phase,
    specialists: Mapping[str, models.SpecialistForm] | Mapping[str, Specialist],
    known: Collection[str],
    agents: Collection[str],
    context: Collection[str],
) -> Iterator[Mistake]:
    """What a phase and its specialists name that is not there; `known` are all specialists that are named."""
    for name, each in specialists.items():
        below = (*path, "specialists", name)
        yield from _agent((*below, "agent"), each.agent, agents)
        yield from _agent((*below, "substitute"), each.substitute, agents)
        yield from _needs((*below, "needs"), each.needs, name, known)
        if each.into is not None and each.into not in context:
            undeclared = f"`{each.into}` is not declared under `context`{meant(each.into, context)}"
            yield Mistake((*below, "into"), undeclared)
    if phase.evaluate is not None:
        yield from _agent((*path, "evaluate", "agent"), phase.evaluate.agent, agents)
    yield from _cycles((*path, "specialists"), {name: each.needs for name, each in specialists.items()})


def _twice(path: Path, names: Iterable[str]) -> Iterator[Mistake]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Mistake((*path, name), f"`{name}` is there {times} times")


def _names(form: models.WorkflowForm) -> Iterator[Mistake]:
    """Names that cannot be used."""
    sections = ("inputs", "context", "agents", "phases")
    tables: dict[Path, Iterable[str]] = {(section,): getattr(form, section) for section in sections}
    for name, phase in form.phases.items():
        tables["phases", name, "specialists"] = phase.specialists
        if phase.evaluate is not None:
            tables["phases", name, "evaluate", "rubric"] = phase.evaluate.rubric
    for path, name in [(path, name) for path, table in tables.items() for name in table]:
        if not _NAME.fullmatch(name):
            yield Mistake((*path, name), f"`{name[:80]}` cannot be a name; {RULE}", at_key=True)
    for phase_name, phase in form.phases.items():
        for name in RESERVED_SPECIALISTS & phase.specialists.keys():
            message = f"a specialist cannot be called `{name}`; that is the name of the judgement"
            yield Mistake(("phases", phase_name, "specialists", name), message, at_key=True)
    if END in form.phases:
        message = "a phase cannot be called `end`; that is where a run ends"
        yield Mistake(("phases", END), message, at_key=True)


def _checkpoint(form: models.WorkflowForm) -> Iterator[Mistake]:
    """Settings that cannot be honoured, by the settings' own rules."""
    given = form.checkpoint
    own = given.model_fields_set & {"encryption", "size_limit_bytes", "size_warning_bytes"}
    for key in sorted(own):
        try:
            CheckpointSettings(**{key: getattr(given, key)})
        except BadSetting as error:
            yield Mistake(("checkpoint", key), f"`{key}`: {error.data['reason']}")


def _input(path: Path, form: models.InputForm) -> Iterator[Mistake]:
    for at, choice in enumerate(form.choices):
        if wrong := misfit(form.type, choice):
            yield Mistake((*path, "choices", at), f"`choices` (entry {at + 1}): {wrong}")
    if form.default is None:
        return
    if wrong := misfit(form.type, form.default):
        yield Mistake((*path, "default"), f"`default`: {wrong}")
    elif form.choices and form.default not in form.choices:
        yield Mistake((*path, "default"), "`default` is not among the choices")


def _phase(path: Path, form: models.PhaseForm, names: Declarations) -> Iterator[Mistake]:
    own = names.specialists[str(path[-1])]
    yield from _references(path, form, form.specialists, own, names.agents, names.context)
    for name, specialist in form.specialists.items():
        yield from _specialist((*path, "specialists", name), specialist, names)
    for name, weight in form.evaluate.rubric.items() if form.evaluate is not None else ():
        if weight <= 0:
            message = f"the weight of `{name}` must be more than 0"
            yield Mistake((*path, "evaluate", "rubric", name), message)
    for at, reaction in enumerate(form.on_low_confidence):
        where = (*path, "on_low_confidence", at)
        yield from _reaction(where, reaction, own, names)
        if reaction.does is not None and at + 1 < len(form.on_low_confidence):
            yield Mistake((*where[:-1], at + 1), f"nothing after `{reaction.does}` is ever reached")
            return


def _specialist(path: Path, form: models.SpecialistForm, names: Declarations) -> Iterator[Mistake]:
    name = str(path[-1])
    if form.agent is None and name not in names.agents and (*path, "agent") not in names.cut:
        message = f"there is no agent `{name}`; name another with `agent:`{meant(name, names.agents)}"
        yield Mistake(path, message, at_key=True)
    is_missing = form.substitute is None and (*path, "substitute") not in names.cut
    if is_missing and "substitute" in form.on_failure:
        at = form.on_failure.index("substitute")
        yield Mistake((*path, "on_failure", at), "`substitute: AGENT` is missing, which this step needs")
    before: set[str] = set()
    for at, output in enumerate(form.outputs):
        if wrong := _bad_output(output, before):
            yield Mistake((*path, "outputs", at), wrong)
        before.add(output)


def _agent(path: Path, agent: str | None, agents: Collection[str]) -> Iterator[Mistake]:
    if agent is not None and agent not in agents:
        yield Mistake(path, f"there is no agent `{agent}`{meant(agent, agents)}")


def _needs(path: Path, needs: Sequence[str], name: str, own: Collection[str]) -> Iterator[Mistake]:
    before: set[str] = set()
    for at, need in enumerate(needs):
        if need == name:
            yield Mistake((*path, at), f"`{name}` cannot need itself")
        elif need not in own:
            message = f"there is no specialist `{need}` in this phase{meant(need, own)}"
            yield Mistake((*path, at), message)
        elif need in before:
            yield Mistake((*path, at), f"`{need}` is named twice")
        before.add(need)


def _cycles(path: Path, needs: Mapping[str, Collection[str]]) -> Iterator[Mistake]:
    """Specialists that wait for one another; each such circle once."""
    graph = {
        name: {need for need in needed if need != name and need in needs} for name, needed in needs.items()
    }
    for _ in range(_CYCLES):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle: list[str] = list(reversed(error.args[1]))
            first, then = circle[0], circle[1]
            shown = " → ".join(f"`{name}`" for name in circle)
            yield Mistake((*path, first, "needs"), f"these wait for one another: {shown}")
            graph[first].discard(then)
        else:
            return


def _bad_output(output: str, before: set[str]) -> str | None:
    path = PurePosixPath(output)
    if not output.strip() or not output.isprintable() or str(path) == ".":
        return "an output is the path of a file"
    if path.is_absolute() or re.match(r"[A-Za-z]:|\\", output):
        return f"the output `{output}` must be relative to the run's folder"
    if ".." in re.split(r"[/\\]", output):
        return f"the output `{output}` must stay inside the run's folder; it cannot contain `..`"
    return f"the output `{output}` is named twice" if output in before else None


def _reaction(
    path: Path, form: models.ReactionForm, own: frozenset[str], names: Declarations
) -> Iterator[Mistake]:
    if any((*path, key) in names.cut for key in ("spawn", "ask", "proceed or fail")):
        return
    said = [key for key in ("spawn", "ask", "does") if getattr(form, key) is not None]
    if len(said) != 1:
        yield Mistake(path, "one of `proceed`, `fail`, `{spawn: …}` and `{ask: …}` is needed")
        return
    belongs = {"agent": "spawn", "max": "spawn", "choices": "ask"}
    for key in sorted(form.model_fields_set & belongs.keys()):
        if belongs[key] != said[0]:
            yield Mistake((*path, key), f"`{key}` belongs to `{belongs[key]}`", at_key=True)
    if form.spawn is not None and form.spawn not in own | names.agents:
        message = f"there is no specialist and no agent `{form.spawn}`{meant(form.spawn, own | names.agents)}"
        yield Mistake((*path, "spawn"), message)
    elif form.spawn is not None and not own:
        yield Mistake((*path, "spawn"), "this phase has no specialist whose task could be given to another")
    yield from _agent((*path, "agent"), form.agent, names.agents)


# --- the graph of phases: every phase is reached, and from every phase the run can end


def _graph(form: models.WorkflowForm, names: Declarations) -> Iterator[Mistake]:
    """Every mistake in how phases lead to one another."""
    for name, phase in form.phases.items():
        targets = [transition.to for transition in phase.next or ()]
        yield from _unknown_targets(("phases", name, "next"), targets, names.phases)
        yield from _shadowed(name, phase, form)
    if names.graph_whole and END not in form.phases:
        ways = _ways(form)
        reached = _reached([next(iter(form.phases))], ways)
        for name in form.phases.keys() - set(reached):
            message = f"the phase `{name}` is never reached: no transition leads to it from the first phase"
            yield Mistake(("phases", name), message, at_key=True)
        yield from _endless(reached, ways)


def _unknown_targets(path: Path, targets: Iterable[str], phases: Collection[str]) -> Iterator[Mistake]:
    for at, to in enumerate(targets):
        if to != END and to not in phases:
            yield Mistake((*path, at, "to"), f"there is no phase `{to}`{meant(to, {*phases, END})}")


def _shadowed(name: str, form: models.PhaseForm, whole: models.WorkflowForm) -> Iterator[Mistake]:
    """A transition after one that always holds."""
    for at, transition in enumerate((form.next or ())[:-1]):
        if _always(transition.to, transition.when, whole):
            message = "this transition is never reached: the one before it always holds"
            yield Mistake(("phases", name, "next", at + 1), message)
            return


def _ways(form: models.WorkflowForm) -> dict[str, tuple[str, ...]]:
    """Where each phase can lead. Where no transition holds the run fails, which is no way to end."""
    below = dict(pairwise(map(PhaseId, form.phases)))
    return {
        name: _leads(transitions_of(transitions(phase), below.get(PhaseId(name))), form)
        for name, phase in form.phases.items()
    }


def _leads(ways: tuple[Transition, ...] | None, form: models.WorkflowForm) -> tuple[str, ...]:
    if not ways:
        return (END,)
    found: list[str] = []
    for way in ways:
        if way.when is None or constant(way.when) is not False:
            found.append(way.to)
        if _always(way.to, way.when, form):
            break
    return tuple(found)


def _always(to: str, when: str | None, form: models.WorkflowForm) -> bool:
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


def _endless(reached: list[str], ways: Mapping[str, tuple[str, ...]]) -> Iterator[Mistake]:
    """Phases from which the run cannot end, shown as the circle it would go in."""
    back: dict[str, list[str]] = {}
    for name in reached:
        for to in ways.get(name, ()):
            back.setdefault(to, []).append(name)
    # A phase that is not there counts as an end: that mistake is told already.
    leaving = set(_reached((name for name in reached if name not in ways), back))
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
            advice = "add a transition that leads to `end` or to another phase"
            yield Mistake(("phases", circle[0], "next"), f"this loop has no way out: {shown}; {advice}")


def _circle(start: str, ways: Mapping[str, tuple[str, ...]], told: set[str]) -> tuple[list[str], set[str]]:
    """The circle that a run from `start` ends up in, unless it was told before; and all that was met."""
    trail: dict[str, None] = {}
    name = start
    while name not in trail and name not in told:
        trail[name] = None
        name = next(iter(ways[name]), name)
    met = list(trail)
    return met[met.index(name) :] if name in trail else [], set(met)
