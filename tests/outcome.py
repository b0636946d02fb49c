"""The outcome digest: what must be equal between an undisturbed run and one that was recovered.

It covers the status, the path of phases, results by assignment, context, outputs and verdicts. It leaves out
times, ids of runs, and counts of attempts, tokens and recoveries. Large values are told by their digests, so
outcomes are compared within one store, or between stores without an address key.
"""

from collections.abc import Iterator
from typing import Any

from orchestra.codec.address import Addresser
from orchestra.codec.values import address_of_parts
from orchestra.ids import Digest
from orchestra.model.records import Evaluation
from orchestra.model.reducers import Appended, ContextValue, Largest, Merged, Replaced, Summed
from orchestra.model.state import State
from orchestra.model.value import Value


def outcome_digest(state: State) -> Digest:
    """The digest of what came of a run."""
    return address_of_parts(list(outcome_parts(state)), Addresser())


def outcome_parts(state: State) -> Iterator[list[Any]]:
    """What the digest is made of; also good to see in what two outcomes differ."""
    yield ["status", state.status]
    yield ["path", [[each.phase, each.visit, each.completed_at is not None] for each in state.path]]
    done = [[name, task.status, _identity(task.result)] for name, task in state.tasks.items()]
    yield ["results", sorted(done, key=_by_name)]
    yield ["context", sorted(([name, _held(value)] for name, value in state.context.items()), key=_by_name)]
    made = [[path, each.digest, each.media_type, each.size] for path, each in state.outputs.items()]
    yield ["outputs", sorted(made, key=_by_name)]
    judged = [[name, _verdicts(each)] for name, each in state.evaluations.items()]
    yield ["verdicts", sorted(judged, key=_by_name)]


def _by_name(part: list[Any]) -> str:
    return str(part[0])


def _verdicts(evaluation: Evaluation) -> list[Any]:
    rounds = [
        [each.round, each.verdict.kind, each.verdict.score, each.verdict.feedback]
        for each in evaluation.iterations
    ]
    return [rounds, [[each.criterion, each.score, each.weight] for each in evaluation.scores]]


def _held(value: ContextValue) -> list[Any]:
    match value:
        case Replaced():
            return [value.reducer, _identity(value.value)]
        case Appended():
            return [value.reducer, [_identity(item) for item in value.items]]
        case Merged():
            return [value.reducer, [[key, _identity(item)] for key, item in value.entries.items()]]
        case Summed():
            return [value.reducer, value.total]
        case Largest():
            return [value.reducer, value.largest]


def _identity(value: Value | None) -> bytes | None:
    return None if value is None else value.digest or value.encoded
