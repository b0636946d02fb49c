"""The JSON form of a snapshot: one readable file with the whole state (`docs/reference/json-form.md`)."""

import base64
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, TypeVar

from orchestra.atomic import write_file
from orchestra.codec.address import Addresser
from orchestra.codec.json_values import LargeValue, canonical_json, pretty_json, to_json
from orchestra.codec.loader import Loader
from orchestra.codec.values import freeze, thaw
from orchestra.history.archive import Archive
from orchestra.history.describe import event_json, pick
from orchestra.ids import RunId, iso, moment, uuid_of
from orchestra.limits import MB
from orchestra.model.records import AgentState, Evaluation, Failure, Message, Task
from orchestra.model.reducers import Appended, ContextValue, Largest, Merged, Replaced, Summed
from orchestra.model.snapshot import Header, Snapshot
from orchestra.model.state import TERMINAL, State
from orchestra.model.tree import Table
from orchestra.model.value import Value
from orchestra.ports.store import RowQuery

VERSION: Final = "1.0"
ALGORITHM: Final = "blake3"
LATEST: Final = "latest.json"
Plain = dict[str, Any]
T = TypeVar("T")

ATLAS: Final = "atlas"
IN_PROGRESS: Final = "in_progress"
_GOING_ON: Final = frozenset({"pending", "running", "waiting", "paused"})

_AGENT: Final = """
    type=role status confidence progress phase step step_number max_steps task attempts tokens_used=tokens
    model last_decision output_ref=output partial_output=partial
"""
_CALL: Final = "tool agent task message asked risky status attempts error started_at ended_at"
_DECISION: Final = """
    timestamp=at agent type=kind description rationale confidence alternatives_considered=alternatives
"""
_GENERATION: Final = """
    model asked tokens_in tokens_out cache_read cache_write cost_micros latency_us finish
"""
_OUTPUT: Final = "digest media_type size agent task timestamp=at"
_ROLLBACK: Final = "timestamp=at from=from_seq to=to_seq reason generation kept undone"
_TASK: Final = """
    agent phase visit description status attempts confidence effect_key key started_at finished_at
"""
_EFFECT: Final = "name task status risky intended_at settled_at"
_FAILURE: Final = "timestamp=at error message stack recoverable"
_WAIT: Final = "kind status agent task text choices until opened_at closed_at"


def snapshot_json(snapshot: Snapshot, archive: Archive, *, large: bool = False) -> Plain:
    """The JSON form of a snapshot, with its digest.

    Large values are left in the store and named by digest, unless `large` asks for them; raises
    `MissingObject` or `Damaged` when one cannot be read.
    """
    plain = SnapshotWriter(archive.loader, large=large).plain(snapshot)
    form: Plain = {"version": VERSION, **to_json(plain)}
    form["integrity"] = {"algorithm": ALGORITHM, "digest": digest_of(form)}
    return form


def digest_of(form: Plain) -> str:
    """The digest over everything in a form except `integrity` itself."""
    rest = {name: part for name, part in form.items() if name != "integrity"}
    return Addresser().address("export", 1, canonical_json(rest)).hex()


def file_name(header: Header) -> str:
    """What the file of a snapshot is called, e.g. `checkpoint_phase2_20261115T143022Z_41.json`."""
    return f"checkpoint_phase{header.ordinal}_{moment(header.at):%Y%m%dT%H%M%SZ}_{header.seq}.json"


def export_json(
    archive: Archive,
    run: RunId,
    folder: str | Path,
    *,
    seqs: Collection[int] | None = None,
    only_marked: bool = True,
    large: bool = False,
) -> list[Path]:
    """Write the JSON files of a run's snapshots, and the newest as `latest.json`; returns their paths.

    Without `seqs` these are the marked snapshots, or all, that are not pruned. A file that is there is
    replaced. Raises `UnknownRun`, `UnknownSnapshot`, `PrunedSnapshot` for one of `seqs`, `Damaged`, and what
    writing a file raises.
    """
    place, head = Path(folder), archive.run(run).head
    if seqs is None:
        rows = archive.store.rows(RowQuery(run=run, last=head, content=False))
        seqs = [row.seq for row in rows if not row.pruned and (row.marked or not only_marked)]
    snapshots = (archive.snapshot(archive.row(run, seq)) for seq in sorted(set(seqs)))
    written = [write_snapshot(each, archive, place, large=large) for each in snapshots]
    newest = archive.snapshot(archive.row(run, head))
    write_file(place / LATEST, pretty_json(snapshot_json(newest, archive, large=large)))
    return [*written, place / LATEST]


def write_snapshot(
    snapshot: Snapshot, archive: Archive, folder: Path, *, large: bool = False, latest: bool = False
) -> Path:
    """Write the file of one snapshot, and the same as `latest.json` when asked; returns its path."""
    data = pretty_json(snapshot_json(snapshot, archive, large=large))
    path = folder / file_name(snapshot.header)
    write_file(path, data)
    if latest:
        write_file(folder / LATEST, data)
    return path


# --- the parts of it, as plain data


def metrics_part(state: State) -> Plain:
    """What the run has spent; times in seconds, memory in MB."""
    metrics = state.metrics
    return {
        "elapsed_time": metrics.elapsed_us / 1_000_000,
        **pick(metrics, "api_calls tokens_used=tokens"),
        "memory_peak": metrics.memory_peak_bytes / MB,
        **pick(metrics, "tokens_in tokens_out cost_micros recoveries rollbacks"),
    }


def confidence_part(state: State) -> Plain:
    """How sure the run is."""
    history = [pick(sample, "timestamp=at agent value") for sample in state.confidence.history]
    return {**pick(state.confidence, "overall thresholds"), "history": history}


def snapshot_part(snapshot: Snapshot) -> Plain:
    """Which snapshot this is, and why it was taken."""
    header, state = snapshot.header, snapshot.state
    origin = state.origin
    return {
        "digest": snapshot.digest.hex(),
        **pick(header, "seq parent triggers marked"),
        **pick(state, "run family"),
        "origin": None if origin is None else f"{origin.run}@{origin.seq}",
        **pick(state, "status generation"),
        "events": [event_json(line) for line in header.events],
    }


def cursor_part(state: State) -> Plain:
    """Where the run stands in its workflow."""
    return {**pick(state.cursor, "phase visit ordinal round"), "visits": dict(state.visits.items())}


def evaluation_part(evaluation: Evaluation) -> Plain:
    """An evaluation as far as it got."""
    verdict = evaluation.verdict
    return {
        **pick(evaluation, "agent phase visit round"),
        "scores": [pick(each, "criterion score weight rationale") for each in evaluation.scores],
        "issues": [pick(each, "description severity where") for each in evaluation.issues],
        "feedback": evaluation.feedback,
        "verdict": None if verdict is None else pick(verdict, "kind score feedback"),
        "iterations": [
            {"round": each.round, **pick(each.verdict, "verdict=kind score"), "timestamp": iso(each.at)}
            for each in evaluation.iterations
        ],
    }


class SnapshotWriter:
    """Turns a snapshot into plain data; large values are fetched only when asked for."""

    def __init__(self, loader: Loader, *, large: bool) -> None:
        self._loader, self._large = loader, large

    def plain(self, snapshot: Snapshot) -> Plain:
        """Everything but the version and the digest of the file."""
        state, header = snapshot.state, snapshot.header
        return {
            "checkpoint_id": str(uuid_of(snapshot.digest)),
            "workflow_id": state.run,
            "timestamp": iso(header.at),
            "phase": state.cursor.ordinal,
            "status": IN_PROGRESS if state.status in _GOING_ON else state.status,
            "resumable": state.is_resumable,
            "agents": self._agents(state),
            "decisions": [self._pick(each, _DECISION, "details") for each in state.decisions],
            "outputs": [{"path": path, **pick(output, _OUTPUT)} for path, output in state.outputs.items()],
            "metrics": metrics_part(state),
            "confidence": confidence_part(state),
            "snapshot": snapshot_part(snapshot),
            "workflow": pick(state.workflow, "name digest"),
            "cursor": cursor_part(state),
            "environment": pick(state.environment, "version python platform working_dir git_commit"),
            **self._pick(state, "", "inputs"),
            "failure": self._failure(state.failure),
            "tasks": _listed(state.tasks, self._task),
            "messages": _listed(state.messages, self._message),
            "tool_calls": _listed(state.tool_calls, lambda each: self._pick(each, _CALL, "arguments result")),
            "context": {name: self._context(held) for name, held in state.context.items()},
            "evaluations": _listed(state.evaluations, evaluation_part),
            "waits": _listed(state.waits, lambda each: self._pick(each, _WAIT, "details answer")),
            "effects": _listed(state.effects, lambda each: self._pick(each, _EFFECT, "intent outcome")),
            "path": [pick(visit, "phase visit started_at completed_at") for visit in state.path],
            "rollbacks": [pick(each, _ROLLBACK) for each in state.rollbacks],
        }

    # --- values

    def _value(self, value: Value) -> Any:
        if value.digest is not None and not self._large:
            return LargeValue(value.digest, value.size)
        return thaw(self._loader.value(value))

    def _pick(self, record: Any, names: str, values: str) -> Plain:
        """Fields of a record, and values that are there; one that is not has no key, as None is a value."""
        held = {name: getattr(record, name) for name in values.split()}
        there = {name: self._value(value) for name, value in held.items() if value is not None}
        return pick(record, names) | there

    def _context(self, held: ContextValue) -> Plain:
        content: Any
        match held:
            case Replaced():
                content = self._value(held.value)
            case Appended():
                content = [self._value(item) for item in held.items]
            case Merged():
                content = {key: self._value(item) for key, item in held.entries.items()}
            case Summed():
                content = held.total
            case Largest():
                content = held.largest
        return {"reducer": held.reducer, "value": content}

    # --- parts

    def _agents(self, state: State) -> Plain:
        known = {str(name): self._agent(agent) for name, agent in state.agents.items()}
        return {ATLAS: {**_atlas(state), **known.pop(ATLAS, {})}, **known}

    def _agent(self, agent: AgentState) -> Plain:
        private = None if agent.private is None else self._loader.value(agent.private).encoded
        return {
            **pick(agent, _AGENT),
            "blockers": [pick(each, "blocked_by=by reason timestamp=at") for each in agent.blockers],
            "confidence_history": [pick(sample, "timestamp=at value") for sample in agent.history],
            "last_update": iso(agent.updated_at),
            "state": base64.b64encode(private or b"").decode(),
        }

    def _failure(self, failure: Failure | None) -> Plain | None:
        return None if failure is None else self._pick(failure, _FAILURE, "details")

    def _task(self, task: Task) -> Plain:
        duration = task.duration_us
        return {
            **pick(task, _TASK),
            "duration": None if duration is None else duration / 1_000_000,
            "failure": self._failure(task.failure),
            **self._pick(task, "", "result"),
        }

    def _message(self, message: Message) -> Plain:
        return {
            **pick(message, "role agent task round status step_number max_steps model"),
            "parts": [self._pick(part, "kind text", "data") for part in message.parts],
            "generation": message.generation
            and self._pick(message.generation, _GENERATION, "settings provider"),
            "stands_for": list(message.stands_for),
            **pick(message, "created_at updated_at completed_at"),
        }


def _listed(held: Table[T], plain: Callable[[T], Plain]) -> list[Plain]:
    return [{"id": name, **plain(each)} for name, each in held.items()]


def _atlas(state: State) -> Plain:
    """The orchestrator itself. Its own state is where the run stands."""
    last = next((d for d in reversed(list(state.decisions)) if d.agent == ATLAS), None)
    where = freeze({**cursor_part(state), "generation": state.generation}, Addresser()).encoded
    assert where is not None, "BUG: what was just frozen has its bytes"
    return {
        "type": ATLAS,
        "status": "active" if state.status not in TERMINAL | {"failed"} else state.status,
        "confidence": state.confidence.overall,
        "progress": state.completed_tasks / len(state.tasks) if len(state.tasks) else 0.0,
        "step": None,
        "last_decision": None if last is None else last.description,
        "output_ref": None,
        "blockers": [],
        "state": base64.b64encode(where).decode(),
    }
