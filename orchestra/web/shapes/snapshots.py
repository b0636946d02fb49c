"""The shapes of answers about snapshots: all as columns, what happened in some, the outline, one in full."""

from typing import Any, Literal

from pydantic import with_config
from typing_extensions import TypedDict

from orchestra.web.shapes.common import CLOSED, PlaceOut, ReferenceOut
from orchestra.web.shapes.runs import AddedOut, MetricsOut


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


BarOut = TypedDict(
    "BarOut",
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
StretchOut = TypedDict("StretchOut", {"phase": str, "visit": int, "from": int, "to": int | None})
JumpOut = TypedDict("JumpOut", {"seq": int, "from": int | None, "to": int | None, "reason": str})


@with_config(CLOSED)
class OutlineOut(TypedDict):
    """What a strip over all snapshots shows."""

    run: str
    upto: int
    more: bool
    confidence: SeriesOut
    bars: list[BarOut]
    phases: list[StretchOut]
    jumps: list[JumpOut]
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


class DecisionsOut(TypedDict):
    """The decisions of a run."""

    decisions: list[DecisionOut]


class SnapshotMetricsOut(MetricsOut):
    """What was spent up to a snapshot, and in it."""

    added: AddedOut


@with_config(CLOSED)
class SnapshotOut(ReferenceOut):
    """One snapshot without its state."""

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
