"""Checks that need the whole file: names that must exist, and values that must fit together."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import Any, Final

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.config import models
from orchestra.config.check.agents import AgentReader
from orchestra.config.check.declarations import Declarations, read_declarations
from orchestra.config.check.expressions import text_mistakes
from orchestra.config.check.graph import graph_mistakes, unknown_targets
from orchestra.config.check.sentences import RULE
from orchestra.config.forms import NAME_PATTERN
from orchestra.config.inputs import misfit
from orchestra.config.problems import Mistake, Path, Problem, bad_workflow
from orchestra.errors import BadSetting
from orchestra.expressions.names import RESERVED_SPECIALISTS
from orchestra.model.workflow import END, Phase, Spawn, Workflow
from orchestra.suggest import meant

_NAME: Final = re.compile(NAME_PATTERN.removesuffix("$"))
_CYCLES: Final = 20


def find_mistakes(
    form: models.WorkflowForm, data: Any, *, cut: Iterable[Path], agents: AgentReader
) -> Iterator[Mistake]:
    """Every mistake of a file that its models cannot see."""
    names = read_declarations(data, form, cut)
    yield from _names(form)
    yield from _checkpoint(form)
    for name, agent in form.agents.items():
        yield from agents.mistakes(name, agent)
    for name, input_ in form.inputs.items():
        yield from _input(("inputs", name), input_)
    for name, context in form.context.items():
        yield from _initial(("context", name), context)
    for name, phase in form.phases.items():
        yield from _phase(("phases", name), phase, names)
    yield from graph_mistakes(form, names)
    yield from text_mistakes(form, names)


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
    yield from _twice(("phases",), [each.id for each in workflow.phases])
    for phase in workflow.phases:
        path, own = ("phases", phase.id), frozenset(each.id for each in phase.specialists)
        yield from _twice((*path, "specialists"), [each.id for each in phase.specialists])
        for each in phase.specialists:
            yield from _needs((*path, "specialists", each.id, "needs"), each.needs, each.id, own)
            if each.into is not None and each.into not in context:
                yield Mistake((*path, "specialists", each.id, "into"), _undeclared(each.into, context))
        for where, agent in _agents_of(phase):
            yield from _agent((*path, *where), agent, agents)
        yield from unknown_targets((*path, "next"), [way.to for way in phase.next or ()], phases)
        yield from _cycles((*path, "specialists"), {each.id: each.needs for each in phase.specialists})


def _agents_of(phase: Phase) -> Iterator[tuple[Path, str]]:
    """The agents that a phase names, and where."""
    for each in phase.specialists:
        yield ("specialists", each.id, "agent"), each.agent
        if each.substitute is not None:
            yield ("specialists", each.id, "substitute"), each.substitute
    if phase.evaluate is not None:
        yield ("evaluate", "agent"), phase.evaluate.agent
    for at, reaction in enumerate(phase.on_low_confidence):
        if isinstance(reaction, Spawn) and reaction.agent is not None:
            yield ("on_low_confidence", at, "agent"), reaction.agent


def _twice(path: Path, names: Iterable[str]) -> Iterator[Mistake]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Mistake((*path, name), f"`{name}` is there {times} times")


def _undeclared(name: str, context: Collection[str]) -> str:
    return f"`{name}` is not declared under `context`{meant(name, context)}"


def _names(form: models.WorkflowForm) -> Iterator[Mistake]:
    """Names that cannot be used."""
    tables: list[tuple[Path, Iterable[str]]] = [
        (("inputs",), form.inputs),
        (("context",), form.context),
        (("agents",), form.agents),
        (("phases",), form.phases),
    ]
    for name, phase in form.phases.items():
        tables.append((("phases", name, "specialists"), phase.specialists))
        if phase.evaluate is not None:
            tables.append((("phases", name, "evaluate", "rubric"), phase.evaluate.rubric))
    for path, name in [(path, name) for path, table in tables for name in table]:
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


_INITIAL: Final = {
    "append": ("list", "a list"),
    "merge": ("map", "a mapping"),
    "sum": ("number", "a number"),
    "max": ("number", "a number"),
}


def _initial(path: Path, form: models.ContextForm) -> Iterator[Mistake]:
    if form.initial is None or form.reducer not in _INITIAL:
        return
    kind, words = _INITIAL[form.reducer]
    if misfit(kind, form.initial):
        yield Mistake((*path, "initial"), f"`initial` must be {words}, because the reducer is {form.reducer}")


def _phase(path: Path, form: models.PhaseForm, names: Declarations) -> Iterator[Mistake]:
    own = names.specialists[str(path[-1])]
    for name, specialist in form.specialists.items():
        yield from _specialist((*path, "specialists", name), specialist, own, names)
    yield from _cycles((*path, "specialists"), {name: each.needs for name, each in form.specialists.items()})
    yield from _evaluate((*path, "evaluate"), form.evaluate, names)
    yield from _reactions((*path, "on_low_confidence"), form, own, names)


def _specialist(
    path: Path, form: models.SpecialistForm, own: frozenset[str], names: Declarations
) -> Iterator[Mistake]:
    name = str(path[-1])
    if form.agent is not None:
        yield from _agent((*path, "agent"), form.agent, names.agents)
    elif name not in names.agents and (*path, "agent") not in names.cut:
        message = f"there is no agent `{name}`; name another with `agent:`{meant(name, names.agents)}"
        yield Mistake(path, message, at_key=True)
    if form.substitute is not None:
        yield from _agent((*path, "substitute"), form.substitute, names.agents)
    elif "substitute" in form.on_failure and (*path, "substitute") not in names.cut:
        at = form.on_failure.index("substitute")
        yield Mistake((*path, "on_failure", at), "`substitute: AGENT` is missing, which this step needs")
    yield from _needs((*path, "needs"), form.needs, name, own)
    if form.into is not None and form.into not in names.context:
        yield Mistake((*path, "into"), _undeclared(form.into, names.context))
    before: set[str] = set()
    for at, output in enumerate(form.outputs):
        if wrong := _bad_output(output, before):
            yield Mistake((*path, "outputs", at), wrong)
        before.add(output)


def _agent(path: Path, agent: str, agents: Collection[str]) -> Iterator[Mistake]:
    if agent not in agents:
        yield Mistake(path, f"there is no agent `{agent}`{meant(agent, agents)}")


def _needs(path: Path, needs: Sequence[str], name: str, own: frozenset[str]) -> Iterator[Mistake]:
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


def _evaluate(path: Path, form: models.EvaluateForm | None, names: Declarations) -> Iterator[Mistake]:
    if form is None:
        return
    yield from _agent((*path, "agent"), form.agent, names.agents)
    for name, weight in form.rubric.items():
        if weight <= 0:
            yield Mistake((*path, "rubric", name), f"the weight of `{name}` must be more than 0")


def _reactions(
    path: Path, form: models.PhaseForm, own: frozenset[str], names: Declarations
) -> Iterator[Mistake]:
    for at, reaction in enumerate(form.on_low_confidence):
        yield from _reaction((*path, at), reaction, own, names)
        if reaction.does is not None and at + 1 < len(form.on_low_confidence):
            yield Mistake((*path, at + 1), f"nothing after `{reaction.does}` is ever reached")
            return


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
    if form.agent is not None:
        yield from _agent((*path, "agent"), form.agent, names.agents)
