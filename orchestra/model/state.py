"""The state: everything known about a run at one moment.

A snapshot is the state, there is no second shape beside it. It never changes: `apply` makes the next one
from an event.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, Self, TypeAlias

import attrs

from orchestra.ids import Digest, Instant, PhaseId, RunId
from orchestra.model import records as rec
from orchestra.model.frozen import evolve
from orchestra.model.reducers import ContextValue
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

RunStatus: TypeAlias = Literal["pending", "running", "waiting", "paused", "completed", "failed", "cancelled"]
TERMINAL: frozenset[RunStatus] = frozenset({"completed", "cancelled"})  # statuses that a run never leaves
ENDED: frozenset[RunStatus] = TERMINAL | {"failed"}
"""Statuses in which nothing is left to be done; a failed run can still be resumed by hand."""
_NAMED: Final = 5
WHOLE_RUN: Final = "*"
"""Under which the spending of the whole run stands beside that of phases; no phase can have this name."""


@attrs.frozen(kw_only=True)
class WorkflowRef:
    """Which definition the run executes."""

    name: str
    digest: Digest | None = None
    definition: Value | None = None  # the whole of it, as plain data
    file: str | None = None  # where it was read from
    models: tuple[str, ...] = ()  # that its language-model agents ask in this run instead of their own
    break_at: tuple[PhaseId, ...] = ()  # phases before which this run waits, beside those the definition says


@attrs.frozen(kw_only=True)
class Cursor:
    """Where the run stands in its workflow."""

    phase: PhaseId | None = None  # also known as checkpointNode
    visit: int = 0
    ordinal: int = 0  # how many phase visits there were; the phase number N in names
    round: int = 0


@attrs.frozen(kw_only=True)
class Visit:
    """One visit of a phase."""

    phase: PhaseId
    visit: int
    started_at: Instant
    completed_at: Instant | None = None


@attrs.frozen(kw_only=True)
class Origin:
    """The snapshot a forked run began at."""

    run: RunId
    seq: int
    digest: Digest


@attrs.frozen(kw_only=True, slots=False)  # there are few of them, and a dictionary is copied in one go
class State:
    """Everything known about a run at one moment."""

    run: RunId
    family: RunId
    workflow: WorkflowRef
    origin: Origin | None = None
    status: RunStatus = "pending"
    generation: int = 0
    created_at: Instant
    updated_at: Instant
    cursor: Cursor = Cursor()
    failure: rec.Failure | None = None
    inputs: Value | None = None
    metrics: rec.Metrics = rec.Metrics()
    completed_tasks: int = 0
    open_failures: int = 0  # tasks whose last attempt failed and that are not settled since
    confidence: rec.Confidence = attrs.field(factory=rec.Confidence)
    environment: rec.Environment = rec.Environment()
    path: Vec[Visit] = attrs.field(factory=Vec)
    visits: Table[int] = attrs.field(factory=Table)
    agents: Table[rec.AgentState] = attrs.field(factory=Table)
    tasks: Table[rec.Task] = attrs.field(factory=Table)
    decisions: Vec[rec.Decision] = attrs.field(factory=Vec)
    messages: Table[rec.Message] = attrs.field(factory=Table)
    tool_calls: Table[rec.ToolCall] = attrs.field(factory=Table)
    context: Table[ContextValue] = attrs.field(factory=Table)
    outputs: Table[rec.Output] = attrs.field(factory=Table)
    evaluations: Table[rec.Evaluation] = attrs.field(factory=Table)
    waits: Table[rec.Wait] = attrs.field(factory=Table)
    effects: Table[rec.Effect] = attrs.field(factory=Table)
    rollbacks: Vec[rec.RollbackRecord] = attrs.field(factory=Vec)
    spending: Table[rec.Account] = attrs.field(factory=Table)

    @property
    def has_open_failure(self) -> bool:
        """Whether something failed that has not been dealt with."""
        return self.open_failures > 0 or self.failure is not None

    @property
    def skipped_tasks(self) -> tuple[str, ...]:
        """The assignments that failed and that the run went on without, in order."""
        return skipped_tasks(self.tasks, self.completed_tasks)

    @property
    def is_resumable(self) -> bool:
        return self.status not in TERMINAL


class Draft(State):
    """A state in the making, which the events of one turn change in place: it reads like a state.

    It is not stored, compared or kept: `freeze` makes what is. So a turn of a dozen events makes one state at
    its end instead of one for each event.
    """

    @classmethod
    def of(cls, state: State) -> Self:
        made = object.__new__(cls)
        made.__dict__.update(state.__dict__)
        return made

    def change(self, **changes: Any) -> None:
        self.__dict__.update(changes)

    def change_agent(self, agent: str | None, **changes: Any) -> None:
        """Hold other values in the named fields of an agent, if it is known."""
        held = self.agents.get(agent) if agent is not None else None
        if agent is not None and held is not None:
            self.__dict__["agents"] = self.agents.set(agent, evolve(held, **changes))

    def freeze(self) -> State:
        made = object.__new__(State)
        made.__dict__.update(self.__dict__)
        return made


def skipped_tasks(tasks: Table[Any], completed: int) -> tuple[str, ...]:
    """The tasks that failed and were skipped then, of a state or of its document; `completed` are done."""
    if completed == len(tasks):  # the usual case, and there may be many
        return ()
    return tuple(name for name, task in tasks.items() if _is_skipped(task))


def _is_skipped(task: rec.Task | dict[str, Any]) -> bool:
    held = task if isinstance(task, dict) else {"status": task.status, "failure": task.failure}
    return held.get("status") == "skipped" and held.get("failure") is not None


def skipped_text(tasks: Sequence[str]) -> str:
    """Whom a run went on without, e.g. `1 skipped: security`; empty for nobody."""
    if not tasks:
        return ""
    names = [task.rpartition("/")[2] for task in tasks[:_NAMED]]
    more = [f"{len(tasks) - _NAMED} more"] if len(tasks) > _NAMED else []
    return f"{len(tasks)} skipped: {', '.join([*names, *more])}"
