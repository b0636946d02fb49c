"""The shapes of the other answers: what is found, made, planned and done. See `orchestra.web.shapes`."""

from typing import Any, Literal

from pydantic import with_config
from typing_extensions import TypedDict

from orchestra.web.shapes import CLOSED, Decision, Event, Output, Place, Problem, Wait


@with_config(CLOSED)
class State(TypedDict):
    """What stands at a path of a state."""

    reference: str
    path: list[str | int]
    text: str
    kind: str
    count: int | None
    value: Any
    whole: bool


class Reference(Place):
    """A snapshot, also as people write it."""

    reference: str


class Change(TypedDict):
    """One difference."""

    path: list[str | int]
    text: str
    kind: Literal["added", "removed", "changed"]
    before: Any
    after: Any


class Counts(TypedDict):
    """How many differences of each kind are listed."""

    added: int
    removed: int
    changed: int


Diff = TypedDict(
    "Diff",
    {
        "from": Reference | None,
        "to": Reference,
        "changes": list[Change],
        "counts": Counts,
        "truncated": bool,
    },
)


@with_config(CLOSED)
class Blame(TypedDict):
    """Who last set a value."""

    run: str
    seq: int
    reference: str
    at: int
    who: str | None
    event: Event | None
    exact: bool
    before: Any
    after: Any
    was_there: bool
    text: str


class Seqs(TypedDict):
    """Snapshots by number."""

    seqs: list[int]


class Matches(Seqs):
    """Snapshots where a condition holds."""

    truncated: bool


class First(TypedDict):
    """The first snapshot where a condition holds, if there is one."""

    seq: int | None
    reference: str | None


class Decisions(TypedDict):
    """The decisions of a run."""

    decisions: list[Decision]


class Waits(TypedDict):
    """What runs wait for."""

    waits: list[Wait]


class Outputs(TypedDict):
    """The files that a run made."""

    outputs: list[Output]


class Specialist(TypedDict):
    """An assignment of a phase."""

    id: str
    agent: str
    task: str
    needs: list[str]
    foreach: str | None
    into: str | None


class Criterion(TypedDict):
    """What is judged, and how much it counts."""

    name: str
    weight: float


class Evaluate(TypedDict):
    """The evaluation at the end of a phase."""

    agent: str
    threshold: float
    rubric: list[Criterion]


class Phase(TypedDict):
    """A node of the graph."""

    id: str
    description: str
    specialists: list[Specialist]
    evaluate: Evaluate | None
    visits: int
    status: Literal["done", "current", "not reached"]


Edge = TypedDict("Edge", {"from": str, "to": str, "when": str | None, "taken": int})


class Visit(TypedDict):
    """One visit of a phase, and the snapshot it began with."""

    phase: str
    visit: int
    seq: int | None
    started_at: int
    completed_at: int | None


class Workflow(TypedDict):
    """A definition as a graph, with the way a run took."""

    name: str
    digest: str | None
    file: str | None
    phases: list[Phase]
    edges: list[Edge]
    entry: str | None
    exits: list[str]
    path: list[Visit]


class Relative(TypedDict):
    """A run of a family."""

    run: str
    status: str
    standing: str
    created_at: int
    head: int
    origin: Place | None


class Family(TypedDict):
    """A run with all its forks."""

    family: str
    runs: list[Relative]


class Finding(TypedDict):
    """Something that a verification found."""

    what: str
    where: str
    reason: str
    severity: str


class Verified(TypedDict):
    """What is known of a run after it was verified."""

    whole: bool
    problems: list[Finding]
    newest_whole: str | None


class Planned(TypedDict):
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


class Begun(TypedDict):
    """A run, and whether it is played by this process."""

    run: str
    playing: bool


class WentBack(Begun):
    """A run that went back, and where to."""

    to: int


class Ordered(Begun):
    """A run after an order."""

    status: str
    standing: str


class Pinned(Place):
    """A snapshot and what its pin says, if it has one."""

    pin: str | None


class Noted(Place):
    """A snapshot and its note, if it has one."""

    note: str | None


class Restored(TypedDict):
    """That a run was restored."""

    success: bool
    message: str


class NotRestored(TypedDict):
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
    status: {"model": Problem, "description": said} for status, said in _SAID.items()
}
"""What every question may be answered with instead."""
