"""Events as JSON objects, one per line; `docs/reference/commands.md` describes them."""

from typing import Any

import attrs

from orchestra.history.describe import event_json
from orchestra.ids import iso
from orchestra.model import events as ev
from orchestra.model.headline import headline
from orchestra.ports.sink import TurnRecorded


def line_json(notice: TurnRecorded, event: ev.Event) -> dict[str, Any]:
    """An event of a turn, with where the run stands after it."""
    state = notice.state
    return {
        "run": notice.run,
        "seq": notice.header.seq,
        "at": iso(event.at),
        **event_json(headline(event, state)),
        "status": state.status,
        "phase": state.cursor.phase,
        "details": _details(event),
    }


def _details(event: ev.Event) -> dict[str, Any]:
    match event:
        case ev.DecisionMade(decision=decision):
            names = ("kind", "description", "rationale", "confidence", "alternatives")
            return {name: _plain(getattr(decision, name)) for name in names}
        case ev.TaskFailed(failure=failure):
            return {
                "task": event.task,
                "error": failure.error,
                "message": failure.message,
                "recoverable": failure.recoverable,
            }
        case ev.WaitOpened():
            return {
                "wait": event.wait,
                "waits_for": event.waits_for,
                "text": event.text,
                "choices": list(event.choices),
            }
        case ev.OutputWritten(output=output):
            return {"path": event.path, "digest": output.digest.hex(), "size": output.size}
        case ev.EvaluationCompleted(verdict=verdict):
            return {
                "verdict": verdict.kind,
                "score": verdict.score,
                "feedback": verdict.feedback,
                "issues": [attrs.asdict(each) for each in event.issues],
            }
        case ev.TaskCompleted() | ev.AgentLaunched() | ev.TaskPlanned() | ev.TaskRetired():
            return {"task": event.task}
        case ev.TextEmitted():
            return {"text": event.text}
        case _:
            return {}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
