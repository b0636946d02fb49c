"""Events: the closed union of things that can happen to a run. Only events change a state."""

from typing import Final, Literal, TypeAlias, get_args

import attrs

from orchestra.ids import AgentId, Digest, EffectKey, Instant, PhaseId, RunId, TaskId
from orchestra.model import records as rec
from orchestra.model.reducers import ContextValue
from orchestra.model.state import WorkflowRef
from orchestra.model.value import Value
from orchestra.model.workflow import LimitName, OnLimit


@attrs.frozen(kw_only=True)
class Happening:
    """What every event has."""

    at: Instant


@attrs.frozen(kw_only=True)
class RunStarted(Happening):
    """Inputs were accepted and the run exists."""

    run: RunId
    workflow: WorkflowRef
    inputs: Value | None = None
    thresholds: tuple[float, ...] = ()
    environment: rec.Environment = rec.Environment()
    kind: Literal["run_started"] = "run_started"


@attrs.frozen(kw_only=True)
class PhaseStarted(Happening):
    """A phase is about to be worked on."""

    phase: PhaseId
    visit: int = 1  # how often it was come to, this time included; the state counts by itself
    kind: Literal["phase_started"] = "phase_started"


@attrs.frozen(kw_only=True)
class PhaseCompleted(Happening):
    """The current phase is done."""

    phase: PhaseId
    deliverables: tuple[str, ...] = ()
    kind: Literal["phase_completed"] = "phase_completed"


@attrs.frozen(kw_only=True)
class RoundStarted(Happening):
    """An evaluation asked for another round: the specialists of the phase work again, with its feedback."""

    phase: PhaseId
    round: int
    feedback: str = ""
    kind: Literal["round_started"] = "round_started"


@attrs.frozen(kw_only=True)
class Spent(Happening):
    """Calls, tokens, money and time were used."""

    agent: AgentId | None = None
    api_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tool_calls: int = 0
    cost_micros: int = 0
    elapsed_us: int = 0
    memory_peak_bytes: int = 0
    phase: PhaseId | None = None  # whose spending it is, too
    kind: Literal["spent"] = "spent"


@attrs.frozen(kw_only=True)
class LimitCrossed(Happening):
    """A limit of a phase or of the run would be passed, and it was decided what is done about it."""

    limit: LimitName
    allowed: float
    course: OnLimit
    reached: float | None = None  # None: nobody knows, as a model has no price
    phase: PhaseId | None = None  # None: it is a limit of the run
    kind: Literal["limit_crossed"] = "limit_crossed"


@attrs.frozen(kw_only=True)
class SnapshotRequested(Happening):
    """A snapshot for its own sake: asked for, periodic, or because memory runs short."""

    why: Literal["user_requested", "periodic", "memory_pressure_high"]
    note: str = ""
    kind: Literal["snapshot_requested"] = "snapshot_requested"


@attrs.frozen(kw_only=True)
class RunPaused(Happening):
    """The run stands still until somebody resumes it."""

    reason: str = ""
    kind: Literal["run_paused"] = "run_paused"


@attrs.frozen(kw_only=True)
class RunWaiting(Happening):
    """Nothing can go on until something that is waited for is there."""

    reason: str = ""
    kind: Literal["run_waiting"] = "run_waiting"


@attrs.frozen(kw_only=True)
class RunResumed(Happening):
    """The run goes on, after a pause or in a new process; what was running becomes pending."""

    reason: str = ""
    recovered: bool = False  # after a crash; counts as one recovery
    live: bool = False  # in the same process, where what is running goes on
    kind: Literal["run_resumed"] = "run_resumed"


@attrs.frozen(kw_only=True)
class RolledBack(Happening):
    """The run went back to an earlier snapshot; the state is already the target's when this is applied."""

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
class Forked(Happening):
    """This run began at a snapshot of another; the state is already that snapshot's when this is applied."""

    run: RunId
    from_run: RunId
    from_seq: int
    from_digest: Digest
    reason: str = ""
    kind: Literal["forked"] = "forked"


@attrs.frozen(kw_only=True)
class DefinitionAccepted(Happening):
    """The run goes on with a workflow that is not the one it was started with."""

    workflow: WorkflowRef
    changes: str = ""
    kind: Literal["definition_accepted"] = "definition_accepted"


CONVERSATION_PATHS: Final = ("messages[", "tool_calls[")
"""How the path of an edit begins that sets something in a conversation."""


@attrs.frozen(kw_only=True)
class StateEdited(Happening):
    """A person set a value: an input, what a context name holds, or, told by a second event, a message."""

    path: str  # e.g. context.findings
    inputs: Value | None = None  # all of them, as they are now
    context: ContextValue | None = None
    kind: Literal["state_edited"] = "state_edited"


@attrs.frozen(kw_only=True)
class RunEnded(Happening):
    """The run is over, or its process stops in order (`shutdown`, resumable)."""

    outcome: Literal["completed", "failed", "cancelled", "shutdown"]
    reason: str = ""
    failure: rec.Failure | None = None
    kind: Literal["run_ended"] = "run_ended"


@attrs.frozen(kw_only=True)
class TaskPlanned(Happening):
    """An assignment exists; nobody works on it yet."""

    task: TaskId
    agent: AgentId
    phase: PhaseId
    visit: int = 1
    description: str = ""
    effect_key: EffectKey | None = None
    key: Digest | None = None
    by: AgentId | None = None
    round: int = 1
    call: str | None = None  # of an errand: the tool call that asks for it
    kind: Literal["task_planned"] = "task_planned"


@attrs.frozen(kw_only=True)
class AgentLaunched(Happening):
    """The intent to start an attempt at a task."""

    agent: AgentId
    task: TaskId
    attempt: int = 1
    role: rec.Role = "mercury"
    model: str | None = None
    max_steps: int | None = None
    kind: Literal["agent_launched"] = "agent_launched"


@attrs.frozen(kw_only=True)
class MilestoneReached(Happening):
    """An agent saved its progress."""

    agent: AgentId
    progress: float | None = None
    step: str | None = None
    step_number: int | None = None
    private: Value | None = None
    blockers: tuple[rec.Blocker, ...] | None = None
    kind: Literal["milestone_reached"] = "milestone_reached"


@attrs.frozen(kw_only=True)
class TextEmitted(Happening):
    """An agent streamed some text."""

    agent: AgentId
    text: str
    kind: Literal["text_emitted"] = "text_emitted"


@attrs.frozen(kw_only=True)
class TaskCompleted(Happening):
    """A result was accepted."""

    task: TaskId
    result: Value | None = None
    confidence: float | None = None
    output: str | None = None
    kind: Literal["task_completed"] = "task_completed"


@attrs.frozen(kw_only=True)
class TaskFailed(Happening):
    """An attempt at a task failed."""

    task: TaskId
    failure: rec.Failure
    final: bool = False  # no further attempt will be made
    kind: Literal["task_failed"] = "task_failed"


@attrs.frozen(kw_only=True)
class TaskRetired(Happening):
    """A task will not be finished; its outcome says why, and is the status of the task and its agent."""

    task: TaskId
    outcome: Literal["skipped", "retired", "abandoned"]
    reason: str = ""
    kind: Literal["task_retired"] = "task_retired"


@attrs.frozen(kw_only=True)
class DecisionMade(Happening):
    """Atlas or an agent chose something."""

    decision: rec.Decision
    kind: Literal["decision_made"] = "decision_made"


@attrs.frozen(kw_only=True)
class ConfidenceReported(Happening):
    """An agent said how sure it is, or the overall confidence was worked out anew."""

    value: float
    agent: AgentId | None = None  # None: the overall confidence
    kind: Literal["confidence_reported"] = "confidence_reported"


@attrs.frozen(kw_only=True)
class MessagePosted(Happening):
    """A message began, or was changed as a whole."""

    message: str
    role: rec.MessageRole
    agent: AgentId | None = None
    task: TaskId | None = None
    round: int = 1
    parts: tuple[rec.Part, ...] = ()
    status: rec.MessageStatus = "complete"
    step_number: int = 0
    model: str | None = None
    max_steps: int | None = None
    generation: rec.Generation | None = None
    stands_for: tuple[str, ...] = ()
    kind: Literal["message_posted"] = "message_posted"


@attrs.frozen(kw_only=True)
class MessageStreamed(Happening):
    """A streaming message grew: text joins its last part if that is `of` this kind, else it is a part."""

    message: str
    text: str = ""
    of: rec.PartKind = "text"
    parts: tuple[rec.Part, ...] = ()
    status: rec.MessageStatus = "streaming"
    kind: Literal["message_streamed"] = "message_streamed"


@attrs.frozen(kw_only=True)
class ToolCallChanged(Happening):
    """A tool call waits for approval, began, or came to an end; the record is what is known of it now."""

    call: str
    record: rec.ToolCall
    kind: Literal["tool_call_changed"] = "tool_call_changed"


@attrs.frozen(kw_only=True)
class ContextContributed(Happening):
    """A result entered the context through its reducer."""

    name: str
    contribution: ContextValue
    agent: AgentId | None = None
    kind: Literal["context_contributed"] = "context_contributed"


@attrs.frozen(kw_only=True)
class OutputWritten(Happening):
    """An output was stored."""

    path: str
    output: rec.Output
    kind: Literal["output_written"] = "output_written"


@attrs.frozen(kw_only=True)
class CriterionScored(Happening):
    """An evaluator finished one criterion, and what it found on the way."""

    evaluation: str
    agent: AgentId
    phase: PhaseId
    score: rec.Score
    visit: int = 1
    round: int = 1
    judged: Digest | None = None
    issues: tuple[rec.Issue, ...] = ()
    feedback: str = ""
    kind: Literal["criterion_scored"] = "criterion_scored"


@attrs.frozen(kw_only=True)
class EvaluationCompleted(Happening):
    """A verdict is in."""

    evaluation: str
    agent: AgentId
    phase: PhaseId
    verdict: rec.Verdict
    visit: int = 1
    round: int = 1
    judged: Digest | None = None
    scores: tuple[rec.Score, ...] = ()
    issues: tuple[rec.Issue, ...] = ()
    kind: Literal["evaluation_completed"] = "evaluation_completed"


@attrs.frozen(kw_only=True)
class WaitOpened(Happening):
    """The run waits for something: a person, a key, a provider, a timer."""

    wait: str
    waits_for: rec.WaitKind
    text: str = ""
    agent: AgentId | None = None
    task: TaskId | None = None
    choices: tuple[str, ...] = ()
    details: Value | None = None
    until: Instant | None = None
    kind: Literal["wait_opened"] = "wait_opened"


@attrs.frozen(kw_only=True)
class WaitClosed(Happening):
    """What was waited for is there."""

    wait: str
    answer: Value | None = None
    kind: Literal["wait_closed"] = "wait_closed"


@attrs.frozen(kw_only=True)
class EffectIntended(Happening):
    """Something is about to be done to the outside world."""

    effect: str
    details: rec.Effect
    kind: Literal["effect_intended"] = "effect_intended"


@attrs.frozen(kw_only=True)
class EffectSettled(Happening):
    """It is known how an effect went."""

    effect: str
    status: Literal["done", "failed", "undone", "unknown"]
    outcome: Value | None = None
    kind: Literal["effect_settled"] = "effect_settled"


Event: TypeAlias = (
    RunStarted | PhaseStarted | PhaseCompleted | RoundStarted | TaskPlanned | AgentLaunched |
    MilestoneReached | TextEmitted | TaskCompleted | TaskFailed | TaskRetired | DecisionMade |
    ConfidenceReported | MessagePosted | MessageStreamed | ToolCallChanged | ContextContributed |
    OutputWritten |
    CriterionScored | EvaluationCompleted | WaitOpened | WaitClosed | EffectIntended | EffectSettled |
    Spent | LimitCrossed | SnapshotRequested | RunPaused | RunWaiting | RunResumed | RolledBack | Forked |
    DefinitionAccepted | StateEdited | RunEnded
)  # fmt: skip
EVENT_KINDS: tuple[str, ...] = tuple(attrs.fields(cls).kind.default for cls in get_args(Event))
