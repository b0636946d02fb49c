"""A snapshot as plain data under the names of the JSON form."""

import base64
from typing import Any, Final

from orchestra.codec.address import Addresser
from orchestra.codec.json_values import LargeValue
from orchestra.codec.loader import Loader
from orchestra.codec.values import freeze, thaw
from orchestra.history.describe import event_json
from orchestra.ids import Instant, iso, uuid_of
from orchestra.limits import MB
from orchestra.model.records import AgentState, Decision, Effect, Evaluation, Failure, Message, Task, Wait
from orchestra.model.reducers import Appended, ContextValue, Largest, Merged, Replaced, Summed
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import TERMINAL, State
from orchestra.model.value import Value

Plain = dict[str, Any]

ATLAS: Final = "atlas"
IN_PROGRESS: Final = "in_progress"
_INSTANTS: Final = ("timestamp", "until")
_GOING_ON: Final = frozenset({"pending", "running", "waiting", "paused"})

_AGENT: Final = """
    type=role status confidence progress phase step step_number max_steps task attempts tokens_used=tokens
    model last_decision output_ref=output partial_output=partial
"""
_DECISION: Final = """
    timestamp=at agent type=kind description rationale confidence alternatives_considered=alternatives
"""
_OUTPUT: Final = "digest media_type size agent task timestamp=at"
_ROLLBACK: Final = "timestamp=at from=from_seq to=to_seq reason generation kept undone"
_TASK: Final = """
    agent phase visit description status attempts confidence effect_key key started_at finished_at
"""
_WAIT: Final = "kind status agent task text choices until opened_at closed_at"


def pick(record: Any, names: str) -> Plain:
    """Fields of a record under these names, in this order; `key=field` gives a field another name.

    Instants become ISO text, digests hexadecimal and tuples lists.
    """
    pairs = (name.partition("=") for name in names.split())
    return {key: _plain(key, getattr(record, field or key)) for key, _, field in pairs}


def _plain(key: str, held: Any) -> Any:
    if isinstance(held, bytes):
        return held.hex()
    if isinstance(held, int) and (key in _INSTANTS or key.endswith("_at")):
        return iso(Instant(held))
    return list(held) if isinstance(held, tuple) else held


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
            {
                "round": each.round,
                **pick(each.verdict, "verdict=kind score"),
                "timestamp": iso(each.at),
            }
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
            "decisions": [self._decision(decision) for decision in state.decisions],
            "outputs": [{"path": path, **pick(output, _OUTPUT)} for path, output in state.outputs.items()],
            "metrics": metrics_part(state),
            "confidence": confidence_part(state),
            "snapshot": snapshot_part(snapshot),
            "workflow": pick(state.workflow, "name digest"),
            "cursor": cursor_part(state),
            "environment": pick(state.environment, "version python platform working_dir git_commit"),
            **self._optional(inputs=state.inputs),
            "failure": self._failure(state.failure),
            "tasks": [{"id": name, **self._task(task)} for name, task in state.tasks.items()],
            "messages": [{"id": name, **self._message(each)} for name, each in state.messages.items()],
            "context": {name: self._context(held) for name, held in state.context.items()},
            "evaluations": [
                {"id": name, **evaluation_part(each)} for name, each in state.evaluations.items()
            ],
            "waits": [{"id": name, **self._wait(wait)} for name, wait in state.waits.items()],
            "effects": [{"id": name, **self._effect(each)} for name, each in state.effects.items()],
            "path": [pick(visit, "phase visit started_at completed_at") for visit in state.path],
            "rollbacks": [pick(each, _ROLLBACK) for each in state.rollbacks],
        }

    # --- values

    def _value(self, value: Value) -> Any:
        if value.digest is not None and not self._large:
            return LargeValue(value.digest, value.size)
        return thaw(self._loader.value(value))

    def _optional(self, **values: Value | None) -> Plain:
        """The values that are there; one that is not has no key, as None is a value like others."""
        return {name: self._value(value) for name, value in values.items() if value is not None}

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
        return {
            **pick(agent, _AGENT),
            "blockers": [pick(each, "blocked_by=by reason timestamp=at") for each in agent.blockers],
            "confidence_history": [pick(sample, "timestamp=at value") for sample in agent.history],
            "last_update": iso(agent.updated_at),
            "state": self._private(agent.private),
        }

    def _private(self, private: Value | None) -> str:
        encoded = None if private is None else self._loader.value(private).encoded
        return base64.b64encode(encoded or b"").decode()

    def _decision(self, decision: Decision) -> Plain:
        return {**pick(decision, _DECISION), **self._optional(details=decision.details)}

    def _failure(self, failure: Failure | None) -> Plain | None:
        if failure is None:
            return None
        plain = pick(failure, "timestamp=at error message stack recoverable")
        return {**plain, **self._optional(details=failure.details)}

    def _task(self, task: Task) -> Plain:
        duration = task.duration_us
        return {
            **pick(task, _TASK),
            "duration": None if duration is None else duration / 1_000_000,
            "failure": self._failure(task.failure),
            **self._optional(result=task.result),
        }

    def _message(self, message: Message) -> Plain:
        return {
            **pick(message, "role agent status step_number max_steps model"),
            "parts": [
                {**pick(part, "kind text"), **self._optional(data=part.data)} for part in message.parts
            ],
            **pick(message, "created_at updated_at completed_at"),
        }

    def _wait(self, wait: Wait) -> Plain:
        return {**pick(wait, _WAIT), **self._optional(details=wait.details, answer=wait.answer)}

    def _effect(self, effect: Effect) -> Plain:
        plain = pick(effect, "name task status risky intended_at settled_at")
        return {**plain, **self._optional(intent=effect.intent, outcome=effect.outcome)}


def _atlas(state: State) -> Plain:
    """The orchestrator itself. Its own state is where the run stands."""
    last = next((d for d in reversed(list(state.decisions)) if d.agent == ATLAS), None)
    return {
        "type": ATLAS,
        "status": "active" if state.status not in TERMINAL | {"failed"} else state.status,
        "confidence": state.confidence.overall,
        "progress": state.completed_tasks / len(state.tasks) if len(state.tasks) else 0.0,
        "step": None,
        "last_decision": None if last is None else last.description,
        "output_ref": None,
        "blockers": [],
        "state": base64.b64encode(_where(state)).decode(),
    }


def _where(state: State) -> bytes:
    frozen = freeze({**cursor_part(state), "generation": state.generation}, Addresser())
    assert frozen.encoded is not None, "BUG: what was just frozen has its bytes"
    return frozen.encoded
