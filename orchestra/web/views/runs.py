"""Runs as JSON: the list of them, one in full, and the families they form."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs

from orchestra.codec.document import Document
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.places import Place
from orchestra.history.verify.verifier import verify_run
from orchestra.ids import RunId
from orchestra.limits import WEB_COUNTED_RUNS, WEB_SPARK_POINTS
from orchestra.model.snapshot import TRIGGERS
from orchestra.model.state import TERMINAL, skipped_tasks, skipped_text
from orchestra.model.tree import Table, Vec
from orchestra.ports.run_status import CHANGING, STORED, shown_status
from orchestra.ports.store import RunQuery, RunRow
from orchestra.version import VERSION
from orchestra.web.views.common import Cached, Json, attributes, fields
from orchestra.web.views.forms import Former, data_form

_FACTS: Final = ("completed_tasks", "confidence", "failure", "metrics", "origin", "tasks", "waits")
_METRICS: Final = dict.fromkeys(
    ("elapsed_us", "api_calls", "tokens_in", "tokens_out", "cost_micros", "memory_peak_bytes"), 0
) | {"recoveries": 0, "rollbacks": 0}
_AGENT: Final[Json] = {"status": "idle", "progress": 0.0, "tokens": 0, "attempts": 0} | dict.fromkeys(
    ("role", "phase", "step", "confidence", "task")
)
PEOPLE: Final = frozenset({"question", "dependency", "breakpoint"})
"""What a run waits for that a person can give."""


class Runs:
    """Summaries of runs; one is worked out again when the run has a newer snapshot."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: Cached[tuple[RunId, bytes], Json] = Cached(2000)
        self._statuses: Cached[tuple[RunId, bytes, bool], str] = Cached(WEB_COUNTED_RUNS)

    def list_runs(self, query: RunQuery) -> Json:
        """Runs, newest first; the status that a query asks for is the one that people see."""
        rows = self._rows(query)
        counts = Counter(map(self.status_of, self._archive.store.runs(RunQuery(limit=WEB_COUNTED_RUNS))))
        return {
            "runs": [self.summary(row) for row in rows[: query.limit]],
            "more": len(rows) > query.limit,
            "counts": dict(counts),
        }

    def _rows(self, query: RunQuery) -> list[RunRow]:
        """One more than was asked for, if there is one."""
        wanted = set(query.status)
        status = tuple(dict.fromkeys(name for each in query.status for name in STORED.get(each, (each,))))
        if wanted & CHANGING and not wanted >= CHANGING:
            every = attrs.evolve(query, status=status, limit=WEB_COUNTED_RUNS, offset=0)
            fitting = [row for row in self._archive.store.runs(every) if self.status_of(row) in wanted]
            return fitting[query.offset : query.offset + query.limit + 1]
        return self._archive.store.runs(attrs.evolve(query, status=status, limit=query.limit + 1))

    def status_of(self, row: RunRow) -> str:
        """The status of a run as people should see it."""
        key = (row.run, row.digest, row.owned)
        return self._statuses.get(key, lambda: shown_status(self._archive.store, row))

    def summary(self, row: RunRow) -> Json:
        """One run in a line."""
        return {
            **attributes(row, "run", "family", "workflow", "status", "phase", "owned"),
            **attributes(row, "created_at", "updated_at"),
            "standing": self.status_of(row),
            "snapshots": row.head + 1,
            **self._known.get((row.run, row.digest), lambda: self._facts(row)),
        }

    def _facts(self, row: RunRow) -> Json:
        try:
            return _summary_facts(newest_part(self._archive, row, *_FACTS))
        except DamageError as damage:
            return {**_summary_facts({}), "damage": str(damage)}

    def family(self, family: RunId) -> Json:
        """A run with all its forks, oldest first."""
        rows = self._archive.store.runs(RunQuery(family=family, limit=WEB_COUNTED_RUNS))
        if not rows:
            rows = [self._archive.run(family)]
        return {
            "family": rows[0].family,
            "runs": [
                attributes(row, "run", "status", "created_at", "head")
                | {"standing": self.status_of(row), "origin": self.summary(row)["origin"]}
                for row in reversed(rows)
            ],
        }

    def forks(self, row: RunRow) -> list[Json]:
        """The runs that began at a snapshot of this one."""
        family = self._archive.store.runs(RunQuery(family=row.family, limit=WEB_COUNTED_RUNS))
        found = [(each, self.summary(each)["origin"]) for each in reversed(family) if each.run != row.run]
        return [
            {"run": each.run, "seq": origin["seq"], "status": self.status_of(each)}
            for each, origin in found
            if origin is not None and origin["run"] == row.run
        ]

    def details(self, row: RunRow, *, playing: bool) -> Json:
        """One run in full, as of its newest snapshot that can be read."""
        answer = self.summary(row) | {"head": row.head, "digest": row.digest.hex(), "playing": playing}
        try:
            held = self._archive.document_of(self._archive.row(row.run, row.head))
        except DamageError as damage:
            answer["damage"] = str(damage)
            held = {}
        return answer | self._parts(row, held) | {"forks": self.forks(row)}

    def _parts(self, row: RunRow, held: Document) -> Json:
        workflow, agents = held.get("workflow", {}), held.get("agents", Table())
        said = Counter(each.get("agent") for _, each in held.get("messages", Table()).items())
        digest, environment = workflow.get("digest"), held.get("environment", {})
        return {
            "workflow_digest": None if digest is None else digest.digest.hex(),
            "workflow_file": workflow.get("file"),
            "inputs": value_form(self._archive, held.get("inputs"), "inputs"),
            "environment": data_form(environment, ("environment",), self._archive.loader, 16_384),
            "metrics": metrics_json(held.get("metrics", {})),
            "agents": [
                {"agent": name, **fields(each, **_AGENT), "messages": said[name]}
                for name, each in agents.items()
            ],
            "waits": waits_of(self._archive, row.run, held, only_open=True),
            "outputs": outputs_of(held),
            "rollbacks": rollbacks_of(row, held),
            "thresholds": thresholds_of(held),
            "resumable": row.status not in TERMINAL,
        }


def _summary_facts(held: Document) -> Json:
    metrics, confidence = metrics_json(held.get("metrics", {})), held.get("confidence", {})
    failure, origin, done = held.get("failure"), held.get("origin"), held.get("completed_tasks", 0)
    waits: list[Document] = [wait for _, wait in held.get("waits", Table()).items()]
    return {
        "confidence": confidence.get("overall"),
        "spark": spark(confidence.get("history", Vec())),
        "tasks": {"done": done, "total": len(held.get("tasks", ()))},
        **{name: metrics[name] for name in ("tokens", "cost_micros", "elapsed_us")},
        "questions": sum(is_open(wait) and wait.get("kind") in PEOPLE for wait in waits),
        "note": skipped_text(skipped_tasks(held.get("tasks", Table()), done)) or None,
        "failure": failure and {"error": failure["error"], "message": failure["message"][:2000]},
        "origin": None if origin is None else {"run": origin["run"], "seq": origin["seq"]},
        "damage": None,
    }


def is_open(wait: Document) -> bool:
    """Whether a wait goes on."""
    return bool(wait.get("status", "open") == "open")


def spark(history: Sequence[Document] | Vec[Document]) -> list[float | None]:
    """At most so many samples of a history, evenly spread, the newest always among them."""
    count = len(history)
    points = min(count, WEB_SPARK_POINTS)
    places = [(count - 1) - (count - 1) * step // max(points - 1, 1) for step in range(points)]
    return [history[place].get("value") for place in sorted(places)]


def newest_part(archive: Archive, row: RunRow, *names: str) -> Document:
    """Some fields of the newest state of a run."""
    return archive.part_of(archive.row(row.run, row.head), names)


def value_form(archive: Archive, value: Any, name: str) -> Any:
    """A frozen value as JSON, within a budget; a large one is only said to be there."""
    if value is None:
        return None
    return Former(archive.loader, 65_536).form(Place(value, False, name).open(archive.loader, large=False))


def thresholds_of(held: Document) -> list[float]:
    """How sure a run has to be, phase by phase."""
    return list(held.get("confidence", {}).get("thresholds", ()))


def metrics_json(held: Document) -> Json:
    """What was spent."""
    found = fields(held, **_METRICS)
    return found | {"tokens": found["tokens_in"] + found["tokens_out"]}


def waits_of(archive: Archive, run: RunId, held: Document, *, only_open: bool) -> list[Json]:
    """What a run waits for, and what it has waited for."""
    return [
        {
            "run": run,
            "wait": name,
            **fields(wait, "kind", "opened_at", status="open", text=""),
            **fields(wait, agent=None, task=None, until=None, closed_at=None),
            "choices": list(wait.get("choices", ())),
            "details": value_form(archive, wait.get("details"), "details"),
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
            **fields(output, "media_type", "size", "at", agent=None, task=None),
            "digest": output["digest"].digest.hex(),
            "stored": output.get("content") is not None,
        }
        for path, output in held.get("outputs", Table()).items()
    ]


def rollbacks_of(row: RunRow, held: Document) -> list[Json]:
    """That the run went back: from where, to where, why. Those before a fork are not of this run."""
    return [
        {
            "seq": each["from_seq"] + 1 if each["at"] >= row.created_at else None,
            **fields(each, "from_seq", "to_seq", "reason", "at"),
            "kept": list(each.get("kept", ())),
            "undone": list(each.get("undone", ())),
        }
        for each in held.get("rollbacks", Vec())
    ]


def info_json(archive: Archive, **more: Any) -> Json:
    """What the page is told about what it looks at."""
    durable = archive.store.properties.durable
    return {"version": VERSION, "durable": durable, "triggers": list(TRIGGERS), **more}


def verify_json(archive: Archive, run: RunId) -> Json:
    """Whether a run is whole, and what is wrong with it."""
    report = verify_run(archive, run)
    return {
        "whole": report.is_whole,
        "problems": [
            attributes(each, "what", "reason", "severity") | {"where": ", ".join(map(str, each.spans))}
            for each in report.findings
        ],
        "newest_whole": None if report.whole is None else f"{report.run}@{report.whole}",
    }
