"""The shapes of the other answers: what is found, made, planned and done. See `orchestra.web.shapes.runs`."""

from typing import Any, Literal

from pydantic import with_config
from typing_extensions import TypedDict

from orchestra.web.shapes.runs import CLOSED, DecisionOut, EventOut, OutputOut, PlaceOut, ProblemOut, WaitOut


@with_config(CLOSED)
class StateOut(TypedDict):
    """What stands at a path of a state."""

    reference: str
    path: list[str | int]
    text: str
    kind: str
    count: int | None
    value: Any
    whole: bool


class ReferenceOut(PlaceOut):
    """A snapshot, also as people write it."""

    reference: str


class ChangeOut(TypedDict):
    """One difference."""

    path: list[str | int]
    text: str
    kind: Literal["added", "removed", "changed"]
    before: Any
    after: Any


class CountsOut(TypedDict):
    """How many differences of each kind are listed."""

    added: int
    removed: int
    changed: int


Diff = TypedDict(
    "Diff",
    {
        "from": ReferenceOut | None,
        "to": ReferenceOut,
        "changes": list[ChangeOut],
        "counts": CountsOut,
        "truncated": bool,
    },
)


@with_config(CLOSED)
class BlameOut(TypedDict):
    """Who last set a value."""

    run: str
    seq: int
    reference: str
    at: int
    who: str | None
    event: EventOut | None
    exact: bool
    before: Any
    after: Any
    was_there: bool
    text: str


class SeqsOut(TypedDict):
    """Snapshots by number."""

    seqs: list[int]


class MatchesOut(SeqsOut):
    """Snapshots where a condition holds."""

    truncated: bool


class FirstOut(TypedDict):
    """The first snapshot where a condition holds, if there is one."""

    seq: int | None
    reference: str | None


class DecisionsOut(TypedDict):
    """The decisions of a run."""

    decisions: list[DecisionOut]


class WaitsOut(TypedDict):
    """What runs wait for."""

    waits: list[WaitOut]


class OutputsOut(TypedDict):
    """The files that a run made."""

    outputs: list[OutputOut]


class SpecialistOut(TypedDict):
    """An assignment of a phase."""

    id: str
    agent: str
    task: str
    needs: list[str]
    foreach: str | None
    into: str | None


class CriterionOut(TypedDict):
    """What is judged, and how much it counts."""

    name: str
    weight: float


class EvaluateOut(TypedDict):
    """The evaluation at the end of a phase."""

    agent: str
    threshold: float
    rubric: list[CriterionOut]


class PhaseOut(TypedDict):
    """A node of the graph."""

    id: str
    description: str
    specialists: list[SpecialistOut]
    evaluate: EvaluateOut | None
    visits: int
    status: Literal["done", "current", "not reached"]


Edge = TypedDict("Edge", {"from": str, "to": str, "when": str | None, "taken": int})


class VisitOut(TypedDict):
    """One visit of a phase, and the snapshot it began with."""

    phase: str
    visit: int
    seq: int | None
    started_at: int
    completed_at: int | None


class WorkflowOut(TypedDict):
    """A definition as a graph, with the way a run took."""

    name: str
    digest: str | None
    file: str | None
    phases: list[PhaseOut]
    edges: list[Edge]
    entry: str | None
    exits: list[str]
    path: list[VisitOut]


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


class PlannedOut(TypedDict):
    """What an action would mean."""

    action: Literal["fork", "resume", "rollback", "replay"]
    run: str
    at: int
    to: int | None
    phase: str | None
    undone: list[str]
    kept: list[str]
    again: list[str]
    effects: list[str]
    tokens: int
    cost_micros: int
    sentences: list[str]


class BegunOut(TypedDict):
    """A run, and whether it is played by this process."""

    run: str
    playing: bool


class WentBackOut(BegunOut):
    """A run that went back, and where to."""

    to: int


class OrderedOut(BegunOut):
    """A run after an order."""

    status: str
    standing: str


class PinnedOut(PlaceOut):
    """A snapshot and what its pin says, if it has one."""

    pin: str | None


class NotedOut(PlaceOut):
    """A snapshot and its note, if it has one."""

    note: str | None


class RestoredOut(TypedDict):
    """That a run was restored."""

    success: bool
    message: str


class NotRestoredOut(TypedDict):
    """That a run could not be restored."""

    error: str


_SAID: dict[int, str] = {
    400: "It cannot be understood.",
    403: "It is not allowed: the token, the host or the origin is wrong, or the browser only reads.",
    404: "There is no such run, snapshot or place.",
    408: "It took too long.",
    409: "It cannot be done with the run as it is.",
    410: "The snapshot was pruned.",
    413: "It brings too much.",
    422: "A parameter does not fit, or what is stored is damaged.",
    431: "The address and the headers are too long.",
    503: "The store is in trouble, or too much is asked at once.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": said} for status, said in _SAID.items()
}
"""What every question may be answered with instead."""
