"""Events about the run itself: its life, its phases and what it spends. See `orchestra.model.events`."""

from typing import Literal

import attrs

from orchestra.ids import AgentId, Digest, Instant, PhaseId, RunId, TaskId
from orchestra.model.parts import Environment, Failure
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
