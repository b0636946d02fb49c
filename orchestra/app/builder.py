"""Workflows built in Python: the same data as a workflow file holds, checked and compiled by the same code.

Every part notes where in the program it was written, so that a mistake is told with its file and line. A
builder never changes: each method returns another one.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, overload

import attrs

from orchestra.agents.context import BlockingContext, Context
from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.config.check.agent_files import SOURCE_VERSION
from orchestra.config.load import LoadedWorkflow, check_data
from orchestra.config.problems import Mistake, Problem, bad_workflow, printable
from orchestra.config.problems import Path as DataPath
from orchestra.errors import BadExpression, ValueRefused
from orchestra.expressions.analysis import expression_paths, template_paths
from orchestra.model.reducers import Reducer
from orchestra.model.workflow import InputType, Isolation, Workflow

_PACKAGE: Final = str(Path(__file__).parents[1])
_NOT_GIVEN: Final[Any] = object()


class AgentClass(Protocol):
    """A class that is an agent: one object for each attempt."""

    def run(self, ctx: Any, /) -> Any:
        """Do the task; may be async."""


AgentCode: TypeAlias = (
    Callable[[Context], Awaitable[Any]] | Callable[[BlockingContext], Any] | type[AgentClass]
)
"""What can be an agent: an async function, a plain function, or a class whose method `run` is either."""
Duration: TypeAlias = str | float
"""`"30s"`, `"5m"`, `"1h30m"`, or seconds."""
FailureStepOption: TypeAlias = str | Mapping[str, int]
"""`"restart"`, `"rollback"`, …; with a number of times: `{"rollback": 3}`."""


class RetryOptions(TypedDict, total=False):
    """How an assignment is tried again."""

    attempts: int
    backoff: Duration
    max_backoff: Duration
    timeout: Duration | None


class ConfidenceOptions(TypedDict, total=False):
    """When confidence is too low, which thresholds are watched, what a rollback costs."""

    threshold: float
    watch: Sequence[float]
    rollback_factor: float


class RecoveryOptions(TypedDict, total=False):
    """What happens after crashes, and after failures that restarts did not help."""

    auto: bool
    max_recoveries: int
    timeout: Duration
    fallback_to_previous: bool
    on_failure: FailureStepOption | Sequence[FailureStepOption]


class SourceLine(NamedTuple):
    """A place in a program."""

    file: str
    line: int


def caller() -> SourceLine:
    """The line of the program that called this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


@attrs.frozen(kw_only=True)
class AgentRef:
    """An agent that can be given tasks: calling it makes a specialist."""

    name: str
    data: Mapping[str, Any]
    function: Any = attrs.field(default=None, repr=False)
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)  # of every specialist it becomes
    place: SourceLine = attrs.field(eq=False, repr=False)

    def __call__(
        self,
        task: str = "",
        *,
        name: str | None = None,
        needs: "str | SpecialistSpec | Sequence[str | SpecialistSpec]" = (),
        when: str | bool | None = None,
        foreach: str | Sequence[Any] | None = None,
        into: str | None = None,
        outputs: str | Sequence[str] = (),
        retry: RetryOptions | None = None,
        timeout: Duration | None = None,
        on_failure: FailureStepOption | Sequence[FailureStepOption] = (),
        substitute: "AgentRef | str | None" = None,
        threshold: float | None = None,
        breakpoint: bool = False,
    ) -> "SpecialistSpec":
        """This agent with a task, a template; the keywords are those of a specialist in a workflow file."""
        given = {**self.options.get("retry", {}), **(retry or {})}
        data = {
            "agent": self.name if name not in (None, self.name) else None,
            "task": task,
            "needs": [each.name if isinstance(each, SpecialistSpec) else each for each in _listed(needs)],
            "when": _condition(when),
            "foreach": foreach if foreach is None or isinstance(foreach, str) else list(foreach),
            "into": into,
            "outputs": _listed(outputs),
            "retry": given if timeout is None else given | {"timeout": timeout},
            "on_failure": _listed(on_failure) or self.options.get("on_failure", []),
            "substitute": _name_of(substitute),
            "threshold": threshold,
            "breakpoint": breakpoint or None,
        }
        agents = (self, *_refs(substitute))
        return SpecialistSpec(name=name or self.name, data=_said(data), agents=agents, place=caller())


@attrs.frozen(kw_only=True)
class SpecialistSpec:
    """A specialist of a phase."""

    name: str
    data: Mapping[str, Any]
    agents: tuple[AgentRef, ...] = attrs.field(repr=False)
    place: SourceLine = attrs.field(eq=False, repr=False)


@attrs.frozen(kw_only=True)
class PhasePart:
    """An evaluation, a transition, or a reaction to a low confidence."""

    data: Mapping[str, Any]
    agents: tuple[AgentRef, ...] = attrs.field(default=(), repr=False)
    place: SourceLine = attrs.field(eq=False, repr=False)


@overload
def agent(function: AgentCode, /) -> AgentRef: ...
@overload
def agent(
    *,
    name: str | None = None,
    description: str = "",
    settings: Mapping[str, Any] | None = None,
    retry: RetryOptions | None = None,
    timeout: Duration | None = None,
    on_failure: FailureStepOption | Sequence[FailureStepOption] = (),
) -> Callable[[AgentCode], AgentRef]: ...
def agent(
    function: AgentCode | None = None,
    /,
    *,
    name: str | None = None,
    description: str = "",
    settings: Mapping[str, Any] | None = None,
    retry: RetryOptions | None = None,
    timeout: Duration | None = None,
    on_failure: FailureStepOption | Sequence[FailureStepOption] = (),
) -> AgentRef | Callable[[AgentCode], AgentRef]:
    """Make an agent of a function: async ones run in the loop, plain ones in a thread.

    `retry`, `timeout` and `on_failure` hold for every specialist it becomes, unless that says otherwise.
    """
    tries = {**(retry or {}), **({"timeout": timeout} if timeout is not None else {})}
    options = _said({"retry": tries or None, "on_failure": _listed(on_failure)})
    data, place = _said({"description": description, "with": dict(settings or {})}), caller()

    def make(code: AgentCode) -> AgentRef:
        called = name or str(getattr(code, "__name__", type(code).__name__))
        return AgentRef(name=called, data=data, function=code, options=options, place=place)

    return make if function is None else make(function)


def agent_file(
    path: str | Path,
    *,
    name: str | None = None,
    attribute: str = "agent",
    isolation: Isolation = "none",
    description: str = "",
    settings: Mapping[str, Any] | None = None,
    environment: str | Sequence[str] = (),
) -> AgentRef:
    """The agent in a Python file, relative to the folder of the program that builds the workflow."""
    data = {"path": str(path), "attribute": attribute if attribute != "agent" else None}
    return _outside(name or Path(path).stem, data, isolation, description, settings, environment)


def agent_command(
    command: str | Sequence[str],
    *,
    name: str,
    description: str = "",
    settings: Mapping[str, Any] | None = None,
    environment: str | Sequence[str] = (),
) -> AgentRef:
    """A program that talks JSON lines, as an agent."""
    data = {"command": command if isinstance(command, str) else list(command)}
    return _outside(name, data, "none", description, settings, environment)


def agent_entry(name: str, entry: Mapping[str, Any]) -> AgentRef:
    """An agent of any kind, as it would stand under `agents` in a workflow file."""
    return AgentRef(name=name, data=dict(entry), place=caller())


def _outside(
    name: str,
    data: Mapping[str, Any],
    isolation: Isolation,
    description: str,
    settings: Mapping[str, Any] | None,
    environment: str | Sequence[str],
) -> AgentRef:
    more = {
        "isolation": isolation if isolation != "none" else None,
        "description": description,
        "with": dict(settings or {}),
        "environment": _listed(environment),
    }
    return AgentRef(name=name, data=_said({**data, **more}), place=caller())


def evaluation(
    judge: AgentRef | str,
    task: str = "",
    *,
    threshold: float | None = None,
    rubric: Mapping[str, float] | str | Sequence[str] = (),
    rounds: int | None = None,
    retry: RetryOptions | None = None,
) -> PhasePart:
    """The judgement at the end of a phase; `rounds` is how often feedback goes back to the specialists."""
    data = {
        "agent": _name_of(judge),
        "task": task,
        "threshold": threshold,
        "rubric": dict(rubric) if isinstance(rubric, Mapping) else _listed(rubric),
        "revise": None if rounds is None else {"rounds": rounds},
        "retry": None if retry is None else dict(retry),
    }
    return PhasePart(data=_said(data), agents=_refs(judge), place=caller())


def spawn(
    specialist: AgentRef | SpecialistSpec | str, *, agent: AgentRef | str | None = None, max: int = 1
) -> PhasePart:
    """Below the threshold: start an additional specialist."""
    named = specialist if isinstance(specialist, str) else specialist.name
    data = {"spawn": named, "agent": _name_of(agent), "max": max if max != 1 else None}
    known = specialist.agents if isinstance(specialist, SpecialistSpec) else _refs(specialist)
    return PhasePart(data=_said(data), agents=(*known, *_refs(agent)), place=caller())


def ask(question: str, *, choices: Sequence[str] = ("yes", "no")) -> PhasePart:
    """Below the threshold: ask a person whether to go on."""
    return PhasePart(data={"ask": question, "choices": list(choices)}, place=caller())


def to(phase: str, *, when: str | bool | None = None) -> PhasePart:
    """Where the run goes after a phase, and under which condition."""
    return PhasePart(data=_said({"to": phase, "when": _condition(when)}), place=caller())


class _Entry(NamedTuple):
    """One thing that a builder was told, where, and what is wrong with how it was told."""

    path: DataPath
    data: Any
    places: Mapping[DataPath, SourceLine]
    agents: tuple[AgentRef, ...] = ()
    problems: tuple[Problem, ...] = ()


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
        data = _said(
            {
                "type": type,
                "required": required,
                "choices": list(choices),
                "secret": secret or None,
                "help": help,
            }
        )
        return self._with("inputs", name, data if default is _NOT_GIVEN else {**data, "default": default})

    def context(self, name: str, reducer: Reducer = "replace", *, initial: Any = None) -> "WorkflowBuilder":
        """Declare a name that results enter through a reducer.

        A workflow that declares none has those that its specialists' `into` name.
        """
        return self._with("context", name, _said({"reducer": reducer, "initial": initial}))

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
    ) -> "WorkflowBuilder":
        """Say what holds for every phase unless it says otherwise."""
        given = {"confidence": confidence, "retry": retry, "recovery": recovery, "grace": grace}
        data = {**given, "concurrency": concurrency, "max_iterations": max_iterations}
        return self._with("policy", None, _said({key: _copied(value) for key, value in data.items()}))

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
        breakpoint: bool = False,
    ) -> "WorkflowBuilder":
        """Add a phase. Without `next` the run goes on with the phase that is added after it, or ends."""
        reactions, ways = _listed(on_low_confidence), _listed(next)
        data = {
            "description": description,
            "specialists": {each.name: dict(each.data) for each in specialists},
            "evaluate": _part(evaluate),
            "on_low_confidence": [_part(each) for each in reactions],
            "max_visits": max_visits,
            "timeout": timeout,
            "breakpoint": breakpoint or None,
        }
        parts: dict[DataPath, Any] = {("specialists", each.name): each for each in specialists}
        parts |= {("evaluate",): evaluate}
        parts |= {("on_low_confidence", at): each for at, each in enumerate(reactions)}
        parts |= {("next", at): each for at, each in enumerate(ways)}
        said = _said(data) if next is None else _said(data) | {"next": [_part(each) for each in ways]}
        return self._with("phases", name, said, parts, tuple(_doubles(specialists)))

    def build(self) -> LoadedWorkflow:
        """The checked workflow; raises `BadWorkflow` with every mistake and where it stands."""
        if self._made:
            return self._made[0]
        draft = _Draft(self.name, self._place, self._entries)
        functions = {name: ref.function for name, ref in draft.agents.items() if ref.function is not None}
        file = Path(self._place.file).absolute()
        checked = check_data(draft.data, file.parent, functions)
        problems = [*draft.problems, *(draft.located(each) for each in checked.mistakes)]
        if problems or checked.workflow is None:
            raise bad_workflow(_shown(self._place.file), problems)
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
        held = {below: part for below, part in (parts or {}).items() if _has_place(part)}
        places = {(): caller()} | {below: part.place for below, part in held.items()}
        agents = tuple(ref for part in held.values() for ref in _refs(part))
        return attrs.evolve(self, entries=(*self._entries, _Entry(path, data, places, agents, problems)))


def workflow(name: str, *, description: str = "") -> WorkflowBuilder:
    """Begin a workflow; its methods add to it, and the first phase that is added is the entry."""
    entries = (_Entry(("description",), description, {}),) if description else ()
    return WorkflowBuilder(name=name, place=caller(), entries=entries)


class _Draft:
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
        self.data.setdefault("context", dict.fromkeys(_entered_names(self.data)))
        self.data.setdefault("phases", {})
        self.problems += (self.located(each) for each in list(_take_unstorable(self.data)))

    def located(self, mistake: Mistake) -> Problem:
        """A mistake with the line of the program that is nearest to it."""
        ends = range(len(mistake.path), -1, -1)
        place = next(self._places[mistake.path[:end]] for end in ends if mistake.path[:end] in self._places)
        return _problem(place, mistake.message)

    def _add(self, entry: _Entry) -> None:
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
    return Problem(place.line, 0, printable(message), _shown(place.file))


def _shown(file: str) -> str:
    """A file as people here would name it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _doubles(specialists: Sequence[SpecialistSpec]) -> Iterator[Problem]:
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


def _listed(given: Any) -> list[Any]:
    """One thing, or several, or none, as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _said(data: Mapping[str, Any]) -> dict[str, Any]:
    """What was said: without what is left at nothing."""
    return {key: value for key, value in data.items() if value is not None and value not in ("", [], {})}


def _copied(value: Any) -> Any:
    """Options as a file would hold them."""
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value


def _condition(when: str | bool | None) -> str | None:
    return str(when).lower() if isinstance(when, bool) else when


def _has_place(part: Any) -> bool:
    return isinstance(part, AgentRef | SpecialistSpec | PhasePart)


def _name_of(ref: AgentRef | str | None) -> str | None:
    return ref.name if isinstance(ref, AgentRef) else ref


def _refs(part: Any) -> tuple[AgentRef, ...]:
    """The agents that come with a part."""
    return (part,) if isinstance(part, AgentRef) else getattr(part, "agents", ())


def _part(part: Any) -> Any:
    """A part of a phase as a file would hold it."""
    return dict(part.data) if isinstance(part, PhasePart) else part.name if _has_place(part) else part


def _with_functions(workflow: Workflow, functions: Mapping[str, Any]) -> Workflow:
    """The workflow whose agents of these names are functions, told apart by their code."""
    agents = [
        attrs.evolve(each, kind="function", source=_source(functions[each.id]))
        if each.id in functions
        else each
        for each in workflow.agents
    ]
    return attrs.evolve(workflow, agents=tuple(agents))


def _source(function: Any) -> str:
    """The digest of a function's code; empty where that is nowhere, as in an interactive session."""
    try:
        code = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return Addresser().address("blob", SOURCE_VERSION, code.encode()).hex()
