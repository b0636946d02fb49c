"""A workflow file as pydantic models: the keys, their types, their short forms, and what editors show."""

import json
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

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
)
from orchestra.config.settings.checkpoint_models import CheckpointForm
from orchestra.model.reducers import Reducer
from orchestra.model.workflow import InputType


class InputForm(Form):
    """A value that is given when a run starts. Without `default` and `required` it is required."""

    nulls: ClassVar[frozenset[str]] = frozenset({"default"})
    type: InputType = Field(
        default="any", description="What it must be; `path` must exist when the run starts."
    )
    default: Any = Field(default=None, description="Its value where none is given.")
    required: bool | None = Field(
        default=None, description="Whether it must be given; by default if it has no default."
    )
    choices: list[Any] = Field(default=[], description="The only values it may have.")
    secret: bool = Field(default=False, description="Redacted wherever it would be stored or shown.")
    help: str = Field(default="", description="What it is, for people.")


class ContextForm(Form):
    """A name that results enter through a reducer."""

    reducer: Reducer = Field(default="replace", description="How a result joins what is there already.")
    initial: Any = Field(default=None, description="What is there before the first result.")


class RetryForm(Form):
    """How an assignment is tried again."""

    nulls: ClassVar[frozenset[str]] = frozenset({"timeout"})
    attempts: Annotated[int, Field(ge=1, le=100)] = Field(default=3, description="Tries in all.")
    backoff: Duration = Field(
        default=1_000_000, description="The wait after the first failure; it doubles each time."
    )
    max_backoff: Duration = Field(default=60_000_000, description="The longest wait.")
    timeout: Duration | None = Field(default=300_000_000, description="Of one attempt; nothing: no limit.")


class SpecialistForm(Form):
    """An assignment of a phase, or one for each item of a list."""

    agent: str | None = Field(default=None, description="Who does it; by default the agent of the same name.")
    task: str = Field(default="", description="What to do; a template.")
    needs: Texts = Field(default=[], description="Specialists of this phase that must be done first.")
    when: When | None = Field(
        default=None, description="An expression; where it does not hold this one is skipped."
    )
    foreach: Annotated[
        str | None, BeforeValidator(lambda value: _literal(value), json_schema_input_type=str | list[Any])
    ] = Field(
        default=None,
        description="An expression that gives a list, or a list: one assignment for each `item`.",
    )
    into: str | None = Field(default=None, description="The context name its result enters.")
    outputs: Texts = Field(default=[], description="Files it promises to write.")
    retry: RetryForm | None = Field(default=None, description="What differs from the policy.")
    on_failure: Steps = Field(default=[], description="What to try, in order, when attempts are used up.")
    substitute: str | None = Field(default=None, description="The agent that takes over.")
    threshold: Share | None = Field(default=None, description="The confidence it must reach.")
    breakpoint: bool = Field(default=False, description="The run waits before it starts.")


class ReviseForm(Form):
    """Feedback to the specialists."""

    rounds: Annotated[int, Field(ge=0, le=100)] = Field(
        default=1, description="How often it may go back to them."
    )


class EvaluateForm(Form):
    """The evaluation at the end of a phase."""

    agent: str = Field(description="The evaluator.")
    task: str = Field(default="", description="What to judge; a template.")
    threshold: Share = Field(default=0.8, description="The score from which a result is accepted.")
    rubric: Annotated[
        dict[str, float],
        BeforeValidator(lambda value: _weights(value), json_schema_input_type=dict[str, float] | list[str]),
    ] = Field(default={}, description="What is scored, and how much each counts.")
    revise: Annotated[
        ReviseForm | None,
        BeforeValidator(
            lambda value: _keyed(value, "rounds", int), json_schema_input_type=ReviseForm | Count
        ),
    ] = Field(default=None, description="Whether feedback goes back to the specialists.")
    retry: RetryForm | None = Field(default=None, description="What differs from the policy.")


class SpawnForm(Form):
    """Below the threshold: start an additional specialist."""

    spawn: str = Field(
        description="The specialist whose task is done again, or an agent for the first one's."
    )
    agent: str | None = Field(default=None, description="Who does it instead.")
    max: Positive = Field(default=1, description="How often, in one visit of the phase.")


class AskForm(Form):
    """Below the threshold: ask a person whether to go on."""

    ask: str = Field(description="The question.")
    choices: list[str] = Field(default=["yes", "no"], description="The answers that can be given.")


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
    when: When | None = Field(default=None, description="An expression that must hold.")


Transition = Annotated[
    TransitionForm,
    BeforeValidator(lambda value: _keyed(value, "to", str), json_schema_input_type=str | TransitionForm),
]
Reaction = Annotated[
    ReactionForm,
    BeforeValidator(
        lambda value: _keyed(value, "proceed or fail", str),
        json_schema_input_type=Literal["proceed", "fail"] | SpawnForm | AskForm,
    ),
]
Specialist = Annotated[
    SpecialistForm,
    BeforeValidator(
        lambda value: {} if value is None else _keyed(value, "task", str),
        json_schema_input_type=str | None | SpecialistForm,
    ),
]


class PhaseForm(Form):
    """A node of the graph: specialists that work, optionally an evaluation, then a transition."""

    description: str = Field(default="", description="What it is for.")
    specialists: Table[Specialist] = Field(default={}, description="Who works here. A text is a task.")
    evaluate: Annotated[
        EvaluateForm | None,
        BeforeValidator(lambda value: _keyed(value, "agent", str), json_schema_input_type=str | EvaluateForm),
    ] = Field(default=None, description="The judgement at the end. A text is an agent.")
    on_low_confidence: Annotated[
        list[Reaction], BeforeValidator(as_list, json_schema_input_type=Reaction | list[Reaction])
    ] = Field(default=[], description="What to do, in order, below the threshold.")
    next: Annotated[
        list[Transition] | None,
        BeforeValidator(as_list, json_schema_input_type=Transition | list[Transition]),
    ] = Field(
        default=None,
        description="Where the run goes; by default to the phase below, and at the last to `end`.",
    )
    max_visits: Positive | None = Field(default=None, description="How often a run may come here.")
    timeout: Duration | None = Field(default=None, description="Of one visit.")
    breakpoint: bool = Field(default=False, description="The run waits before it starts.")


class ConfidenceForm(Form):
    """When confidence is too low, which thresholds are watched, what a rollback costs."""

    threshold: Share | None = Field(default=None, description="Below it `on_low_confidence` comes into play.")
    watch: list[Share] = Field(default=[], description="Crossing one of these, either way, is recorded.")
    rollback_factor: Share = Field(default=0.9, description="Confidence is multiplied by it at a rollback.")


class RecoveryForm(Form):
    """What happens after crashes, and after failures that restarts did not help."""

    auto: bool = Field(
        default=True, description="`orchestra run` first resumes incomplete runs of this workflow."
    )
    max_recoveries: Count = Field(default=3, description="In one run; then it is parked as failed.")
    timeout: Duration = Field(default=300_000_000, description="Of one recovery.")
    fallback_to_previous: bool = Field(
        default=True, description="A damaged head: go on from the newest whole snapshot."
    )
    on_failure: Steps = Field(default=["restart", "rollback", "fail"], description="What to try, in order.")


class PolicyForm(Form):
    """What holds for every phase unless it says otherwise."""

    confidence: ConfidenceForm = ConfidenceForm()
    retry: RetryForm = RetryForm()
    recovery: RecoveryForm = RecoveryForm()
    concurrency: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=8, description="Assignments of one run at once."
    )
    max_iterations: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1000, description="Phase visits of a run."
    )
    grace: Duration = Field(default=5_000_000, description="Given to siblings that are cancelled.")


Input = Annotated[
    InputForm,
    BeforeValidator(
        lambda value: _short_input(value),
        json_schema_input_type=str | float | bool | list[Any] | None | InputForm,
    ),
]
Context = Annotated[
    ContextForm,
    BeforeValidator(
        lambda value: {} if value is None else _keyed(value, "reducer", str),
        json_schema_input_type=Reducer | None | ContextForm,
    ),
]


class WorkflowForm(Form):
    """A workflow: inputs, agents, phases, transitions and policies."""

    name: Name = Field(description="What the workflow is called; runs are named after it.")
    description: str = Field(default="", description="What it is for.")
    inputs: Table[Input] = Field(default={}, description="What is given when a run starts.")
    context: Table[Context] = Field(default={}, description="Names that results enter.")
    agents: Table[Any] = Field(
        default={}, description="Who can do tasks. A text is a file, e.g. `file.py:attribute`."
    )
    policy: PolicyForm = PolicyForm()
    checkpoint: CheckpointForm = CheckpointForm()
    phases: Table[PhaseForm] = Field(description="The graph. The first phase is the entry.", min_length=1)


_TYPES: dict[type, InputType] = {bool: "boolean", int: "integer", float: "number", str: "text", list: "list"}


def _keyed(value: Any, key: str, kind: type) -> Any:
    """A short form: the value of the one key that matters."""
    return {key: value} if type(value) is kind else value


def _short_input(value: Any) -> Any:
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
            sentence = f"a list that is written out cannot hold {value}"
            raise PydanticCustomError("said", "{sentence}", {"sentence": sentence})
        case _:
            return json.dumps(value, ensure_ascii=False)


def _weights(value: Any) -> Any:
    """Names alone count the same."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return dict.fromkeys(value, 1.0)
    return value
