"""The shapes of answers about runs: the list of them, one in full, what it waits for, its files and forks."""

from typing import Any, Literal

from pydantic import with_config
from typing_extensions import TypedDict

from orchestra.web.shapes.common import CLOSED, PlaceOut, ProblemOut


@with_config(CLOSED)
class InfoOut(TypedDict):
    """What this browser looks at, and what it may do."""

    version: str
    store: str
    durable: bool
    read_only: bool
    actions: bool
    now: int
    triggers: list[str]
    bundle: bool


class DoneOut(TypedDict):
    """How many of all."""

    done: int
    total: int


class RunOut(TypedDict):
    """A run in a line."""

    run: str
    family: str
    workflow: str
    status: str
    standing: str
    phase: str | None
    snapshots: int
    owned: bool
    created_at: int
    updated_at: int
    confidence: float | None
    spark: list[float | None]
    tasks: DoneOut
    tokens: int
    cost_micros: int
    elapsed_us: int
    questions: int
    note: str | None  # whom the run went on without
    failure: ProblemOut | None
    origin: PlaceOut | None
    damage: str | None


@with_config(CLOSED)
class RunsOut(TypedDict):
    """Some runs, whether there are more, and how many stand how."""

    runs: list[RunOut]
    more: bool
    counts: dict[str, int]


class AddedOut(TypedDict):
    """What one snapshot added to what was spent."""

    tokens: int
    cost_micros: int
    api_calls: int
    elapsed_us: int


class MetricsOut(AddedOut):
    """What was spent."""

    tokens_in: int
    tokens_out: int
    memory_peak_bytes: int
    recoveries: int
    rollbacks: int


class AgentOut(TypedDict):
    """An agent as it is now."""

    agent: str
    role: str | None
    status: str
    phase: str | None
    step: str | None
    progress: float
    confidence: float | None
    tokens: int
    attempts: int
    task: str | None


class WaitOut(TypedDict):
    """Something that a run waits for, or has waited for."""

    run: str
    wait: str
    kind: str
    status: Literal["open", "closed"]
    agent: str | None
    task: str | None
    text: str
    choices: list[str]
    details: Any
    until: int | None
    opened_at: int
    closed_at: int | None
    answer: Any


class WaitsOut(TypedDict):
    """What runs wait for."""

    waits: list[WaitOut]


class OutputOut(TypedDict):
    """A file that a run made."""

    path: str
    media_type: str
    size: int
    digest: str
    agent: str | None
    task: str | None
    at: int
    stored: bool


class OutputsOut(TypedDict):
    """The files that a run made."""

    outputs: list[OutputOut]


class ForkOut(PlaceOut):
    """A run that began at a snapshot of this one."""

    status: str


class RollbackOut(TypedDict):
    """That a run went back. `seq` is its snapshot, if it is one of this run."""

    seq: int | None
    from_seq: int
    to_seq: int
    reason: str
    at: int
    kept: list[str]
    undone: list[str]


class RunInFullOut(RunOut):
    """Everything about one run."""

    head: int
    digest: str
    workflow_digest: str | None
    workflow_file: str | None
    inputs: Any
    environment: Any
    metrics: MetricsOut
    agents: list[AgentOut]
    waits: list[WaitOut]
    outputs: list[OutputOut]
    forks: list[ForkOut]
    rollbacks: list[RollbackOut]
    thresholds: list[float]
    resumable: bool
    playing: bool


class RelativeOut(TypedDict):
    """A run of a family."""

    run: str
    status: str
    standing: str
    created_at: int
    head: int
    origin: PlaceOut | None


class FamilyOut(TypedDict):
    """A run with all its forks."""

    family: str
    runs: list[RelativeOut]


class FindingOut(TypedDict):
    """Something that a verification found."""

    what: str
    where: str
    reason: str
    severity: str


class VerifiedOut(TypedDict):
    """What is known of a run after it was verified."""

    whole: bool
    problems: list[FindingOut]
    newest_whole: str | None
