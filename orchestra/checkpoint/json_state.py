"""A snapshot as plain data under the names of the JSON form. What a run does not have is left out or null."""

import base64
from typing import Any, Final

from orchestra.checkpoint.json_parts import (
    confidence_part,
    cursor_part,
    environment_part,
    evaluation_part,
    hex_or_null,
    metrics_part,
    outputs_part,
    path_part,
    rollbacks_part,
    snapshot_part,
    time_or_null,
)
from orchestra.checkpoint.json_values import LargeValue
from orchestra.codec.address import Addresser
from orchestra.codec.loader import Loader
from orchestra.codec.values import freeze, thaw
from orchestra.ids import iso, uuid_of
from orchestra.model.parts import AgentState, Decision, Failure, Message, Task
from orchestra.model.reducers import Appended, ContextValue, Largest, Merged, Replaced, Summed
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import FINAL, State
from orchestra.model.value import Value

Plain = dict[str, Any]

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
            "resumable": state.resumable,
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
        "status": "active" if state.status not in FINAL | {"failed"} else state.status,
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
