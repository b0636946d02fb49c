"""A run's workflow as a graph, with the way the run took through it."""

from collections import Counter, deque
from itertools import pairwise

from orchestra.codec.document import Document
from orchestra.engine.start import read_definition
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.lineage import jumps, lived_ranges
from orchestra.model.tree import Vec
from orchestra.model.workflow import END, Phase, Workflow
from orchestra.ports.store import RowQuery, RunRow
from orchestra.web.views.common import Json, attributes, fields
from orchestra.web.views.forms import as_value
from orchestra.web.views.runs import newest_part

_SPECIALIST = ("id", "agent", "task", "needs", "foreach", "into")


def workflow_json(archive: Archive, run: RunRow) -> Json:
    """The definition that a run was begun with, and the phases it has been through."""
    held = newest_part(archive, run, "workflow", "path", "cursor", "status")
    reference = held.get("workflow", {})
    path = _path(archive, run, held)
    definition, digest = reference.get("definition"), reference.get("digest")
    graph: Json = {"phases": [], "edges": [], "entry": None, "exits": []}
    if definition is not None:
        graph = _graph(read_definition(archive.loader.value(as_value(definition))), path, run, held)
    return {
        "name": reference.get("name", run.workflow),
        "digest": None if digest is None else digest.digest.hex(),
        "file": reference.get("file"),
        **graph,
        "path": path,
    }


def _path(archive: Archive, run: RunRow, held: Document) -> list[Json]:
    began = _first_snapshots(archive, run)
    return [
        {
            **fields(visit, "phase", "visit", "started_at", completed_at=None),
            "seq": began[visit["phase"]].popleft() if began.get(visit["phase"]) else None,
        }
        for visit in held.get("path", Vec())
    ]


def _first_snapshots(archive: Archive, run: RunRow) -> dict[str, deque[int]]:
    """By phase, the snapshots with which it began and that the head builds on."""
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
    names = [str(visit["phase"]) for visit in path]
    visits, taken = Counter(names), Counter(pairwise(names))
    if run.status == "completed" and names:
        taken[names[-1], str(END)] += 1
    current = held.get("cursor", {}).get("phase") if run.status != "completed" else None
    edges = [edge for each in defined.phases for edge in _edges(each, taken)]
    return {
        "phases": [_phase(each, visits[each.id], current) for each in defined.phases],
        "edges": edges,
        "entry": defined.phases[0].id if defined.phases else None,
        "exits": list(dict.fromkeys(edge["from"] for edge in edges if edge["to"] == END)),
    }


def _phase(phase: Phase, visits: int, current: str | None) -> Json:
    judged = phase.evaluate
    rubric = [attributes(each, "name", "weight") for each in judged.rubric] if judged else []
    return {
        **attributes(phase, "id", "description"),
        "specialists": [attributes(each, *_SPECIALIST) for each in phase.specialists],
        "evaluate": judged and {**attributes(judged, "agent", "threshold"), "rubric": rubric},
        "visits": visits,
        "status": "current" if phase.id == current else "done" if visits else "not reached",
    }


def _edges(phase: Phase, taken: Counter[tuple[str, str]]) -> list[Json]:
    ways = [(str(each.to), each.when) for each in phase.next or ()] or [(str(END), None)]
    return [{"from": phase.id, "to": to, "when": when, "taken": taken[phase.id, to]} for to, when in ways]
