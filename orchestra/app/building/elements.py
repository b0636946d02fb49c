"""The parts of a workflow that is built in Python: agents, specialists, and what else a phase is made of.

Each holds what a workflow file would, the agents it brings along, and where in the program it was written.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypedDict, overload

import attrs

from orchestra.agents.context import BlockingContext, Context
from orchestra.agents.python.kind import Isolation
from orchestra.model.workflow import OnLimit

_PACKAGE: Final = str(Path(__file__).parents[2])


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


class BudgetOptions(TypedDict, total=False):
    """What language models may use in a phase, or in the whole run."""

    requests: int
    tokens: int
    cost: float
    tool_calls: int
    seconds: float
    on_limit: OnLimit


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
            "needs": [each.name if isinstance(each, SpecialistSpec) else each for each in list_of(needs)],
            "when": _condition(when),
            "foreach": foreach if foreach is None or isinstance(foreach, str) else list(foreach),
            "into": into,
            "outputs": list_of(outputs),
            "retry": given if timeout is None else given | {"timeout": timeout},
            "on_failure": list_of(on_failure) or self.options.get("on_failure", []),
            "substitute": _name_of(substitute),
            "threshold": threshold,
            "breakpoint": breakpoint or None,
        }
        agents = (self, *refs_in(substitute))
        return SpecialistSpec(name=name or self.name, data=without_empty(data), agents=agents, place=caller())


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
    options = without_empty({"retry": tries or None, "on_failure": list_of(on_failure)})
    data, place = without_empty({"description": description, "with": dict(settings or {})}), caller()

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
    own = {
        "path": str(path),
        "attribute": attribute if attribute != "agent" else None,
        "isolation": isolation if isolation != "none" else None,
    }
    return _outside(name or Path(path).stem, own, description, settings, environment)


def agent_command(
    command: str | Sequence[str],
    *,
    name: str,
    description: str = "",
    settings: Mapping[str, Any] | None = None,
    environment: str | Sequence[str] = (),
) -> AgentRef:
    """A program that talks JSON lines, as an agent."""
    own = {"command": command if isinstance(command, str) else list(command)}
    return _outside(name, own, description, settings, environment)


def agent_entry(name: str, entry: Mapping[str, Any]) -> AgentRef:
    """An agent of any kind, as it would stand under `agents` in a workflow file."""
    return AgentRef(name=name, data=dict(entry), place=caller())


def _outside(
    name: str,
    own: Mapping[str, Any],
    description: str,
    settings: Mapping[str, Any] | None,
    environment: str | Sequence[str],
) -> AgentRef:
    more = {"description": description, "with": dict(settings or {}), "environment": list_of(environment)}
    return AgentRef(name=name, data=without_empty({**own, **more}), place=caller())


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
        "rubric": dict(rubric) if isinstance(rubric, Mapping) else list_of(rubric),
        "revise": None if rounds is None else {"rounds": rounds},
        "retry": None if retry is None else dict(retry),
    }
    return PhasePart(data=without_empty(data), agents=refs_in(judge), place=caller())


def spawn(
    specialist: AgentRef | SpecialistSpec | str, *, agent: AgentRef | str | None = None, max: int = 1
) -> PhasePart:
    """Below the threshold: start an additional specialist."""
    named = specialist if isinstance(specialist, str) else specialist.name
    data = {"spawn": named, "agent": _name_of(agent), "max": max if max != 1 else None}
    known = specialist.agents if isinstance(specialist, SpecialistSpec) else refs_in(specialist)
    return PhasePart(data=without_empty(data), agents=(*known, *refs_in(agent)), place=caller())


def ask(question: str, *, choices: Sequence[str] = ("yes", "no")) -> PhasePart:
    """Below the threshold: ask a person whether to go on."""
    return PhasePart(data={"ask": question, "choices": list(choices)}, place=caller())


def to(phase: str, *, when: str | bool | None = None) -> PhasePart:
    """Where the run goes after a phase, and under which condition."""
    return PhasePart(data=without_empty({"to": phase, "when": _condition(when)}), place=caller())


def list_of(given: Any) -> list[Any]:
    """One thing, or several, or none, as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    """What was said: without what is left at nothing."""
    return {key: value for key, value in data.items() if value is not None and value not in ("", [], {})}


def plain_copy(value: Any) -> Any:
    """Options as a file would hold them."""
    if isinstance(value, Mapping):
        return {key: plain_copy(each) for key, each in value.items()}
    return [plain_copy(each) for each in value] if isinstance(value, list | tuple) else value


def _condition(when: str | bool | None) -> str | None:
    return str(when).lower() if isinstance(when, bool) else when


def has_place(part: Any) -> bool:
    """Whether a part notes where it was written, which plain text does not."""
    return isinstance(part, AgentRef | SpecialistSpec | PhasePart)


def _name_of(ref: AgentRef | str | None) -> str | None:
    return ref.name if isinstance(ref, AgentRef) else ref


def refs_in(part: Any) -> tuple[AgentRef, ...]:
    """The agents that come with a part."""
    return (part,) if isinstance(part, AgentRef) else getattr(part, "agents", ())


def part_data(part: Any) -> Any:
    """A part of a phase as a file would hold it."""
    return dict(part.data) if isinstance(part, PhasePart) else part.name if has_place(part) else part
