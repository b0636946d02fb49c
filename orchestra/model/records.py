"""The parts of a state: what is known of agents, tasks, decisions, messages, outputs and waits.

All are frozen values. Where the source documents name a field differently, the comment says so.
"""

from typing import Final, Literal, TypeAlias

import attrs

from orchestra.ids import AgentId, Digest, EffectKey, Instant, PhaseId, TaskId
from orchestra.model.tree import Vec
from orchestra.model.value import Value
from orchestra.model.workflow import LimitName, OnLimit

Role: TypeAlias = Literal["atlas", "mercury", "apollo"]
AgentStatus: TypeAlias = Literal[
    "idle", "launched", "running", "waiting", "paused",
    "completed", "failed", "skipped", "retired", "abandoned",
]  # fmt: skip
TaskStatus: TypeAlias = Literal[
    "pending", "running", "completed", "failed", "skipped", "retired", "abandoned"
]
MessageRole: TypeAlias = Literal["user", "assistant", "system", "tool"]
MessageStatus: TypeAlias = Literal["streaming", "complete", "interrupted", "error"]
ToolStatus: TypeAlias = Literal["waiting", "started", "done", "failed", "refused"]
PartKind: TypeAlias = Literal["text", "reasoning", "answer", "tool_call", "tool_result", "other"]
VerdictKind: TypeAlias = Literal["accept", "revise", "reject"]
WaitKind: TypeAlias = Literal["question", "dependency", "rate_limit", "pause", "breakpoint", "timer"]
WaitStatus: TypeAlias = Literal["open", "closed"]
EffectStatus: TypeAlias = Literal["intended", "done", "failed", "undone", "unknown"]


@attrs.frozen(kw_only=True)
class Failure:
    """One thing that went wrong, with what is needed to understand it."""

    error: str  # the type of the error
    message: str
    at: Instant
    stack: str = ""
    recoverable: bool = True
    details: Value | None = None


@attrs.frozen(kw_only=True)
class Blocker:
    """Something that keeps an agent from going on."""

    by: str  # also known as blockedBy
    reason: str  # also known as blockedReason
    at: Instant


@attrs.frozen(kw_only=True)
class ConfidenceSample:
    """A confidence that was reported, and by whom."""

    value: float
    agent: AgentId
    at: Instant


@attrs.frozen(kw_only=True)
class Confidence:
    """How sure the run is: overall, its history and the thresholds being watched."""

    overall: float | None = None
    thresholds: tuple[float, ...] = ()
    history: Vec[ConfidenceSample] = Vec()


@attrs.frozen(kw_only=True)
class AgentState:
    """What is known of one agent of the cast."""

    role: Role  # also known as agentType
    status: AgentStatus = "idle"
    phase: PhaseId | None = None  # also known as currentPhase
    step: str | None = None  # also known as currentStep
    step_number: int = 0
    max_steps: int | None = None
    progress: float = 0.0  # 0 to 1
    tokens: int = 0  # also known as tokensUsed
    confidence: float | None = None
    history: Vec[ConfidenceSample] = Vec()
    blockers: tuple[Blocker, ...] = ()
    private: Value | None = None  # also known as internalState
    partial: str = ""  # partial output while it works; also known as textCollected
    task: TaskId | None = None
    attempts: int = 0
    last_decision: str | None = None
    output: str | None = None  # also known as output_ref
    model: str | None = None
    message: str | None = None  # that streams
    updated_at: Instant = Instant(0)  # also known as lastUpdate


@attrs.frozen(kw_only=True)
class Task:
    """An assignment: an agent with a task inside one visit of a phase."""

    agent: AgentId
    phase: PhaseId
    visit: int = 1
    description: str = ""
    status: TaskStatus = "pending"
    effect_key: EffectKey | None = None
    key: Digest | None = None  # digest of agent, task, inputs, visit, round and feedback
    by: AgentId | None = None  # the agent of the workflow that does it
    call: str | None = None  # the tool call that asks for it, if it is an errand
    round: int = 1
    attempts: int = 0
    failures: int = 0  # attempts that failed, without those that were interrupted
    result: Value | None = None
    confidence: float | None = None
    failure: Failure | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None

    @property
    def duration_us(self) -> int | None:
        """How long it took, in microseconds, once it is over."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at


@attrs.frozen(kw_only=True)
class Decision:
    """A choice, why it was made and what else was considered."""

    at: Instant
    agent: AgentId
    kind: str  # e.g. workflow_adjustment
    description: str
    rationale: str = ""
    confidence: float | None = None
    alternatives: tuple[str, ...] = ()  # also known as alternatives_considered
    details: Value | None = None
    effect_key: EffectKey | None = None  # of the assignment during which an agent made it


WHOLE: Final = "whole"
"""Under which the data of a part has its text, when that is too long to stand in a state."""


@attrs.frozen(kw_only=True)
class Part:
    """One piece of a message."""

    kind: PartKind
    text: str = ""
    data: Value | None = None  # the tool call or its result


@attrs.frozen(kw_only=True)
class TokenPrice:
    """What a million tokens cost when a request was made, in millionths of the currency unit."""

    input: int
    output: int
    cache_read: int | None = None  # None: as other input
    cache_write: int | None = None


@attrs.frozen(kw_only=True)
class Generation:
    """One request to a language model: what was asked, who answered, and what that used."""

    model: str  # that answered, as provider:name
    asked: Digest | None = None  # of instructions and messages: tells whether the same would be asked again
    settings: Value | None = None  # temperature, limits and whatever else was asked for
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0  # of tokens_in
    cache_write: int = 0  # of tokens_in
    cost_micros: int | None = None  # None: the model has no price that is known
    price: TokenPrice | None = None  # that it was counted with
    most_tokens: int = 0  # that it may use, while it is under way
    most_micros: int | None = None  # that it may cost, while it is under way
    latency_us: int = 0
    finish: str = ""  # why the model stopped
    provider: Value | None = None  # what the provider says beside: its ids, for example


@attrs.frozen(kw_only=True)
class Message:
    """A message between people, agents and tools; it may still be streaming."""

    role: MessageRole
    agent: AgentId | None = None
    task: TaskId | None = None  # the assignment in whose conversation it stands
    round: int = 1
    parts: tuple[Part, ...] = ()
    status: MessageStatus = "complete"
    step_number: int = 0
    model: str | None = None
    max_steps: int | None = None
    generation: Generation | None = None
    stands_for: tuple[str, ...] = ()  # a summary: the messages that the model no longer sees because of it
    created_at: Instant
    updated_at: Instant
    completed_at: Instant | None = None


@attrs.frozen(kw_only=True)
class ToolCall:
    """A tool that a language model called: recorded before it runs and after."""

    tool: str
    agent: AgentId | None = None
    task: TaskId | None = None
    message: str = ""  # in which the model asked for it
    arguments: Value | None = None
    asked: Digest | None = None  # of tool and arguments, as the model gave them
    risky: bool = False
    status: ToolStatus = "started"
    attempts: int = 0  # how often it was begun
    result: Value | None = None
    error: str = ""
    started_at: Instant | None = None
    ended_at: Instant | None = None


@attrs.frozen(kw_only=True)
class Output:
    """A reference to stored content that the run produced."""

    digest: Digest
    media_type: str
    size: int
    content: Value | None = None  # its bytes, unless they are too many to be kept in the store
    agent: AgentId | None = None
    task: TaskId | None = None
    at: Instant


@attrs.frozen(kw_only=True)
class Score:
    """What an evaluator gave for one criterion."""

    criterion: str
    score: float
    weight: float = 1.0
    rationale: str = ""


@attrs.frozen(kw_only=True)
class Issue:
    """Something an evaluator found wanting."""

    description: str
    severity: Literal["low", "medium", "high"] = "medium"
    where: str | None = None


@attrs.frozen(kw_only=True)
class Verdict:
    """What an evaluation says."""

    kind: VerdictKind
    score: float
    feedback: str = ""


@attrs.frozen(kw_only=True)
class Iteration:
    """One finished round of an evaluation."""

    round: int
    verdict: Verdict
    at: Instant


@attrs.frozen(kw_only=True)
class Evaluation:
    """An evaluation as far as it got: scores per criterion are kept one by one."""

    agent: AgentId
    phase: PhaseId
    visit: int = 1
    round: int = 1
    judged: Digest | None = None  # of what the scores are about
    scores: tuple[Score, ...] = ()
    issues: tuple[Issue, ...] = ()
    feedback: str = ""
    verdict: Verdict | None = None
    iterations: tuple[Iteration, ...] = ()


@attrs.frozen(kw_only=True)
class Wait:
    """Something the run waits for: a person, a key, a provider, a timer."""

    kind: WaitKind
    status: WaitStatus = "open"
    agent: AgentId | None = None
    task: TaskId | None = None
    text: str = ""  # the question, the name of the dependency, the reason of the pause
    choices: tuple[str, ...] = ()
    details: Value | None = None
    until: Instant | None = None
    opened_at: Instant
    closed_at: Instant | None = None
    answer: Value | None = None


@attrs.frozen(kw_only=True)
class Effect:
    """Something done to the outside world, recorded before and after."""

    name: str
    task: TaskId
    status: EffectStatus = "intended"
    risky: bool = False
    intent: Value | None = None
    outcome: Value | None = None
    intended_at: Instant
    settled_at: Instant | None = None


@attrs.frozen(kw_only=True)
class RollbackRecord:
    """That the run went back, from where to where and why."""

    at: Instant
    from_seq: int
    to_seq: int
    reason: str
    generation: int
    kept: tuple[TaskId, ...] = ()
    undone: tuple[TaskId, ...] = ()
    blamed: TaskId | None = None  # the assignment that failed


@attrs.frozen(kw_only=True)
class Metrics:
    """What the run has spent; never rolled back. A fork counts anew."""

    elapsed_us: int = 0  # also known as elapsed_time, in seconds
    api_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tool_calls: int = 0
    cost_micros: int = 0  # millionths of the currency unit
    memory_peak_bytes: int = 0
    recoveries: int = 0
    rollbacks: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out together; also known as tokens_used."""
        return self.tokens_in + self.tokens_out


@attrs.frozen(kw_only=True)
class Crossed:
    """A limit that would have been passed, and what was decided about it."""

    limit: LimitName
    allowed: float
    course: OnLimit


@attrs.frozen(kw_only=True)
class Account:
    """What was used in a phase over all its visits, and the limits decided about; never rolled back."""

    requests: int = 0
    tokens: int = 0
    cost_micros: int = 0
    tool_calls: int = 0
    elapsed_us: int = 0
    crossed: tuple[Crossed, ...] = ()


@attrs.frozen(kw_only=True)
class Environment:
    """Facts about where the run is executed."""

    version: str = ""  # of orchestra
    python: str = ""
    platform: str = ""
    working_dir: str = ""
    git_commit: str | None = None
