"""Events: the closed union of things that can happen to a run. Only events change a state.

Each has a literal `kind` and the instant it happened. Values that came from agents or people are frozen
before they get here. `orchestra.model.apply` says what each does to a state, `orchestra.model.headline` how
it is summed up in a snapshot's header.
"""

from typing import Literal, TypeAlias, get_args

import attrs

from orchestra.ids import AgentId, Digest, EffectKey, Instant, PhaseId, TaskId
from orchestra.model.parts import (
    Blocker,
    Decision,
    Effect,
    Failure,
    Issue,
    MessageRole,
    MessageStatus,
    Output,
    Part,
    Role,
    Score,
    Verdict,
    WaitKind,
)
from orchestra.model.reducers import ContextValue
from orchestra.model.run_events import (
    DefinitionAccepted,
    Forked,
    PhaseCompleted,
    PhaseStarted,
    RolledBack,
    RoundStarted,
    RunEnded,
    RunPaused,
    RunResumed,
    RunStarted,
    RunWaiting,
    SnapshotRequested,
    Spent,
    StateEdited,
)
from orchestra.model.value import Value


@attrs.frozen(kw_only=True)
class TaskPlanned:
    """An assignment exists; nobody works on it yet."""

    at: Instant
    task: TaskId
    agent: AgentId
    phase: PhaseId
    visit: int = 1
    description: str = ""
    effect_key: EffectKey | None = None
    key: Digest | None = None
    by: AgentId | None = None
    round: int = 1
    kind: Literal["task_planned"] = "task_planned"


@attrs.frozen(kw_only=True)
class AgentLaunched:
    """The intent to start an attempt at a task."""

    at: Instant
    agent: AgentId
    task: TaskId
    attempt: int = 1
    role: Role = "mercury"
    model: str | None = None
    max_steps: int | None = None
    kind: Literal["agent_launched"] = "agent_launched"


@attrs.frozen(kw_only=True)
class MilestoneReached:
    """An agent saved its progress."""

    at: Instant
    agent: AgentId
    progress: float | None = None
    step: str | None = None
    step_number: int | None = None
    private: Value | None = None
    blockers: tuple[Blocker, ...] | None = None
    kind: Literal["milestone_reached"] = "milestone_reached"


@attrs.frozen(kw_only=True)
class TextEmitted:
    """An agent streamed some text."""

    at: Instant
    agent: AgentId
    text: str
    kind: Literal["text_emitted"] = "text_emitted"


@attrs.frozen(kw_only=True)
class TaskCompleted:
    """A result was accepted."""

    at: Instant
    task: TaskId
    result: Value | None = None
    confidence: float | None = None
    output: str | None = None
    kind: Literal["task_completed"] = "task_completed"


@attrs.frozen(kw_only=True)
class TaskFailed:
    """An attempt at a task failed."""

    at: Instant
    task: TaskId
    failure: Failure
    final: bool = False  # no further attempt will be made
    kind: Literal["task_failed"] = "task_failed"


@attrs.frozen(kw_only=True)
class TaskRetired:
    """A task will not be finished; its outcome says why, and is the status of the task and its agent."""

    at: Instant
    task: TaskId
    outcome: Literal["skipped", "retired", "abandoned"]
    reason: str = ""
    kind: Literal["task_retired"] = "task_retired"


@attrs.frozen(kw_only=True)
class DecisionMade:
    """Atlas or an agent chose something."""

    at: Instant
    decision: Decision
    kind: Literal["decision_made"] = "decision_made"


@attrs.frozen(kw_only=True)
class ConfidenceReported:
    """An agent said how sure it is, or the overall confidence was worked out anew."""

    at: Instant
    value: float
    agent: AgentId | None = None  # None: the overall confidence
    kind: Literal["confidence_reported"] = "confidence_reported"


@attrs.frozen(kw_only=True)
class MessagePosted:
    """A message began, or was changed as a whole."""

    at: Instant
    message: str
    role: MessageRole
    agent: AgentId | None = None
    parts: tuple[Part, ...] = ()
    status: MessageStatus = "complete"
    step_number: int = 0
    model: str | None = None
    max_steps: int | None = None
    kind: Literal["message_posted"] = "message_posted"


@attrs.frozen(kw_only=True)
class MessageStreamed:
    """A streaming message grew: text joins its last text part, other parts are added."""

    at: Instant
    message: str
    text: str = ""
    parts: tuple[Part, ...] = ()
    status: MessageStatus = "streaming"
    kind: Literal["message_streamed"] = "message_streamed"


@attrs.frozen(kw_only=True)
class ContextContributed:
    """A result entered the context through its reducer."""

    at: Instant
    name: str
    contribution: ContextValue
    agent: AgentId | None = None
    kind: Literal["context_contributed"] = "context_contributed"


@attrs.frozen(kw_only=True)
class OutputWritten:
    """An output was stored."""

    at: Instant
    path: str
    output: Output
    kind: Literal["output_written"] = "output_written"


@attrs.frozen(kw_only=True)
class CriterionScored:
    """An evaluator finished one criterion, and what it found on the way."""

    at: Instant
    evaluation: str
    agent: AgentId
    phase: PhaseId
    score: Score
    visit: int = 1
    round: int = 1
    judged: Digest | None = None
    issues: tuple[Issue, ...] = ()
    feedback: str = ""
    kind: Literal["criterion_scored"] = "criterion_scored"


@attrs.frozen(kw_only=True)
class EvaluationCompleted:
    """A verdict is in."""

    at: Instant
    evaluation: str
    agent: AgentId
    phase: PhaseId
    verdict: Verdict
    visit: int = 1
    round: int = 1
    judged: Digest | None = None
    scores: tuple[Score, ...] = ()
    issues: tuple[Issue, ...] = ()
    kind: Literal["evaluation_completed"] = "evaluation_completed"


@attrs.frozen(kw_only=True)
class WaitOpened:
    """The run waits for something: a person, a key, a provider, a timer."""

    at: Instant
    wait: str
    waits_for: WaitKind
    text: str = ""
    agent: AgentId | None = None
    task: TaskId | None = None
    choices: tuple[str, ...] = ()
    details: Value | None = None
    until: Instant | None = None
    kind: Literal["wait_opened"] = "wait_opened"


@attrs.frozen(kw_only=True)
class WaitClosed:
    """What was waited for is there."""

    at: Instant
    wait: str
    answer: Value | None = None
    kind: Literal["wait_closed"] = "wait_closed"


@attrs.frozen(kw_only=True)
class EffectIntended:
    """Something is about to be done to the outside world."""

    at: Instant
    effect: str
    details: Effect
    kind: Literal["effect_intended"] = "effect_intended"


@attrs.frozen(kw_only=True)
class EffectSettled:
    """It is known how an effect went."""

    at: Instant
    effect: str
    status: Literal["done", "failed", "undone", "unknown"]
    outcome: Value | None = None
    kind: Literal["effect_settled"] = "effect_settled"


Event: TypeAlias = (
    RunStarted
    | PhaseStarted
    | PhaseCompleted
    | RoundStarted
    | TaskPlanned
    | AgentLaunched
    | MilestoneReached
    | TextEmitted
    | TaskCompleted
    | TaskFailed
    | TaskRetired
    | DecisionMade
    | ConfidenceReported
    | MessagePosted
    | MessageStreamed
    | ContextContributed
    | OutputWritten
    | CriterionScored
    | EvaluationCompleted
    | WaitOpened
    | WaitClosed
    | EffectIntended
    | EffectSettled
    | Spent
    | SnapshotRequested
    | RunPaused
    | RunWaiting
    | RunResumed
    | RolledBack
    | Forked
    | DefinitionAccepted
    | StateEdited
    | RunEnded
)

EVENT_KINDS: tuple[str, ...] = tuple(attrs.fields(cls).kind.default for cls in get_args(Event))

__all__ = [
    "EVENT_KINDS",
    "AgentLaunched",
    "ConfidenceReported",
    "ContextContributed",
    "CriterionScored",
    "DecisionMade",
    "DefinitionAccepted",
    "EffectIntended",
    "EffectSettled",
    "EvaluationCompleted",
    "Event",
    "Forked",
    "MessagePosted",
    "MessageStreamed",
    "MilestoneReached",
    "OutputWritten",
    "PhaseCompleted",
    "PhaseStarted",
    "RolledBack",
    "RoundStarted",
    "RunEnded",
    "RunPaused",
    "RunResumed",
    "RunStarted",
    "RunWaiting",
    "SnapshotRequested",
    "Spent",
    "StateEdited",
    "TaskCompleted",
    "TaskFailed",
    "TaskPlanned",
    "TaskRetired",
    "TextEmitted",
    "WaitClosed",
    "WaitOpened",
]
