"""Runs as JSON: the list of them, one in full, and the families they form."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs

from orchestra.codec.document import Document
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import WEB_COUNTED_RUNS, WEB_SPARK_POINTS
from orchestra.model.state import TERMINAL, skipped_tasks, skipped_text
from orchestra.model.tree import Table, Vec
from orchestra.ports.run_status import CHANGING, STORED, shown_status
from orchestra.ports.store import RunQuery, RunRow
from orchestra.web.views.cache import Cached
from orchestra.web.views.forms import data_form

Json = dict[str, Any]

_FACTS: Final = ("completed_tasks", "confidence", "failure", "metrics", "origin", "tasks", "waits")
_UNKNOWN: Final[Json] = {
    "confidence": None,
    "spark": [],
    "tasks": {"done": 0, "total": 0},
    "tokens": 0,
    "cost_micros": 0,
    "elapsed_us": 0,
    "questions": 0,
    "note": None,
    "failure": None,
    "origin": None,
}
PEOPLE: Final = frozenset({"question", "dependency", "breakpoint"})
"""What a run waits for that a person can give."""


@attrs.frozen(kw_only=True)
class RunsAsked:
    """Which runs to list."""

    standings: tuple[str, ...] = ()
    workflow: str | None = None
    contains: str | None = None
    limit: int = 50
    offset: int = 0


class Runs:
    """Summaries of runs; one is worked out again when the run has a newer snapshot."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: Cached[tuple[RunId, bytes], Json] = Cached(2000)
        self._standing: Cached[tuple[RunId, bytes, bool], str] = Cached(WEB_COUNTED_RUNS)

    def listed(self, asked: RunsAsked) -> Json:
        """Runs, newest first."""
        rows = self._rows(asked)
        counts = Counter(map(self.standing, self._archive.store.runs(RunQuery(limit=WEB_COUNTED_RUNS))))
        return {
            "runs": [self.summary(row) for row in rows[: asked.limit]],
            "more": len(rows) > asked.limit,
            "counts": dict(counts),
        }

    def _rows(self, asked: RunsAsked) -> list[RunRow]:
        """One more than was asked for, if there is one."""
        wanted = set(asked.standings)
        status = dict.fromkeys(name for each in asked.standings for name in STORED.get(each, (each,)))
        query = RunQuery(status=tuple(status), workflow=asked.workflow, contains=asked.contains)
        if wanted & CHANGING and not wanted >= CHANGING:
            found = self._archive.store.runs(attrs.evolve(query, limit=WEB_COUNTED_RUNS))
            fitting = [row for row in found if self.standing(row) in wanted]
            return fitting[asked.offset : asked.offset + asked.limit + 1]
        return self._archive.store.runs(attrs.evolve(query, limit=asked.limit + 1, offset=asked.offset))

    def standing(self, row: RunRow) -> str:
        """The status of a run as people should see it."""
        key = (row.run, row.digest, row.owned)
        return self._standing.get(key, lambda: shown_status(self._archive.store, row))

    def summary(self, row: RunRow) -> Json:
        """One run in a line."""
        return {
            "run": row.run,
            "family": row.family,
            "workflow": row.workflow,
            "status": row.status,
            "standing": self.standing(row),
            "phase": row.phase,
            "snapshots": row.head + 1,
            "owned": row.owned,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
            **self._known.get((row.run, row.digest), lambda: self._facts(row)),
        }

    def _facts(self, row: RunRow) -> Json:
        try:
            held = self._archive.part_of(self._archive.row(row.run, row.head), _FACTS)
            return _summary_facts(held)
        except DamageError as damage:
            return {**_UNKNOWN, "damage": str(damage)}

    def family(self, family: RunId) -> Json:
        """A run with all its forks, oldest first."""
        rows = self._archive.store.runs(RunQuery(family=family, limit=WEB_COUNTED_RUNS))
        if not rows:
            rows = [self._archive.run(family)]
        return {
            "family": rows[0].family,
            "runs": [
                {
                    "run": row.run,
                    "status": row.status,
                    "standing": self.standing(row),
                    "created_at": row.created_at,
                    "head": row.head,
                    "origin": self.summary(row)["origin"],
                }
                for row in reversed(rows)
            ],
        }

    def forks(self, row: RunRow) -> list[Json]:
        """The runs that began at a snapshot of this one."""
        family = self._archive.store.runs(RunQuery(family=row.family, limit=WEB_COUNTED_RUNS))
        found = [(each, self.summary(each)["origin"]) for each in reversed(family) if each.run != row.run]
        return [
            {"run": each.run, "seq": origin["seq"], "status": self.standing(each)}
            for each, origin in found
            if origin is not None and origin["run"] == row.run
        ]


def _summary_facts(held: Document) -> Json:
    metrics, confidence = held.get("metrics", {}), held.get("confidence", {})
    failure, origin = held.get("failure"), held.get("origin")
    waits: Collection[tuple[str, Document]] = list(held.get("waits", Table()).items())
    return {
        "confidence": confidence.get("overall"),
        "spark": spark(confidence.get("history", Vec())),
        "tasks": {"done": held.get("completed_tasks", 0), "total": len(held.get("tasks", ()))},
        "tokens": metrics.get("tokens_in", 0) + metrics.get("tokens_out", 0),
        "cost_micros": metrics.get("cost_micros", 0),
        "elapsed_us": metrics.get("elapsed_us", 0),
        "questions": sum(is_open(wait) and wait.get("kind") in PEOPLE for _, wait in waits),
        "note": _skipped_note(held),
        "failure": failure_json(failure),
        "origin": None if origin is None else {"run": origin["run"], "seq": origin["seq"]},
        "damage": None,
    }


def failure_json(failure: Document | None) -> Json | None:
    """What a run failed with, in a line."""
    return None if failure is None else {"error": failure["error"], "message": failure["message"][:2000]}


def is_open(wait: Document) -> bool:
    """Whether a wait goes on."""
    return bool(wait.get("status", "open") == "open")


def spark(history: Sequence[Document] | Vec[Document]) -> list[float | None]:
    """At most so many samples of a history, evenly spread, the newest always among them."""
    count = len(history)
    points = min(count, WEB_SPARK_POINTS)
    places = [(count - 1) - (count - 1) * step // max(points - 1, 1) for step in range(points)]
    return [history[place].get("value") for place in sorted(places)]


class Details:
    """One run in full, as of its newest snapshot that can be read."""

    def __init__(self, archive: Archive, runs: Runs) -> None:
        self._archive, self._runs = archive, runs

    def of(self, row: RunRow, *, playing: bool) -> Json:
        """Everything the page says about a run."""
        answer = self._runs.summary(row) | {"head": row.head, "digest": row.digest.hex(), "playing": playing}
        try:
            held = self._archive.document_of(self._archive.row(row.run, row.head))
        except DamageError as damage:
            answer["damage"] = str(damage)
            held = {}
        return answer | self._parts(row, held) | {"forks": self._runs.forks(row)}

    def _parts(self, row: RunRow, held: Document) -> Json:
        workflow, loader = held.get("workflow", {}), self._archive.loader
        digest = workflow.get("digest")
        return {
            "workflow_digest": None if digest is None else digest.digest.hex(),
            "workflow_file": workflow.get("file"),
            "inputs": self._form(held.get("inputs"), "inputs"),
            "environment": data_form(held.get("environment", {}), ("environment",), loader, 16_384),
            "metrics": metrics_json(held.get("metrics", {})),
            "agents": [_agent(name, each) for name, each in held.get("agents", Table()).items()],
            "waits": waits_of(self._archive, row.run, held, only_open=True),
            "outputs": outputs_of(held),
            "rollbacks": rollbacks_of(row, held),
            "thresholds": list(held.get("confidence", {}).get("thresholds", ())),
            "resumable": row.status not in TERMINAL,
        }

    def _form(self, value: Any, name: str) -> Any:
        return value_form(self._archive, value, name)


def value_form(archive: Archive, value: Any, name: str, budget: int = 65_536) -> Any:
    """A frozen value as JSON, within a budget; a large one is only said to be there."""
    from orchestra.history.places import Place
    from orchestra.web.views.forms import Former

    if value is None:
        return None
    return Former(archive.loader, budget).form(Place(value, False, name).open(archive.loader, large=False))


def metrics_json(held: Document) -> Json:
    """What was spent."""
    names = ("elapsed_us", "api_calls", "tokens_in", "tokens_out", "cost_micros", "memory_peak_bytes")
    found: Json = {name: held.get(name, 0) for name in (*names, "recoveries", "rollbacks")}
    return found | {"tokens": found["tokens_in"] + found["tokens_out"]}


def _agent(name: str, held: Document) -> Json:
    return {
        "agent": name,
        "role": held.get("role"),
        "status": held.get("status", "idle"),
        "phase": held.get("phase"),
        "step": held.get("step"),
        "progress": held.get("progress", 0.0),
        "confidence": held.get("confidence"),
        "tokens": held.get("tokens", 0),
        "attempts": held.get("attempts", 0),
        "task": held.get("task"),
    }


def waits_of(archive: Archive, run: RunId, held: Document, *, only_open: bool) -> list[Json]:
    """What a run waits for, and what it has waited for."""
    return [
        {
            "run": run,
            "wait": name,
            "kind": wait["kind"],
            "status": wait.get("status", "open"),
            "agent": wait.get("agent"),
            "task": wait.get("task"),
            "text": wait.get("text", ""),
            "choices": list(wait.get("choices", ())),
            "details": value_form(archive, wait.get("details"), "details"),
            "until": wait.get("until"),
            "opened_at": wait["opened_at"],
            "closed_at": wait.get("closed_at"),
            "answer": value_form(archive, wait.get("answer"), "answer"),
        }
        for name, wait in held.get("waits", Table()).items()
        if is_open(wait) or not only_open
    ]


def outputs_of(held: Document) -> list[Json]:
    """The files a run has made."""
    return [
        {
            "path": path,
            "media_type": output["media_type"],
            "size": output["size"],
            "digest": output["digest"].digest.hex(),
            "agent": output.get("agent"),
            "task": output.get("task"),
            "at": output["at"],
            "stored": output.get("content") is not None,
        }
        for path, output in held.get("outputs", Table()).items()
    ]


def rollbacks_of(row: RunRow, held: Document) -> list[Json]:
    """That the run went back: from where, to where, why. Those before a fork are not of this run."""
    return [
        {
            "seq": each["from_seq"] + 1 if each["at"] >= row.created_at else None,
            "from_seq": each["from_seq"],
            "to_seq": each["to_seq"],
            "reason": each["reason"],
            "at": each["at"],
            "kept": list(each.get("kept", ())),
            "undone": list(each.get("undone", ())),
        }
        for each in held.get("rollbacks", Vec())
    ]


def _skipped_note(held: Document) -> str | None:
    return skipped_text(skipped_tasks(held.get("tasks", Table()), held.get("completed_tasks", 0))) or None
