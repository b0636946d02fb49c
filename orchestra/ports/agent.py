"""The agent port: what an agent is handed, what it may say while it works, and what it returns.

A *runner* runs one attempt at an assignment, wherever the agent's code lives: in the loop, in a thread, in a
process of its own, or in a program that talks JSON lines. What an agent says on the way is a *report*, which
the engine takes through the `Link`. All payloads here are plain data.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

import attrs

from orchestra.ids import AgentId, Digest, EffectKey, PhaseId, RunId, TaskId
from orchestra.model.records import MessageRole, MessageStatus, PartKind, Role, TokenPrice, ToolStatus
from orchestra.model.workflow import Agent


@attrs.frozen(kw_only=True)
class RubricLine:
    """What an evaluator is to score."""

    name: str
    weight: float = 1.0
    score: float | None = None  # known already: an interrupted evaluation goes on


@attrs.frozen(kw_only=True)
class ChatPart:
    """One piece of a message; `data` is what a tool call or a provider's own form has beside its text."""

    kind: PartKind
    text: str = ""
    data: Any = None


@attrs.frozen(kw_only=True)
class ChatGeneration:
    """One request to a language model, as `orchestra.model.records.Generation`."""

    model: str
    asked: Digest | None = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_micros: int | None = None
    price: TokenPrice | None = None
    most_tokens: int = 0
    most_micros: int | None = None
    latency_us: int = 0
    finish: str = ""
    provider: Mapping[str, Any] = attrs.field(factory=dict)


ChatPlace: TypeAlias = tuple[int, int]
"""Where a message stands in the conversations of an assignment: its round, and its number there."""


@attrs.frozen(kw_only=True)
class ChatMessage:
    """A message of an assignment's conversation."""

    number: int  # from 0, in the order in which they began
    role: MessageRole
    parts: tuple[ChatPart, ...] = ()
    status: MessageStatus = "complete"
    step: int = 0  # a model's answer: the how manieth request of its round it answers, from 1
    round: int = 1
    generation: ChatGeneration | None = None
    stands_for: tuple[ChatPlace, ...] = ()  # a summary: what the model no longer sees

    @property
    def place(self) -> ChatPlace:
        """Where it stands among the messages of all rounds."""
        return self.round, self.number


@attrs.frozen(kw_only=True)
class ChatCall:
    """A tool call of an assignment's conversation."""

    call: str  # the model's id for it
    tool: str
    message: int  # the number of the message that asks for it
    asked: Digest  # of tool and arguments, as the model gave them
    arguments: Any = None
    risky: bool = False
    status: ToolStatus = "started"
    attempts: int = 1
    result: Any = None
    error: str = ""


@attrs.frozen(kw_only=True)
class Assignment:
    """What an agent is handed."""

    run: RunId
    phase: PhaseId
    visit: int
    round: int
    task: TaskId
    name: str  # the specialist's id in its phase
    agent: AgentId  # under which the run knows it
    role: Role
    attempt: int
    effect_key: EffectKey
    description: str  # the task, rendered
    inputs: Mapping[str, Any]
    context: Mapping[str, Any]
    needs: Mapping[str, Any]  # results of what it needs, by the specialist's id
    settings: Mapping[str, Any]  # `with:` of the agent
    workspace: str  # a scratch folder of its own, which lasts over its attempts
    project: str  # the folder the run was started in
    item: Any = None  # of `foreach`
    index: int | None = None
    feedback: tuple[str, ...] = ()  # what evaluators said, oldest first
    private: Any = None  # what it saved last
    partial: str = ""  # text it streamed before it was interrupted
    progress: float = 0.0
    step: str | None = None
    recovered: bool = False  # it goes on: an earlier attempt was interrupted, failed or rolled back to
    outputs: tuple[str, ...] = ()  # files it promised
    prices: Mapping[str, Mapping[str, float]] = attrs.field(factory=dict)  # of models, by the workflow
    agents: Mapping[str, str] = attrs.field(factory=dict)  # that it may give errands to, and what each is for
    rubric: tuple[RubricLine, ...] = ()  # an evaluator's
    results: Mapping[str, Any] = attrs.field(factory=dict)  # an evaluator's: what it judges, by specialist
    resume: str = ""  # where an interrupted agent stood, in words; empty on a first attempt
    messages: tuple[ChatMessage, ...] = ()  # of its conversation so far
    calls: tuple[ChatCall, ...] = ()  # of tools, so far
    earlier_messages: tuple[ChatMessage, ...] = ()  # of the rounds before this one
    earlier_calls: tuple[ChatCall, ...] = ()


@attrs.frozen(kw_only=True)
class Result:
    """What an agent returns. A bare value stands for `Result(output=value)`."""

    output: Any = None
    confidence: float | None = None


@attrs.frozen(kw_only=True)
class Errand:
    """What came of an errand: what its agent returned, or why there is nothing."""

    output: Any = None
    confidence: float | None = None
    error: str = ""


@attrs.frozen(kw_only=True)
class Judgement:
    """What an evaluator returns; the verdict follows from the scores unless it is given."""

    scores: Mapping[str, float] = attrs.field(factory=dict)
    issues: tuple[Mapping[str, Any], ...] = ()  # description, severity, where
    feedback: str = ""
    verdict: Literal["accept", "revise", "reject"] | None = None
    confidence: float | None = None


# Reports. Those that are *called* are answered once they are durable; *sent* ones are not waited for.


@attrs.frozen(kw_only=True)
class Saved:
    """Called: a milestone."""

    private: Any = None
    progress: float | None = None
    step: str | None = None
    step_number: int | None = None
    blockers: tuple[Mapping[str, Any], ...] | None = None  # by, reason
    kind: Literal["saved"] = "saved"


@attrs.frozen(kw_only=True)
class Emitted:
    """Sent: some streamed text."""

    text: str
    kind: Literal["emitted"] = "emitted"


@attrs.frozen(kw_only=True)
class Decided:
    """Called: a decision of the agent's own."""

    description: str
    rationale: str = ""
    confidence: float | None = None
    alternatives: tuple[str, ...] = ()
    decision: str = "agent_decision"  # its kind
    details: Any = None
    kind: Literal["decided"] = "decided"


@attrs.frozen(kw_only=True)
class Confident:
    """Sent: how sure the agent is now."""

    value: float
    kind: Literal["confident"] = "confident"


EDITABLE: Final = "editable"
"""In the details of a question: what an answer may change, as `{"choice": …, NAME: …}`."""


EDITED: Final = "edited"
"""In the data of what a model is told: that a person wrote it, in the place of what stood there."""


@attrs.frozen(kw_only=True)
class Asked:
    """Called: a question to a person; answered with the answer, which may take days."""

    question: str
    choices: tuple[str, ...] = ()
    details: Any = None
    key: str = ""  # tells questions of one assignment apart; empty: by the text
    kind: Literal["asked"] = "asked"


@attrs.frozen(kw_only=True)
class Required:
    """Called: a key, file or tool must be there; answered with the value, which is never stored."""

    name: str
    reason: str = ""
    kind: Literal["required"] = "required"


@attrs.frozen(kw_only=True)
class Limited:
    """Called: a provider said wait; answered once that time is over. The wait is durable."""

    seconds: float
    reason: str = ""
    kind: Literal["limited"] = "limited"


@attrs.frozen(kw_only=True)
class EffectBegun:
    """Called before an effect; answered with `{"status": …, "outcome": …}` of an earlier attempt, or None."""

    name: str
    intent: Any = None
    risky: bool = False
    kind: Literal["effect_begun"] = "effect_begun"


@attrs.frozen(kw_only=True)
class EffectEnded:
    """Called after an effect."""

    name: str
    status: Literal["done", "failed", "unknown"]
    outcome: Any = None
    kind: Literal["effect_ended"] = "effect_ended"


@attrs.frozen(kw_only=True)
class Used:
    """Sent: calls, tokens and money that were used."""

    api_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    kind: Literal["used"] = "used"


@attrs.frozen(kw_only=True)
class Posted:
    """Called: messages that are new or changed, and what they used; answered with them without secrets."""

    messages: tuple[ChatMessage, ...]
    used: Used | None = None
    has_other: bool = False  # another model can be asked instead
    refused: bool = False  # in an answer: it is not on the record, and another model is to be asked
    kind: Literal["posted"] = "posted"


@attrs.frozen(kw_only=True)
class Streamed:
    """Sent: text that joins the message with this number, which streams."""

    number: int
    text: str
    of: PartKind = "text"
    kind: Literal["streamed"] = "streamed"


@attrs.frozen(kw_only=True)
class ToolReported:
    """Called: a tool call waits, began or ended; answered with it without secrets."""

    call: ChatCall
    kind: Literal["tool_reported"] = "tool_reported"


@attrs.frozen(kw_only=True)
class Delegated:
    """Called: another agent is to do an errand; answered with an `Errand` once it is over.

    The same call with the same task is the same errand: it is not done twice.
    """

    call: str  # the tool call that asks for it
    agent: AgentId
    task: str
    kind: Literal["delegated"] = "delegated"


@attrs.frozen(kw_only=True)
class Secrets:
    """Sent: texts that must neither be stored nor shown from now on."""

    texts: tuple[str, ...]
    kind: Literal["secrets"] = "secrets"


@attrs.frozen(kw_only=True)
class Scored:
    """Called: an evaluator finished one criterion."""

    criterion: str
    score: float
    rationale: str = ""
    issues: tuple[Mapping[str, Any], ...] = ()
    feedback: str = ""
    kind: Literal["scored"] = "scored"


@attrs.frozen(kw_only=True)
class Wrote:
    """Called: an output; answered with the path under which people find it."""

    path: str  # relative, as in `outputs:`
    content: bytes
    media_type: str = ""  # empty: by the name
    kind: Literal["wrote"] = "wrote"


Report: TypeAlias = (
    Saved | Emitted | Decided | Confident | Asked | Required
    | Limited | EffectBegun | EffectEnded | Used | Posted | Streamed
    | ToolReported | Delegated | Secrets | Scored | Wrote
)  # fmt: skip


ProgressCallback: TypeAlias = Callable[[], Saved | None]
"""Asks an agent for its progress: what to save now, or None."""


class Link(Protocol):
    """How an agent's runner reaches the engine. Used on the loop's thread."""

    def send(self, report: Report, /) -> None:
        """Hand a report in without waiting for it."""

    async def call(self, report: Report, /) -> Any:
        """Hand a report in and wait for its answer."""

    def on_save(self, ask: ProgressCallback, /) -> None:
        """Have the agent asked for its progress when a periodic snapshot is due."""


Ended: TypeAlias = Callable[[Result | Judgement | BaseException | None], None]
"""Hears what came of an attempt: a result, how it failed, or None when it stopped because it was asked to."""
Stop: TypeAlias = Callable[[], None]
"""Asks an agent to stop. Idempotent."""


class Runner(Protocol):
    """Runs attempts."""

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        """Begin an attempt; the way to stop it is returned. Used on the loop's thread.

        `ended` is called once, on the loop's thread: with the result, with `AgentFailed` and all that is
        known, with what kept the engine from taking a report, or with None once the agent has stopped as it
        was asked to. An agent that does not stop is given up within a bounded time (`AgentAbandoned`).
        """
