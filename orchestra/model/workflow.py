"""The workflow: a definition of inputs, agents, phases, transitions and policies, as frozen values.

A YAML file compiles to one of these (`orchestra.config`), and Python code may build it directly. Order
matters: the first phase is the entry, the first matching transition wins, results enter the context in the
order of declaration. Texts in `task`, `foreach` and `when` are templates and expressions that were checked.
"""

from typing import Literal, TypeAlias

import attrs

from orchestra.ids import AgentId, PhaseId
from orchestra.model.reducers import Reducer
from orchestra.model.value import Value

END = PhaseId("end")  # where a transition leads that ends the run

InputType: TypeAlias = Literal["text", "integer", "number", "boolean", "path", "list", "map", "any"]
FailureStep: TypeAlias = Literal["restart", "substitute", "rollback", "degrade", "ask", "fail"]
OnLimit: TypeAlias = Literal["stop", "ask", "cheaper", "proceed"]
LimitName: TypeAlias = Literal["requests", "tokens", "cost", "tool_calls", "seconds"]
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US


@attrs.frozen(kw_only=True)
class Input:
    """A value that is given when a run starts."""

    name: str
    type: InputType = "any"
    required: bool = False
    default: Value | None = None
    choices: tuple[Value, ...] = ()
    secret: bool = False  # redacted wherever it would be stored or shown
    help: str = ""


@attrs.frozen(kw_only=True)
class ContextName:
    """A name that results enter through a reducer."""

    name: str
    reducer: Reducer = "replace"
    initial: Value | None = None


@attrs.frozen(kw_only=True)
class Agent:
    """Something that can do a task."""

    id: AgentId
    kind: str  # the name of an `AgentKind`
    path: str = ""  # the file, relative to the workflow's folder
    options: Value | None = None  # the keys of its kind that are not at their defaults
    description: str = ""
    source: str = ""  # the kind's fingerprint: changes with files, interpreter, … that the agent runs on
    settings: Value | None = None  # `with:`, handed to the agent as it is
    calls: tuple[AgentId, ...] = ()  # agents that it may give errands to


@attrs.frozen(kw_only=True)
class Retry:
    """How an assignment is tried again."""

    attempts: int = 3
    backoff_us: int = 1 * SECOND_US
    max_backoff_us: int = 60 * SECOND_US
    timeout_us: int | None = 5 * MINUTE_US  # of one attempt

    def wait_us(self, failed: int) -> int:
        """How long to wait after so many failed attempts: doubled each time."""
        return min(self.max_backoff_us, self.backoff_us << min(failed - 1, 40)) if failed else 0


@attrs.frozen(kw_only=True)
class Limits:
    """What language models may be used: by one assignment, in a phase, in a run; None is no limit."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None  # in whole units of money
    tool_calls: int | None = None
    seconds: float | None = None
    on_limit: OnLimit = "stop"


@attrs.frozen(kw_only=True)
class ModelPrice:
    """What a million tokens of a language model cost, in units of money."""

    model: str  # `provider:name`; with `*` at its end: all that begin so
    input: float
    output: float
    cache_read: float | None = None  # None: as other input
    cache_write: float | None = None


@attrs.frozen(kw_only=True)
class Specialist:
    """An assignment of a phase, or one for each item of a list."""

    id: str
    agent: AgentId
    task: str = ""  # a template
    needs: tuple[str, ...] = ()
    when: str | None = None  # an expression; where it does not hold the assignment is skipped
    foreach: str | None = None  # an expression that gives a list
    into: str | None = None  # the context name its result enters
    outputs: tuple[str, ...] = ()  # files it promises to write
    retry: Retry | None = None  # None: the policy's
    on_failure: tuple[FailureStep, ...] = ()  # empty: the policy's
    substitute: AgentId | None = None
    threshold: float | None = None  # None: the policy's
    breakpoint: bool = False  # the run waits before it starts


@attrs.frozen(kw_only=True)
class Criterion:
    """What an evaluation scores, and how much it counts."""

    name: str
    weight: float = 1.0


@attrs.frozen(kw_only=True)
class Evaluate:
    """The evaluation at the end of a phase."""

    agent: AgentId
    task: str = ""
    threshold: float = 0.8
    rubric: tuple[Criterion, ...] = ()
    rounds: int = 0  # how often feedback may go back to the specialists
    retry: Retry | None = None


@attrs.frozen(kw_only=True)
class Spawn:
    """Below the threshold: start an additional specialist."""

    specialist: str  # whose task it gets, with `agent` in its place when one is named
    agent: AgentId | None = None
    max: int = 1
    kind: Literal["spawn"] = "spawn"


@attrs.frozen(kw_only=True)
class Ask:
    """Below the threshold: ask a person whether to go on."""

    question: str
    choices: tuple[str, ...] = ("yes", "no")
    kind: Literal["ask"] = "ask"


@attrs.frozen(kw_only=True)
class Proceed:
    """Below the threshold: go on all the same."""

    kind: Literal["proceed"] = "proceed"


@attrs.frozen(kw_only=True)
class Fail:
    """Below the threshold: the run fails."""

    kind: Literal["fail"] = "fail"


Reaction: TypeAlias = Spawn | Ask | Proceed | Fail


@attrs.frozen(kw_only=True)
class Transition:
    """Where the run goes after a phase, and under which condition."""

    to: PhaseId
    when: str | None = None


@attrs.frozen(kw_only=True)
class Phase:
    """A node of the workflow graph: specialists, optionally an evaluation, then a transition."""

    id: PhaseId
    description: str = ""
    specialists: tuple[Specialist, ...] = ()
    evaluate: Evaluate | None = None
    on_low_confidence: tuple[Reaction, ...] = ()
    next: tuple[Transition, ...] | None = None  # None: to the phase below; empty: the run ends here
    max_visits: int | None = None
    timeout_us: int | None = None  # of one visit
    limits: Limits | None = None  # of all its visits together
    breakpoint: bool = False  # the run waits before it starts


def transitions_of(
    said: tuple[Transition, ...] | None, below: PhaseId | None
) -> tuple[Transition, ...] | None:
    """Where a phase leads: where it says, else to the phase below it. The last one ends the run."""
    return said if said is not None or below is None else (Transition(to=below),)


def _lead_on(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """The phases, each with its transitions; also of a workflow that is built in Python."""
    below = (*(each.id for each in phases[1:]), None)
    ways = [transitions_of(each.next, lower) for each, lower in zip(phases, below, strict=False)]
    if all(way is each.next for each, way in zip(phases, ways, strict=True)):
        return phases
    return tuple(attrs.evolve(each, next=way) for each, way in zip(phases, ways, strict=True))


@attrs.frozen(kw_only=True)
class ConfidencePolicy:
    """When confidence is too low, which thresholds are watched, what a rollback costs."""

    threshold: float | None = None
    watch: tuple[float, ...] = ()
    rollback_factor: float = 0.9


@attrs.frozen(kw_only=True)
class RecoveryPolicy:
    """What happens after crashes and failures that restarts did not help."""

    auto: bool = True  # `orchestra run` first resumes incomplete runs of the same workflow
    max_recoveries: int = 3
    timeout_us: int = 300 * SECOND_US
    fallback_to_previous: bool = True  # a damaged head: go on from the newest whole snapshot
    on_failure: tuple[FailureStep, ...] = ("restart", "rollback", "fail")


@attrs.frozen(kw_only=True)
class Policy:
    """What holds for every phase unless it says otherwise."""

    confidence: ConfidencePolicy = ConfidencePolicy()
    retry: Retry = Retry()
    recovery: RecoveryPolicy = RecoveryPolicy()
    concurrency: int = 8  # assignments of one run at once
    max_iterations: int = 1000  # phase visits of one run
    grace_us: int = 5 * SECOND_US  # given to cancelled siblings
    limits: Limits | None = None  # of the whole run


@attrs.frozen(kw_only=True)
class Workflow:
    """A whole definition."""

    name: str
    description: str = ""
    inputs: tuple[Input, ...] = ()
    context: tuple[ContextName, ...] = ()
    agents: tuple[Agent, ...] = ()
    policy: Policy = Policy()
    prices: tuple[ModelPrice, ...] = ()  # they go before those that are known otherwise
    phases: tuple[Phase, ...] = attrs.field(default=(), converter=_lead_on)

    def phase(self, phase: PhaseId) -> Phase:
        return next(each for each in self.phases if each.id == phase)

    def agent(self, agent: AgentId) -> Agent:
        return next(each for each in self.agents if each.id == agent)
