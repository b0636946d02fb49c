"""The builder of workflows: each method adds to it and returns another one.

What it was told becomes the data that a file would hold, with the line of the program for each part.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import attrs

from orchestra.agents.fingerprint import digest_files
from orchestra.agents.registry import KINDS
from orchestra.app.building.elements import (
    AgentRef,
    BudgetOptions,
    ConfidenceOptions,
    Duration,
    PhasePart,
    RecoveryOptions,
    RetryOptions,
    SourceLine,
    SpecialistSpec,
    caller,
    has_place,
    list_of,
    part_data,
    plain_copy,
    refs_in,
    without_empty,
)
from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.config.load import LoadedWorkflow, check_data
from orchestra.config.problems import Mistake, Problem, bad_workflow, printable
from orchestra.config.problems import Path as DataPath
from orchestra.errors import BadExpression, ValueRefused
from orchestra.expressions.expression import expression_paths, template_paths
from orchestra.model.reducers import Reducer
from orchestra.model.workflow import InputType, Workflow


class _Entry(NamedTuple):
    """One thing that a builder was told, where, and what is wrong with how it was told."""

    path: DataPath
    data: Any
    places: Mapping[DataPath, SourceLine]
    agents: tuple[AgentRef, ...] = ()
    problems: tuple[Problem, ...] = ()


class _WorkflowData:
    """The data of a workflow as a file would hold it, with the place in the program of each part."""

    def __init__(self, name: str, place: SourceLine, entries: Iterable[_Entry]) -> None:
        self.data: dict[str, Any] = {"name": name}
        self.agents: dict[str, AgentRef] = {}
        self.problems: list[Problem] = []
        self._places: dict[DataPath, SourceLine] = {(): place}
        for entry in entries:
            self._add(entry)
        if self.agents:
            self.data["agents"] = {name: dict(ref.data) for name, ref in self.agents.items()}
        self.data.setdefault("inputs", dict.fromkeys(_named_inputs(self.data)))
        phases = self.data.setdefault("phases", {}).values()
        specialists = [each for phase in phases for each in phase.get("specialists", {}).values()]
        entered = (each["into"] for each in specialists if "into" in each)
        self.data.setdefault("context", dict.fromkeys(entered))
        self.problems += (self.locate(each) for each in list(_take_unstorable(self.data)))

    def locate(self, mistake: Mistake) -> Problem:
        """A mistake with the line of the program that is nearest to it."""
        ends = range(len(mistake.path), -1, -1)
        place = next(self._places[mistake.path[:end]] for end in ends if mistake.path[:end] in self._places)
        return _problem(place, mistake.message)

    def _add(self, entry: _Entry) -> None:
        self.problems += entry.problems
        for ref in entry.agents:
            self._places.setdefault(("agents", ref.name), ref.place)
            if self.agents.setdefault(ref.name, ref) != ref:
                what = f"two agents are called `{ref.name}`; give one of them another `name`"
                self.problems.append(_problem(ref.place, what))
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


def _problem(place: SourceLine, message: str) -> Problem:
    return Problem(place.line, 0, printable(message), _shown_file(place.file))


def _shown_file(file: str) -> str:
    """A file as people here would name it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _doubles(specialists: Sequence[SpecialistSpec]) -> Iterator[Problem]:
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


def _with_functions(workflow: Workflow, functions: Mapping[str, Any]) -> Workflow:
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


_NOT_GIVEN: Final[Any] = object()


@attrs.frozen(kw_only=True)
class WorkflowBuilder:
    """A workflow that is being built. `Orchestra.run` takes it as it is and checks it first."""

    name: str
    _place: SourceLine = attrs.field(eq=False, repr=False)
    _entries: tuple[_Entry, ...] = attrs.field(default=(), repr=False)
    _made: list[LoadedWorkflow] = attrs.field(factory=list, init=False, eq=False, repr=False)

    def input(
        self,
        name: str,
        *,
        type: InputType = "any",
        default: Any = _NOT_GIVEN,
        required: bool | None = None,
        choices: Sequence[Any] = (),
        secret: bool = False,
        help: str = "",
    ) -> "WorkflowBuilder":
        """Declare a value that is given when a run starts.

        A workflow that declares none takes what its texts name as `inputs.…`, all required.
        """
        said = {"type": type, "required": required, "choices": list(choices), "secret": secret or None}
        given = {} if default is _NOT_GIVEN else {"default": default}
        return self._with("inputs", name, without_empty({**said, "help": help}) | given)

    def context(self, name: str, reducer: Reducer = "replace", *, initial: Any = None) -> "WorkflowBuilder":
        """Declare a name that results enter through a reducer.

        A workflow that declares none has those that its specialists' `into` name.
        """
        return self._with("context", name, without_empty({"reducer": reducer, "initial": initial}))

    def agents(self, *agents: AgentRef) -> "WorkflowBuilder":
        """Declare agents that are only named by text, or in another order than that of their use."""
        return attrs.evolve(self, entries=(*self._entries, _Entry(("agents",), None, {}, agents)))

    def policy(
        self,
        *,
        confidence: ConfidenceOptions | None = None,
        retry: RetryOptions | None = None,
        recovery: RecoveryOptions | None = None,
        concurrency: int | None = None,
        max_iterations: int | None = None,
        grace: Duration | None = None,
        limits: BudgetOptions | None = None,
    ) -> "WorkflowBuilder":
        """Say what holds for every phase unless it says otherwise."""
        given = {"confidence": confidence, "retry": retry, "recovery": recovery, "grace": grace}
        data = {**given, "concurrency": concurrency, "max_iterations": max_iterations, "limits": limits}
        return self._with("policy", None, without_empty(plain_copy(data)))

    def price(
        self,
        model: str,
        *,
        input: float,
        output: float,
        cache_read: float | None = None,
        cache_write: float | None = None,
    ) -> "WorkflowBuilder":
        """Say what a million tokens of a language model cost."""
        given = {"input": input, "output": output, "cache_read": cache_read, "cache_write": cache_write}
        return self._with("prices", model, {key: held for key, held in given.items() if held is not None})

    def phase(
        self,
        name: str,
        /,
        *specialists: SpecialistSpec,
        description: str = "",
        evaluate: PhasePart | AgentRef | str | None = None,
        on_low_confidence: PhasePart
        | Literal["proceed", "fail"]
        | Sequence[PhasePart | Literal["proceed", "fail"]] = (),
        next: PhasePart | str | Sequence[PhasePart | str] | None = None,
        max_visits: int | None = None,
        timeout: Duration | None = None,
        limits: BudgetOptions | None = None,
        breakpoint: bool = False,
    ) -> "WorkflowBuilder":
        """Add a phase. Without `next` the run goes on with the phase that is added after it, or ends."""
        reactions, ways = list_of(on_low_confidence), list_of(next)
        data = {
            "description": description,
            "specialists": {each.name: dict(each.data) for each in specialists},
            "evaluate": part_data(evaluate),
            "on_low_confidence": [part_data(each) for each in reactions],
            "max_visits": max_visits,
            "timeout": timeout,
            "limits": None if limits is None else plain_copy(limits),
            "breakpoint": breakpoint or None,
        }
        parts: dict[DataPath, Any] = {("specialists", each.name): each for each in specialists}
        parts |= {("evaluate",): evaluate}
        parts |= {("on_low_confidence", at): each for at, each in enumerate(reactions)}
        parts |= {("next", at): each for at, each in enumerate(ways)}
        said = without_empty(data)
        if next is not None:
            said["next"] = [part_data(each) for each in ways]
        return self._with("phases", name, said, parts, tuple(_doubles(specialists)))

    def build(self) -> LoadedWorkflow:
        """The checked workflow; raises `BadWorkflow` with every mistake and where it stands."""
        if self._made:
            return self._made[0]
        draft = _WorkflowData(self.name, self._place, self._entries)
        functions = {name: ref.function for name, ref in draft.agents.items() if ref.function is not None}
        file = Path(self._place.file).absolute()
        checked = check_data(draft.data, file.parent, KINDS, functions)
        problems = [*draft.problems, *(draft.locate(each) for each in checked.mistakes)]
        if problems or checked.workflow is None:
            raise bad_workflow(_shown_file(self._place.file), problems)
        made = LoadedWorkflow(
            workflow=_with_functions(checked.workflow, functions),
            file=Path(f"{file}:{self._place.line}"),
            text="",
            settings=checked.settings,
            functions=functions,
        )
        if len(functions) == len(draft.agents):  # files may change until the next run
            self._made.append(made)
        return made

    def _with(
        self,
        section: str,
        name: str | None,
        data: Mapping[str, Any],
        parts: Mapping[DataPath, Any] | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> "WorkflowBuilder":
        path: DataPath = (section,) if name is None else (section, name)
        held = {below: part for below, part in (parts or {}).items() if has_place(part)}
        places = {(): caller()} | {below: part.place for below, part in held.items()}
        agents = tuple(ref for part in held.values() for ref in refs_in(part))
        return attrs.evolve(self, entries=(*self._entries, _Entry(path, data, places, agents, problems)))


def workflow(name: str, *, description: str = "") -> WorkflowBuilder:
    """Begin a workflow; its methods add to it, and the first phase that is added is the entry."""
    entries = (_Entry(("description",), description, {}),) if description else ()
    return WorkflowBuilder(name=name, place=caller(), entries=entries)
