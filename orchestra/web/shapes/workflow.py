"""The shape of a workflow: its graph, with the way a run took."""

from typing import Literal

from typing_extensions import TypedDict


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


EdgeOut = TypedDict("EdgeOut", {"from": str, "to": str, "when": str | None, "taken": int})


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
    edges: list[EdgeOut]
    entry: str | None
    exits: list[str]
    path: list[VisitOut]
