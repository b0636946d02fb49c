"""A workflow file as pydantic models: the keys, their types, their short forms, and what editors show."""

import json
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from orchestra.config.forms import (
    Count,
    Duration,
    Form,
    Name,
    Positive,
    Share,
    Steps,
    Table,
    Texts,
    When,
    as_list,
    key,
    refusal,
    short,
)
from orchestra.config.settings.models import CheckpointForm, RecoveryForm
from orchestra.model.reducers import Reducer
from orchestra.model.workflow import InputType, OnLimit

NotNegative = Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]
_TYPES: dict[type, InputType] = {bool: "boolean", int: "integer", float: "number", str: "text", list: "list"}


def _keyed(name: str, written: Any, *, kind: type = str, empty: bool = False) -> BeforeValidator:
    """A short form: the value of the one key that matters; or nothing at all, where it may be `empty`."""

    def long(value: Any) -> Any:
        if value is None and empty:
            return {}
        return {name: value} if type(value) is kind else value

    return short(long, written)


def short_input(value: Any) -> Any:
    """A bare value is the default, and its type is the input's."""
    if value is None:
        return {}
    return {"type": _TYPES[type(value)], "default": value} if type(value) in _TYPES else value


def _literal(value: Any) -> Any:
    """A list that is written out as an expression."""
    return _written(value) if isinstance(value, list) else value


def _written(value: Any) -> str:
    """Plain data in the words of expressions; braces stand apart, because two of them mean something else."""
    match value:
        case None:
            return "none"
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case dict() if not value:
            return "{}"
        case dict():
            return "{ " + ", ".join(f"{json.dumps(k)}: {_written(v)}" for k, v in value.items()) + " }"
        case float() if not isfinite(value):
            raise refusal(f"a list that is written out cannot hold {value}")
        case _:
            return json.dumps(value, ensure_ascii=False)


def _weights(value: Any) -> Any:
    """Names alone count the same."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return dict.fromkeys(value, 1.0)
    return value


class InputForm(Form):
    """A value that is given when a run starts. Without `default` and `required` it is required."""

    nulls: ClassVar[frozenset[str]] = frozenset({"default"})
    type: InputType = key("any", "What it must be; `path` must exist when the run starts.")
    default: Any = key(None, "Its value where none is given.")
    required: bool | None = key(None, "Whether it must be given; by default if it has no default.")
    choices: list[Any] = key([], "The only values it may have.")
    secret: bool = key(False, "Redacted wherever it would be stored or shown.")
    help: str = key("", "What it is, for people.")


class ContextForm(Form):
    """A name that results enter through a reducer."""

    reducer: Reducer = key("replace", "How a result joins what is there already.")
    initial: Any = key(None, "What is there before the first result.")


class RetryForm(Form):
    """How an assignment is tried again."""

    nulls: ClassVar[frozenset[str]] = frozenset({"timeout"})
    attempts: int = key(3, "Tries in all.", ge=1, le=100)
    backoff: Duration = key(1_000_000, "The wait after the first failure; it doubles each time.")
    max_backoff: Duration = key(60_000_000, "The longest wait.")
    timeout: Duration | None = key(300_000_000, "Of one attempt; nothing: no limit.")


class SpecialistForm(Form):
    """An assignment of a phase, or one for each item of a list."""

    agent: str | None = key(None, "Who does it; by default the agent of the same name.")
    task: str = key("", "What to do; a template.")
    needs: Texts = key([], "Specialists of this phase that must be done first.")
    when: When | None = key(None, "An expression; where it does not hold this one is skipped.")
    foreach: Annotated[str | None, short(_literal, str | list[Any])] = key(
        None, "An expression that gives a list, or a list: one assignment for each `item`."
    )
    into: str | None = key(None, "The context name its result enters.")
    outputs: Texts = key([], "Files it promises to write.")
    retry: RetryForm | None = key(None, "What differs from the policy.")
    on_failure: Steps = key([], "What to try, in order, when attempts are used up.")
    substitute: str | None = key(None, "The agent that takes over.")
    threshold: Share | None = key(None, "The confidence it must reach.")
    breakpoint: bool = key(False, "The run waits before it starts.")


class ReviseForm(Form):
    """Feedback to the specialists."""

    rounds: int = key(1, "How often it may go back to them.", ge=0, le=100)


class EvaluateForm(Form):
    """The evaluation at the end of a phase."""

    agent: str = Field(description="The evaluator.")
    task: str = key("", "What to judge; a template.")
    threshold: Share = key(0.8, "The score from which a result is accepted.")
    rubric: Annotated[dict[str, float], short(_weights, dict[str, float] | list[str])] = key(
        {}, "What is scored, and how much each counts."
    )
    revise: Annotated[ReviseForm | None, _keyed("rounds", ReviseForm | Count, kind=int)] = key(
        None, "Whether feedback goes back to the specialists."
    )
    retry: RetryForm | None = key(None, "What differs from the policy.")


class SpawnForm(Form):
    """Below the threshold: start an additional specialist."""

    spawn: str = Field(
        description="The specialist whose task is done again, or an agent for the first one's."
    )
    agent: str | None = key(None, "Who does it instead.")
    max: Positive = key(1, "How often, in one visit of the phase.")


class AskForm(Form):
    """Below the threshold: ask a person whether to go on."""

    ask: str = Field(description="The question.")
    choices: list[str] = key(["yes", "no"], "The answers that can be given.")


class ReactionForm(Form):
    """What to do below the threshold. One of `spawn`, `ask`, `proceed` and `fail`."""

    spawn: str | None = None
    agent: str | None = None
    max: Positive = 1
    ask: str | None = None
    choices: list[str] = Field(default=["yes", "no"])
    does: Literal["proceed", "fail"] | None = Field(default=None, alias="proceed or fail")


class TransitionForm(Form):
    """Where the run goes after a phase; the first that holds wins."""

    to: str = Field(description="A phase, or `end`.")
    when: When | None = key(None, "An expression that must hold.")


Transition = Annotated[TransitionForm, _keyed("to", str | TransitionForm)]
Reaction = Annotated[
    ReactionForm, _keyed("proceed or fail", Literal["proceed", "fail"] | SpawnForm | AskForm)
]
Specialist = Annotated[SpecialistForm, _keyed("task", str | None | SpecialistForm, empty=True)]


class LimitsForm(Form):
    """What language-model agents may use together, before a request or tool call is made."""

    requests: Count | None = key(None, "How often models may be asked.")
    tokens: Count | None = key(None, "How many tokens, in and out, they may use.")
    cost: NotNegative | None = key(None, "How much money they may cost.")
    tool_calls: Count | None = key(None, "How many tools they may call.")
    seconds: NotNegative | None = key(None, "How long it may be played.")
    on_limit: OnLimit = key("stop", "`stop`, `ask` a person, `proceed`, or ask a `cheaper` model.")


class PriceForm(Form):
    """What a million tokens of a model cost, in units of money."""

    input: NotNegative = Field(description="Of what is asked.")
    output: NotNegative = Field(description="Of what is answered.")
    cache_read: NotNegative | None = key(None, "Of what is asked and known already; by default as `input`.")
    cache_write: NotNegative | None = key(None, "Of what is put into the cache; by default as `input`.")


class PhaseForm(Form):
    """A node of the graph: specialists that work, optionally an evaluation, then a transition."""

    description: str = key("", "What it is for.")
    specialists: Table[Specialist] = key({}, "Who works here. A text is a task.")
    evaluate: Annotated[EvaluateForm | None, _keyed("agent", str | EvaluateForm)] = key(
        None, "The judgement at the end. A text is an agent."
    )
    on_low_confidence: Annotated[list[Reaction], short(as_list, Reaction | list[Reaction])] = key(
        [], "What to do, in order, below the threshold."
    )
    next: Annotated[list[Transition] | None, short(as_list, Transition | list[Transition])] = key(
        None, "Where the run goes; by default to the phase below, and at the last to `end`."
    )
    max_visits: Positive | None = key(None, "How often a run may come here.")
    timeout: Duration | None = key(None, "Of one visit.")
    limits: LimitsForm | None = key(None, "What models may use here, over all visits.")
    breakpoint: bool = key(False, "The run waits before it starts.")


class ConfidenceForm(Form):
    """When confidence is too low, which thresholds are watched, what a rollback costs."""

    threshold: Share | None = key(None, "Below it `on_low_confidence` comes into play.")
    watch: list[Share] = key([], "Crossing one of these, either way, is recorded.")
    rollback_factor: Share = key(0.9, "Confidence is multiplied by it at a rollback.")


class PolicyForm(Form):
    """What holds for every phase unless it says otherwise."""

    confidence: ConfidenceForm = ConfidenceForm()
    retry: RetryForm = RetryForm()
    recovery: RecoveryForm = RecoveryForm()
    concurrency: int = key(8, "Assignments of one run at once.", ge=1, le=1024)
    max_iterations: int = key(1000, "Phase visits of a run.", ge=1, le=1_000_000)
    grace: Duration = key(5_000_000, "Given to siblings that are cancelled.")
    limits: LimitsForm | None = key(None, "What models may use in the whole run.")


Input = Annotated[InputForm, short(short_input, str | float | bool | list[Any] | None | InputForm)]
Context = Annotated[ContextForm, _keyed("reducer", Reducer | None | ContextForm, empty=True)]


class WorkflowForm(Form):
    """A workflow: inputs, agents, phases, transitions and policies."""

    name: Name = Field(description="What the workflow is called; runs are named after it.")
    description: str = key("", "What it is for.")
    inputs: Table[Input] = key({}, "What is given when a run starts.")
    context: Table[Context] = key({}, "Names that results enter.")
    agents: Table[Any] = key({}, "Who can do tasks. A text is a file, e.g. `file.py:attribute`.")
    policy: PolicyForm = PolicyForm()
    prices: dict[str, PriceForm] = key({}, "What a million tokens of a model, `provider:name`, cost.")
    checkpoint: CheckpointForm = CheckpointForm()
    phases: Table[PhaseForm] = Field(description="The graph. The first phase is the entry.", min_length=1)
