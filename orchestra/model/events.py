"""Events: the closed union of things that can happen to a run. Only events change a state."""

from typing import Literal, TypeAlias, get_args

import attrs

from orchestra.ids import AgentId, Digest, EffectKey, Instant, PhaseId, RunId, TaskId
from orchestra.model.records import (
    Blocker,
    Decision,
    Effect,
    Environment,
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
from orchestra.model.state import WorkflowRef
from orchestra.model.value import Value


@attrs.frozen(kw_only=True)
class RunStarted:
    """Inputs were accepted and the run exists."""

    at: Instant
    run: RunId
    workflow: WorkflowRef
    inputs: Value | None = None
    thresholds: tuple[float, ...] = ()
    environment: Environment = Environment()
    kind: Literal["run_started"] = "run_started"


@attrs.frozen(kw_only=True)
class PhaseStarted:
    """A phase is about to be worked on."""

    at: Instant
    phase: PhaseId
    visit: int = 1  # how often it was come to, this time included; the state counts by itself
    kind: Literal["phase_started"] = "phase_started"


@attrs.frozen(kw_only=True)
class PhaseCompleted:
    """The current phase is done."""

    at: Instant
    phase: PhaseId
    deliverables: tuple[str, ...] = ()
    kind: Literal["phase_completed"] = "phase_completed"


@attrs.frozen(kw_only=True)
class RoundStarted:
    """An evaluation asked for another round: the specialists of the phase work again, with its feedback."""

    at: Instant
    phase: PhaseId
    round: int
    feedback: str = ""
    kind: Literal["round_started"] = "round_started"


@attrs.frozen(kw_only=True)
class Spent:
    """Calls, tokens, money and time were used."""

    at: Instant
    agent: AgentId | None = None
    api_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    elapsed_us: int = 0
    memory_peak_bytes: int = 0
    kind: Literal["spent"] = "spent"


@attrs.frozen(kw_only=True)
class SnapshotRequested:
    """A snapshot for its own sake: asked for, periodic, or because memory runs short."""

    at: Instant
    why: Literal["user_requested", "periodic", "memory_pressure_high"]
    note: str = ""
    kind: Literal["snapshot_requested"] = "snapshot_requested"


@attrs.frozen(kw_only=True)
class RunPaused:
    """The run stands still until somebody resumes it."""

    at: Instant
    reason: str = ""
    kind: Literal["run_paused"] = "run_paused"


@attrs.frozen(kw_only=True)
class RunWaiting:
    """Nothing can go on until something that is waited for is there."""

    at: Instant
    reason: str = ""
    kind: Literal["run_waiting"] = "run_waiting"


@attrs.frozen(kw_only=True)
class RunResumed:
    """The run goes on, after a pause or in a new process; what was running becomes pending."""

    at: Instant
    reason: str = ""
    recovered: bool = False  # after a crash; counts as one recovery
    live: bool = False  # in the same process, where what is running goes on
    kind: Literal["run_resumed"] = "run_resumed"


@attrs.frozen(kw_only=True)
class RolledBack:
    """The run went back to an earlier snapshot; the state is already the target's when this is applied."""

    at: Instant
    from_seq: int
    to_seq: int
    reason: str
    generation: int
    kept: tuple[TaskId, ...] = ()
    undone: tuple[TaskId, ...] = ()
    blamed: TaskId | None = None  # the assignment that failed; None: a person wanted it, or damage did
    confidence_factor: float = 1.0
    kind: Literal["rolled_back"] = "rolled_back"


@attrs.frozen(kw_only=True)
class Forked:
    """This run began at a snapshot of another; the state is already that snapshot's when this is applied."""

    at: Instant
    run: RunId
    from_run: RunId
    from_seq: int
    from_digest: Digest
    reason: str = ""
    kind: Literal["forked"] = "forked"


@attrs.frozen(kw_only=True)
class DefinitionAccepted:
    """The run goes on with a workflow that is not the one it was started with."""

    at: Instant
    workflow: WorkflowRef
    changes: str = ""
    kind: Literal["definition_accepted"] = "definition_accepted"


@attrs.frozen(kw_only=True)
class StateEdited:
    """A person set a value: an input, or what a context name holds."""

    at: Instant
    path: str  # e.g. context.findings
    inputs: Value | None = None  # all of them, as they are now
    context: ContextValue | None = None
    kind: Literal["state_edited"] = "state_edited"


@attrs.frozen(kw_only=True)
class RunEnded:
    """The run is over, or its process stops in order (`shutdown`, resumable)."""

    at: Instant
    outcome: Literal["completed", "failed", "cancelled", "shutdown"]
    reason: str = ""
    failure: Failure | None = None
    kind: Literal["run_ended"] = "run_ended"


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
