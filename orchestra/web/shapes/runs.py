"""The shapes of answers, for the description at /api/openapi.json. Tests compare them with what is sent.

Times are whole microseconds since 1970. Where something stands as `Any` it is a value of a state in the forms
of `docs/reference/http.md`.
"""

from typing import Any, Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

CLOSED = ConfigDict(extra="forbid")
"""Nothing else may be sent."""


class ProblemOut(TypedDict):
    """What went wrong: the name of the error, and a sentence that says what to do next."""

    error: str
    message: str


class PlaceOut(TypedDict):
    """A snapshot of a run by number."""

    run: str
    seq: int


class DoneOut(TypedDict):
    """How many of all."""

    done: int
    total: int


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


class MetricsOut(TypedDict):
    """What was spent."""

    elapsed_us: int
    api_calls: int
    tokens_in: int
    tokens_out: int
    cost_micros: int
    memory_peak_bytes: int
    recoveries: int
    rollbacks: int
    tokens: int


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


class ForkOut(TypedDict):
    """A run that began at a snapshot of this one."""

    run: str
    seq: int
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


class ColumnsOut(TypedDict):
    """A list for each column; status, phase, triggers and agents are positions in `words`."""

    seq: list[int] | None
    at: list[int]
    status: list[int]
    phase: list[int]
    triggers: list[int]
    agents: list[int]
    flags: list[int]
    size: list[int]


class WordsOut(TypedDict):
    """What the numbers in columns stand for."""

    status: list[str]
    phase: list[str]
    triggers: list[list[str]]
    agents: list[list[str]]


@with_config(CLOSED)
class SnapshotsOut(TypedDict):
    """The snapshots of a run as columns. Without `seq` they follow one another from `first` on."""

    run: str
    head: int
    no: int
    count: int
    first: int | None
    columns: ColumnsOut
    words: WordsOut


class EventOut(TypedDict):
    """One thing that happened, with the sentence that people read."""

    kind: str
    who: str | None
    what: str
    figures: dict[str, float]
    sentence: str


class HeadlineRowOut(TypedDict):
    """What happened in one snapshot."""

    seq: int
    digest: str | None
    at: int
    main: str
    events: list[EventOut]
    confidence: float | None
    generation: int | None
    damage: str | None


@with_config(CLOSED)
class HeadlinesOut(TypedDict):
    """What happened in some snapshots."""

    first: int
    rows: list[HeadlineRowOut]


class SeriesOut(TypedDict):
    """A value that changed, and where."""

    seq: list[int]
    value: list[float | None]


class SpentOut(TypedDict):
    """Tokens that snapshots added."""

    seq: list[int]
    tokens: list[int]


Bar = TypedDict(
    "Bar",
    {
        "agent": str,
        "task": str,
        "attempt": int,
        "from": int,
        "to": int | None,
        "from_at": int,
        "to_at": int | None,
        "outcome": Literal["completed", "failed", "skipped", "retired", "abandoned", "interrupted", "open"],
    },
)
Stretch = TypedDict("Stretch", {"phase": str, "visit": int, "from": int, "to": int | None})
Jump = TypedDict("Jump", {"seq": int, "from": int | None, "to": int | None, "reason": str})


@with_config(CLOSED)
class OutlineOut(TypedDict):
    """What a strip over all snapshots shows."""

    run: str
    upto: int
    more: bool
    confidence: SeriesOut
    bars: list[Bar]
    phases: list[Stretch]
    jumps: list[Jump]
    errors: list[int]
    decisions: list[int]
    waits: list[int]
    spent: SpentOut
    thresholds: list[float]


class DecisionOut(TypedDict):
    """A choice, why, and what else was considered."""

    seq: int
    at: int
    agent: str
    kind: str
    description: str
    rationale: str
    confidence: float | None
    alternatives: list[str]
    details: Any
    undone: bool
    inherited: bool


class AddedOut(TypedDict):
    """What one snapshot added to what was spent."""

    tokens: int
    cost_micros: int
    api_calls: int
    elapsed_us: int


class SnapshotMetricsOut(MetricsOut):
    """What was spent up to a snapshot, and in it."""

    added: AddedOut


@with_config(CLOSED)
class SnapshotOut(TypedDict):
    """One snapshot without its state."""

    reference: str
    run: str
    seq: int
    digest: str
    uuid: str
    parent: str | None
    at: int
    status: str
    phase: str | None
    ordinal: int | None
    generation: int | None
    triggers: list[str]
    marked: bool
    agents: list[str]
    confidence: float | None
    size: int
    pruned: bool
    sealed: bool
    pin: str | None
    note: str | None
    events: list[EventOut]
    decisions: list[DecisionOut]
    metrics: SnapshotMetricsOut | None
    verified: bool
    damage: str | None
    builds_on: PlaceOut | None
    undone: bool
    forks: list[str]
