"""The parts of a snapshot's JSON form that hold no values of users: all is known from the state itself."""

from typing import Any

from orchestra.ids import Digest, Instant, iso
from orchestra.limits import MB
from orchestra.model.parts import Evaluation
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import State

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
