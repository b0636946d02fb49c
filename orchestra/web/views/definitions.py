"""A run's workflow as a graph, with the way the run took through it."""

from collections import Counter, deque
from itertools import pairwise
from typing import Any

from orchestra.codec.document import Document
from orchestra.engine.start import read_definition
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.model.tree import Vec
from orchestra.model.workflow import END, Evaluate, Phase, Specialist, Workflow
from orchestra.ports.store import RowQuery, RunRow
from orchestra.web.views.runs import Json

_FIELDS = ("workflow", "path", "cursor", "status")


def workflow(archive: Archive, run: RunRow) -> Json:
    """The definition that a run was begun with, and the phases it has been through."""
    held = archive.part_of(archive.row(run.run, run.head), _FIELDS)
    reference = held.get("workflow", {})
    path = _path(archive, run, held)
    definition = reference.get("definition")
    graph: Json = {"phases": [], "edges": [], "entry": None, "exits": []}
    if definition is not None:
        graph = _graph(read_definition(archive.loader.value(_value(definition))), path, run, held)
    digest = reference.get("digest")
    return {
        "name": reference.get("name", run.workflow),
        "digest": None if digest is None else digest.digest.hex(),
        "file": reference.get("file"),
        **graph,
        "path": path,
    }


def _value(held: Any) -> Any:
    from orchestra.model.value import Value

    return held if isinstance(held, Value) else Value(held)


def _path(archive: Archive, run: RunRow, held: Document) -> list[Json]:
    began = _began(archive, run)
    return [
        {
            "phase": visit["phase"],
            "visit": visit["visit"],
            "seq": began[visit["phase"]].popleft() if began.get(visit["phase"]) else None,
            "started_at": visit["started_at"],
            "completed_at": visit.get("completed_at"),
        }
        for visit in held.get("path", Vec())
    ]


def _began(archive: Archive, run: RunRow) -> dict[str, deque[int]]:
    """The snapshots that the head builds on and with which a phase began."""
    from orchestra.history.lineage import jumps, lived_ranges

    try:
        rows = archive.store.rows(RowQuery(run=run.run, triggers=("phase_start",), content=False))
        stretches = lived_ranges(jumps(archive, run.run), run.head)
    except DamageError:
        return {}
    found: dict[str, deque[int]] = {}
    for row in rows:
        if row.phase is not None and any(row.seq in stretch for stretch in stretches):
            found.setdefault(row.phase, deque()).append(row.seq)
    return found


def _graph(defined: Workflow, path: list[Json], run: RunRow, held: Document) -> Json:
    visits = Counter(str(visit["phase"]) for visit in path)
    names = [str(visit["phase"]) for visit in path]
    taken = Counter(pairwise(names))
    if run.status == "completed" and names:
        taken[names[-1], str(END)] += 1
    current = held.get("cursor", {}).get("phase") if run.status != "completed" else None
    return {
        "phases": [_phase(each, visits[each.id], current) for each in defined.phases],
        "edges": [edge for each in defined.phases for edge in _edges(each, taken)],
        "entry": defined.phases[0].id if defined.phases else None,
        "exits": [each.id for each in defined.phases if _ends(each)],
    }


def _phase(phase: Phase, visits: int, current: str | None) -> Json:
    return {
        "id": phase.id,
        "description": phase.description,
        "specialists": [_specialist(each) for each in phase.specialists],
        "evaluate": None if phase.evaluate is None else _evaluate(phase.evaluate),
        "visits": visits,
        "status": "current" if phase.id == current else "done" if visits else "not reached",
    }


def _specialist(each: Specialist) -> Json:
    return {
        "id": each.id,
        "agent": each.agent,
        "task": each.task,
        "needs": list(each.needs),
        "foreach": each.foreach,
        "into": each.into,
    }


def _evaluate(each: Evaluate) -> Json:
    rubric = [{"name": criterion.name, "weight": criterion.weight} for criterion in each.rubric]
    return {"agent": each.agent, "threshold": each.threshold, "rubric": rubric}


def _edges(phase: Phase, taken: Counter[tuple[str, str]]) -> list[Json]:
    if not phase.next:
        return [{"from": phase.id, "to": END, "when": None, "taken": taken[phase.id, str(END)]}]
    return [
        {"from": phase.id, "to": each.to, "when": each.when, "taken": taken[phase.id, each.to]}
        for each in phase.next
    ]


def _ends(phase: Phase) -> bool:
    return not phase.next or any(each.to == END for each in phase.next)
