"""The data of a workflow that is built in Python, as a file would hold it, and where each part stands."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs

from orchestra.agents.fingerprint import digest_files
from orchestra.app.building.elements import AgentRef, SourceLine, SpecialistSpec
from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.config.problems import Mistake, Problem, printable
from orchestra.config.problems import Path as DataPath
from orchestra.errors import BadExpression, ValueRefused
from orchestra.expressions.analysis import expression_paths, template_paths
from orchestra.model.workflow import Workflow


class Entry(NamedTuple):
    """One thing that a builder was told, where, and what is wrong with how it was told."""

    path: DataPath
    data: Any
    places: Mapping[DataPath, SourceLine]
    agents: tuple[AgentRef, ...] = ()
    problems: tuple[Problem, ...] = ()


class WorkflowData:
    """The data of a workflow as a file would hold it, with the place in the program of each part."""

    def __init__(self, name: str, place: SourceLine, entries: Iterable[Entry]) -> None:
        self.data: dict[str, Any] = {"name": name}
        self.agents: dict[str, AgentRef] = {}
        self.problems: list[Problem] = []
        self._places: dict[DataPath, SourceLine] = {(): place}
        for entry in entries:
            self._add(entry)
        if self.agents:
            self.data["agents"] = {name: dict(ref.data) for name, ref in self.agents.items()}
        self.data.setdefault("inputs", dict.fromkeys(_named_inputs(self.data)))
        self.data.setdefault("context", dict.fromkeys(_entered_names(self.data)))
        self.data.setdefault("phases", {})
        self.problems += (self.locate(each) for each in list(_take_unstorable(self.data)))

    def locate(self, mistake: Mistake) -> Problem:
        """A mistake with the line of the program that is nearest to it."""
        ends = range(len(mistake.path), -1, -1)
        place = next(self._places[mistake.path[:end]] for end in ends if mistake.path[:end] in self._places)
        return _problem(place, mistake.message)

    def _add(self, entry: Entry) -> None:
        self.problems += entry.problems
        for ref in entry.agents:
            self._meet(ref)
        place, before = entry.places.get(()), self._places.get(entry.path)
        if place is not None and before is not None:
            what = f"`{entry.path[-1]}` is given twice; the first is on line {before.line}"
            self.problems.append(_problem(place, what))
            return
        self._places |= {(*entry.path, *below): each for below, each in entry.places.items()}
        if len(entry.path) == 1 and entry.data is not None:
            self.data[str(entry.path[0])] = entry.data
        elif entry.data is not None:
            self.data.setdefault(str(entry.path[0]), {})[entry.path[1]] = entry.data

    def _meet(self, ref: AgentRef) -> None:
        known = self.agents.setdefault(ref.name, ref)
        self._places.setdefault(("agents", ref.name), ref.place)
        if known != ref:
            what = f"two agents are called `{ref.name}`; give one of them another `name`"
            self.problems.append(_problem(ref.place, what))


def _problem(place: SourceLine, message: str) -> Problem:
    return Problem(place.line, 0, printable(message), shown_file(place.file))


def shown_file(file: str) -> str:
    """A file as people here would name it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def doubles(specialists: Sequence[SpecialistSpec]) -> Iterator[Problem]:
    """Specialists of one name, which a file would refuse as a key that is given twice."""
    first: dict[str, SpecialistSpec] = {}
    for each in specialists:
        before = first.setdefault(each.name, each)
        if before is not each:
            what = f"two specialists of this phase are called `{each.name}`; give one another `name`"
            yield _problem(each.place, what)


def _texts(data: Mapping[str, Any]) -> Iterator[tuple[Callable[[str], frozenset[str]], Any]]:
    """Every text of a workflow that can name inputs, with what tells its names."""
    for phase in data.get("phases", {}).values():
        for each in phase.get("specialists", {}).values():
            yield template_paths, each.get("task")
            yield expression_paths, each.get("when")
            yield expression_paths, each.get("foreach")
        evaluate = phase.get("evaluate")
        yield template_paths, evaluate.get("task") if isinstance(evaluate, dict) else None
        for way in phase.get("next", ()):
            yield expression_paths, way.get("when") if isinstance(way, dict) else None


def _named_inputs(data: Mapping[str, Any]) -> Iterator[str]:
    """The inputs that texts name; what is wrong with a text is told by its check."""
    for names, text in _texts(data):
        try:
            paths = sorted(names(text)) if isinstance(text, str) else []
        except BadExpression:
            continue
        for path in paths:
            top, _, rest = path.partition(".")
            if top == "inputs" and rest:
                yield rest.partition(".")[0]


def _entered_names(data: Mapping[str, Any]) -> Iterator[str]:
    """The names that results enter."""
    for phase in data.get("phases", {}).values():
        for each in phase.get("specialists", {}).values():
            if "into" in each:
                yield each["into"]


def _take_unstorable(data: Mapping[str, Any]) -> Iterator[Mistake]:
    """Take out values that no file could hold, and tell them."""
    for section, keys in _VALUES.items():
        for name, given in data.get(section, {}).items():
            for key in sorted(keys & (given or {}).keys()):
                try:
                    freeze(given[key], Addresser())
                except ValueRefused as refused:
                    data[section][name] = {each: held for each, held in given.items() if each != key}
                    yield Mistake((section, name, key), f"`{key}`: {refused}")


_VALUES: Final = {"inputs": {"default", "choices"}, "context": {"initial"}, "agents": {"with"}}


def with_functions(workflow: Workflow, functions: Mapping[str, Any]) -> Workflow:
    """The workflow whose agents of these names are functions, told apart by their code."""
    agents = [
        attrs.evolve(each, source=_source(functions[each.id])) if each.id in functions else each
        for each in workflow.agents
    ]
    return attrs.evolve(workflow, agents=tuple(agents))


def _source(function: Any) -> str:
    """The digest of a function's code; empty where that is nowhere, as in an interactive session."""
    try:
        code = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return digest_files([], code)
