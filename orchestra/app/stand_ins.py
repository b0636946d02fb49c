"""Who answers in a dry run: the test model for language models, and made-up results for all other agents.

Nothing that somebody wrote is run or imported. A made-up result has the parts that the workflow goes on to
use, so that conditions, lists and templates find what they name; what stands in them means nothing.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from anyio import CapacityLimiter

from orchestra.agents.context import Context
from orchestra.agents.python.loading import Code
from orchestra.agents.python.runner import LocalRunner
from orchestra.agents.registry import KINDS
from orchestra.engine.names import specialist_name
from orchestra.expressions.expression import expression_paths, template_paths
from orchestra.limits import AGENT_THREADS
from orchestra.model.workflow import Agent, Phase, Specialist, Workflow
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Runner, Stop
from orchestra.ports.agent_kind import Workplace

MADE_UP: Final = "(made up in a dry run)"
_Text: TypeAlias = tuple[Specialist | None, str, Iterable[str]]
_NUMBER: Final = r"\s*(?:==|!=|<=?|>=?)\s*-?\d"
_TEXT: Final = r"\s*==\s*([\"'])(?P<text>.*?)\1"
_LIST: Final = r"\bin\s+{path}(?![\w.])|{path}\s*\|\s*(?:length|count|first|last|join|sort|reverse)\b"
_TRUE: Final = r"(?:^|\bnot|\band|\bor|\()\s*{path}\s*(?:$|\band\b|\bor\b|\))"


class StandIns:
    """A runner for a workflow, of which no agent is run; a `Runner`."""

    def __init__(self, workflow: Workflow, folder: Path) -> None:
        self._place = Workplace(folder=folder.absolute(), threads=CapacityLimiter(AGENT_THREADS))
        self._local = LocalRunner(self._place.threads, self._place.grace)
        self._workflow = workflow
        self._runners: dict[str, Runner | None] = {}

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        if agent.kind not in self._runners:
            self._runners[agent.kind] = KINDS.by_name(agent.kind).make_stand_in(self._place)
        runner = self._runners[agent.kind]
        if runner is not None:
            return runner.start(agent, assignment, link, ended)

        async def answer(ctx: Context) -> Result | Judgement:
            if ctx.role == "apollo":
                return Judgement(scores={line.name: 1.0 for line in ctx.rubric} or {"quality": 1.0})
            for path in assignment.outputs:
                await ctx.write(path, MADE_UP)
            phase = self._workflow.phase(assignment.phase)
            return Result(
                output=made_up(self._workflow, phase, specialist_name(assignment.name), self._place.folder)
            )

        return self._local.start(Code(answer, is_async=True), assignment, link, ended)


def made_up(workflow: Workflow, phase: Phase, name: str, folder: Path) -> Any:
    """A result of a specialist, with the parts that the workflow uses of it."""
    specialist = next((each for each in phase.specialists if each.id == name), None)
    places = [(f"needs.{name}", phase), (f"results.{name}", phase)]
    reducer = "replace"
    if specialist is not None and specialist.into is not None:
        places += [(f"context.{specialist.into}", each) for each in workflow.phases]
        reducer = next(each.reducer for each in workflow.context if each.name == specialist.into)
    if reducer in ("sum", "max"):
        return 1
    found: dict[str, Any] = {}
    for root, where in places:
        if reducer != "append" or not root.startswith("context."):
            _add_parts(found, root, _texts(workflow, where, folder))
    return found.get("", found or ({"made_up": True} if reducer == "merge" else MADE_UP))


def _add_parts(found: dict[str, Any], root: str, texts: Iterable[_Text]) -> None:
    """Add what texts name below a result; under an empty name, what the result itself is."""
    for specialist, text, paths in texts:
        for path in paths:
            if path == root and (whole := _leaf(text, root, specialist)) != MADE_UP:
                found[""] = whole
            if path.startswith(f"{root}."):
                _put(found, path.removeprefix(f"{root}.").split("."), _leaf(text, path, specialist))


def _put(found: dict[str, Any], steps: list[str], leaf: Any) -> None:
    *above, last = steps
    for step in above:
        below = found.get(step)
        found = found.setdefault(step, {}) if isinstance(below, dict) or below is None else {}
    if last not in found or found[last] == MADE_UP:
        found[last] = leaf


def _texts(workflow: Workflow, phase: Phase, folder: Path) -> Iterator[_Text]:
    """The templates and expressions of a phase and its agents, with the paths that they name."""
    agents = [each.agent for each in phase.specialists]
    for each in phase.specialists:
        yield each, each.task, template_paths(each.task)
        for text in filter(None, (each.when, each.foreach)):
            yield each, text, expression_paths(text)
    if phase.evaluate is not None:
        agents.append(phase.evaluate.agent)
        yield None, phase.evaluate.task, template_paths(phase.evaluate.task)
    for way in phase.next or ():
        if way.when is not None:
            yield None, way.when, expression_paths(way.when)
    for agent in map(workflow.agent, dict.fromkeys(agents)):
        for text in KINDS.by_name(agent.kind).templates(agent, folder):
            yield None, text, template_paths(text)


def _leaf(text: str, path: str, specialist: Specialist | None) -> Any:
    """Something that a text can do with a path what it does: compare it, go through it, or show it."""
    plain = re.escape(path)
    if specialist is not None and specialist.foreach == text and text.strip() == path:
        return [_item(specialist)]
    if re.search(_LIST.format(path=plain), text):
        return [MADE_UP]
    if re.search(plain + _NUMBER, text):
        return 1
    if compared := re.search(plain + _TEXT, text):
        return compared["text"]
    if "{" not in text and re.search(_TRUE.format(path=plain), text):
        return True
    return MADE_UP


def _item(specialist: Specialist) -> Any:
    """An item with the parts that the task of a specialist names."""
    made: dict[str, Any] = {}
    for path in template_paths(specialist.task):
        if path.startswith("item."):
            _put(made, path.removeprefix("item.").split("."), _leaf(specialist.task, path, None))
    return made or MADE_UP
