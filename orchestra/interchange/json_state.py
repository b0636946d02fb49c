"""A snapshot as plain data under the names of the JSON form."""

import base64
from typing import Any, Final

from orchestra.codec.address import Addresser
from orchestra.codec.json_values import LargeValue
from orchestra.codec.loader import Loader
from orchestra.codec.values import freeze, thaw
from orchestra.ids import Digest, Instant, iso, uuid_of
from orchestra.limits import MB
from orchestra.model.records import AgentState, Decision, Evaluation, Failure, Message, Task
from orchestra.model.reducers import Appended, ContextValue, Largest, Merged, Replaced, Summed
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import TERMINAL, State
from orchestra.model.value import Value

Plain = dict[str, Any]


def outputs_part(state: State) -> list[Plain]:
    """References to what the run produced."""
    return [
        {
            "path": path,
            "digest": output.digest.hex(),
            "media_type": output.media_type,
            "size": output.size,
            "agent": output.agent,
            "task": output.task,
            "timestamp": iso(output.at),
        }
        for path, output in state.outputs.items()
    ]


def metrics_part(state: State) -> Plain:
    """What the run has spent; times in seconds, memory in MB."""
    metrics = state.metrics
    return {
        "elapsed_time": metrics.elapsed_us / 1_000_000,
        "api_calls": metrics.api_calls,
        "tokens_used": metrics.tokens,
        "memory_peak": metrics.memory_peak_bytes / MB,
        "tokens_in": metrics.tokens_in,
        "tokens_out": metrics.tokens_out,
        "cost_micros": metrics.cost_micros,
        "recoveries": metrics.recoveries,
        "rollbacks": metrics.rollbacks,
    }


def confidence_part(state: State) -> Plain:
    """How sure the run is."""
    held = state.confidence
    return {
        "overall": held.overall,
        "thresholds": list(held.thresholds),
        "history": [
            {"timestamp": iso(sample.at), "agent": sample.agent, "value": sample.value}
            for sample in held.history
        ],
    }


def snapshot_part(snapshot: Snapshot) -> Plain:
    """Which snapshot this is, and why it was taken."""
    header, state = snapshot.header, snapshot.state
    origin = state.origin
    return {
        "digest": snapshot.digest.hex(),
        "seq": header.seq,
        "parent": hex_or_null(header.parent),
        "triggers": list(header.triggers),
        "marked": header.marked,
        "run": state.run,
        "family": state.family,
        "origin": None if origin is None else f"{origin.run}@{origin.seq}",
        "status": state.status,
        "generation": state.generation,
        "events": [
            {"kind": line.kind, "who": line.who, "what": line.what, "figures": dict(line.figures)}
            for line in header.events
        ],
    }


def cursor_part(state: State) -> Plain:
    """Where the run stands in its workflow."""
    cursor = state.cursor
    return {
        "phase": cursor.phase,
        "visit": cursor.visit,
        "ordinal": cursor.ordinal,
        "round": cursor.round,
        "visits": dict(state.visits.items()),
    }


def environment_part(state: State) -> Plain:
    """Where the run is executed."""
    held = state.environment
    return {
        "version": held.version,
        "python": held.python,
        "platform": held.platform,
        "working_dir": held.working_dir,
        "git_commit": held.git_commit,
    }


def evaluation_part(evaluation: Evaluation) -> Plain:
    """An evaluation as far as it got."""
    verdict = evaluation.verdict
    return {
        "agent": evaluation.agent,
        "phase": evaluation.phase,
        "visit": evaluation.visit,
        "round": evaluation.round,
        "scores": [
            {
                "criterion": each.criterion,
                "score": each.score,
                "weight": each.weight,
                "rationale": each.rationale,
            }
            for each in evaluation.scores
        ],
        "issues": [
            {"description": each.description, "severity": each.severity, "where": each.where}
            for each in evaluation.issues
        ],
        "feedback": evaluation.feedback,
        "verdict": None
        if verdict is None
        else {"kind": verdict.kind, "score": verdict.score, "feedback": verdict.feedback},
        "iterations": [
            {
                "round": each.round,
                "verdict": each.verdict.kind,
                "score": each.verdict.score,
                "timestamp": iso(each.at),
            }
            for each in evaluation.iterations
        ],
    }


def path_part(state: State) -> list[Plain]:
    """The visits of phases, oldest first."""
    return [
        {
            "phase": visit.phase,
            "visit": visit.visit,
            "started_at": iso(visit.started_at),
            "completed_at": time_or_null(visit.completed_at),
        }
        for visit in state.path
    ]


def rollbacks_part(state: State) -> list[Plain]:
    """The times the run went back."""
    return [
        {
            "timestamp": iso(each.at),
            "from": each.from_seq,
            "to": each.to_seq,
            "reason": each.reason,
            "generation": each.generation,
            "kept": list(each.kept),
            "undone": list(each.undone),
        }
        for each in state.rollbacks
    ]


def time_or_null(at: Instant | None) -> str | None:
    """An instant as ISO text."""
    return None if at is None else iso(at)


def hex_or_null(digest: Digest | None) -> str | None:
    """A digest as text."""
    return None if digest is None else digest.hex()


ATLAS: Final = "atlas"
IN_PROGRESS: Final = "in_progress"
_GOING_ON: Final = frozenset({"pending", "running", "waiting", "paused"})


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
            "outputs": outputs_part(state),
            "metrics": metrics_part(state),
            "confidence": confidence_part(state),
            "snapshot": snapshot_part(snapshot),
            "workflow": {"name": state.workflow.name, "digest": hex_or_null(state.workflow.digest)},
            "cursor": cursor_part(state),
            "environment": environment_part(state),
            **self._optional(inputs=state.inputs),
            "failure": self._failure(state.failure),
            "tasks": [{"id": name, **self._task(task)} for name, task in state.tasks.items()],
            "messages": [{"id": name, **self._message(each)} for name, each in state.messages.items()],
            "context": {name: self._context(held) for name, held in state.context.items()},
            "evaluations": [
                {"id": name, **evaluation_part(each)} for name, each in state.evaluations.items()
            ],
            "waits": self._waits(state),
            "effects": self._effects(state),
            "path": path_part(state),
            "rollbacks": rollbacks_part(state),
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
            "type": agent.role,
            "status": agent.status,
            "confidence": agent.confidence,
            "progress": agent.progress,
            "phase": agent.phase,
            "step": agent.step,
            "step_number": agent.step_number,
            "max_steps": agent.max_steps,
            "task": agent.task,
            "attempts": agent.attempts,
            "tokens_used": agent.tokens,
            "model": agent.model,
            "last_decision": agent.last_decision,
            "output_ref": agent.output,
            "partial_output": agent.partial,
            "blockers": [
                {"blocked_by": each.by, "reason": each.reason, "timestamp": iso(each.at)}
                for each in agent.blockers
            ],
            "confidence_history": [
                {"timestamp": iso(sample.at), "value": sample.value} for sample in agent.history
            ],
            "last_update": iso(agent.updated_at),
            "state": self._private(agent.private),
        }

    def _private(self, private: Value | None) -> str:
        encoded = None if private is None else self._loader.value(private).encoded
        return base64.b64encode(encoded or b"").decode()

    def _decision(self, decision: Decision) -> Plain:
        return {
            "timestamp": iso(decision.at),
            "agent": decision.agent,
            "type": decision.kind,
            "description": decision.description,
            "rationale": decision.rationale,
            "confidence": decision.confidence,
            "alternatives_considered": list(decision.alternatives),
            **self._optional(details=decision.details),
        }

    def _failure(self, failure: Failure | None) -> Plain | None:
        if failure is None:
            return None
        return {
            "timestamp": iso(failure.at),
            "error": failure.error,
            "message": failure.message,
            "stack": failure.stack,
            "recoverable": failure.recoverable,
            **self._optional(details=failure.details),
        }

    def _task(self, task: Task) -> Plain:
        duration = task.duration_us
        return {
            "agent": task.agent,
            "phase": task.phase,
            "visit": task.visit,
            "description": task.description,
            "status": task.status,
            "attempts": task.attempts,
            "confidence": task.confidence,
            "effect_key": task.effect_key,
            "key": hex_or_null(task.key),
            "started_at": time_or_null(task.started_at),
            "finished_at": time_or_null(task.finished_at),
            "duration": None if duration is None else duration / 1_000_000,
            "failure": self._failure(task.failure),
            **self._optional(result=task.result),
        }

    def _message(self, message: Message) -> Plain:
        parts = [
            {"kind": part.kind, "text": part.text, **self._optional(data=part.data)} for part in message.parts
        ]
        return {
            "role": message.role,
            "agent": message.agent,
            "status": message.status,
            "step_number": message.step_number,
            "max_steps": message.max_steps,
            "model": message.model,
            "parts": parts,
            "created_at": iso(message.created_at),
            "updated_at": iso(message.updated_at),
            "completed_at": time_or_null(message.completed_at),
        }

    def _waits(self, state: State) -> list[Plain]:
        return [
            {
                "id": name,
                "kind": wait.kind,
                "status": wait.status,
                "agent": wait.agent,
                "task": wait.task,
                "text": wait.text,
                "choices": list(wait.choices),
                "until": time_or_null(wait.until),
                "opened_at": iso(wait.opened_at),
                "closed_at": time_or_null(wait.closed_at),
                **self._optional(details=wait.details, answer=wait.answer),
            }
            for name, wait in state.waits.items()
        ]

    def _effects(self, state: State) -> list[Plain]:
        return [
            {
                "id": name,
                "name": effect.name,
                "task": effect.task,
                "status": effect.status,
                "risky": effect.risky,
                "intended_at": iso(effect.intended_at),
                "settled_at": time_or_null(effect.settled_at),
                **self._optional(intent=effect.intent, outcome=effect.outcome),
            }
            for name, effect in state.effects.items()
        ]


def _atlas(state: State) -> Plain:
    """The orchestrator itself. Its own state is where the run stands."""
    last = next((d for d in reversed(list(state.decisions)) if d.agent == ATLAS), None)
    return {
        "type": ATLAS,
        "status": "active" if state.status not in TERMINAL | {"failed"} else state.status,
        "confidence": state.confidence.overall,
        "progress": _progress(state),
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


def _progress(state: State) -> float:
    """The share of tasks that are completed."""
    return state.completed_tasks / len(state.tasks) if len(state.tasks) else 0.0
