"""A glance: status, phase, counts and last decision of a run, read without its state.

The newest header has them all but the decision, and says which snapshot brought that. So a glance opens one
patch or one leaf, however large the state is, and proves it by its digests and links.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from orchestra.codec.frame import FORMAT
from orchestra.codec.header import ending_note, link, open_header
from orchestra.codec.readers import structure
from orchestra.errors import Damaged, OrchestraError
from orchestra.history.archive import Archive, operations_on
from orchestra.ids import Instant, RunId
from orchestra.model.records import Decision, Metrics
from orchestra.model.tree import Vec
from orchestra.ports.store import Row


@attrs.frozen(kw_only=True)
class Glance:
    """A run at its newest snapshot, in short."""

    run: RunId
    seq: int
    at: Instant
    status: str
    phase: str | None
    confidence: float | None
    tasks: int
    decisions: int  # in the newest state
    generation: int
    last_decision: Decision | None
    note: str = ""  # what the end of the run adds to its outcome


def glance(archive: Archive, run: RunId) -> Glance:
    """A look at the newest snapshot of a run; raises `UnknownRun`, `Damaged` or `MissingObject`."""
    row = archive.newest(run)
    plain = _prove_header(archive, row)
    match plain.get("counts"):
        case None:  # written before anything was counted
            part = archive.part_of(row, ("tasks", "decisions"))
            made = part.get("decisions", ())
            tasks, decisions = len(part.get("tasks", ())), len(made)
            last = _decision(row, made[-1]) if made else None
        case [int(tasks), int(decisions), int() | None as ago]:
            last = _last_decision(archive, row, plain, ago) if decisions else None
        case _:
            raise Damaged(what=f"snapshot {run}@{row.seq}", reason="its counts are not three numbers")
    return Glance(
        run=row.run,
        seq=row.seq,
        at=row.at,
        status=row.status,
        phase=row.phase,
        confidence=plain.get("confidence"),
        tasks=tasks,
        decisions=decisions,
        generation=int(plain.get("generation") or 0),
        last_decision=last,
        note=ending_note(plain),
    )


def _prove_header(archive: Archive, row: Row) -> dict[str, Any]:
    """The plain fields of a row's header, of which those that are looked at agree with the row's columns."""
    what = f"snapshot {row.run}@{row.seq}"
    plain = open_header(row.digest, row.header, archive.framer, what=what)
    for name in ("run", "seq", "at", "status", "phase", "parent", "seal", "sealed_at"):
        if plain.get(name) != getattr(row, name):
            raise Damaged(what=what, reason=f"its {name} in the index is not the one in its header")
    if not isinstance(plain.get("confidence"), float | int | None):
        raise Damaged(what=what, reason="its confidence is no number")
    return plain


def _last_decision(archive: Archive, row: Row, plain: dict[str, Any], ago: int | None) -> Decision:
    pushed: Sequence[Any] | Vec[Any] = ()
    if ago == 0:
        pushed = _added_decisions(archive.open_step(row, row.parent, link(plain, "patch")).operations)
    elif ago is not None and 0 < ago < row.seq - row.sealed_at:
        pushed = _added_earlier(archive, row, row.seq - ago)
    elif ago is not None and not row.pruned:
        version, document = archive.loader.root(row.seal)
        pushed = document.get("decisions", ()) if version == FORMAT else ()
    if not pushed:
        pushed = archive.part_of(row, ("decisions",)).get("decisions", ())
    if not pushed:
        raise Damaged(what=f"snapshot {row.run}@{row.seq}", reason="its header counts decisions it has not")
    return _decision(row, pushed[-1])


def _added_earlier(archive: Archive, row: Row, seq: int) -> list[Any]:
    """What the patch of an earlier row pushed; raises `Damaged` when no links lead back to it."""
    rows = archive.before(row, seq)
    parent, patch = row.parent, None
    for earlier in reversed(rows):
        if earlier.digest != parent:
            what = f"snapshot {row.run}@{earlier.seq + 1}"
            raise Damaged(what=what, reason="it does not follow its parent")
        what = f"snapshot {row.run}@{earlier.seq}"
        plain = open_header(earlier.digest, earlier.header, archive.framer, what=what)
        parent, patch = link(plain, "parent"), link(plain, "patch")
    if rows[0].pruned:
        return []
    return _added_decisions(archive.open_step(rows[0], parent, patch).operations)


def _added_decisions(operations: list[Any]) -> list[Any]:
    """The decisions that a patch added, unless it changed decisions in any other way."""
    match operations_on(operations, ("decisions",)):
        case [["push", ["decisions"], [*items]]]:
            return items
        case _:
            return []


def _decision(row: Row, plain: Any) -> Decision:
    return structure(plain, Decision, what=f"the last decision of {row.run}@{row.seq}")


def spent_by(archive: Archive, run: RunId) -> Metrics | None:
    """What a run has spent so far, read from as little as possible; None when it cannot be read."""
    try:
        part = archive.part_of(archive.newest(run), ("metrics",))
        return structure(part["metrics"], Metrics, what=f"run {run}") if "metrics" in part else Metrics()
    except OrchestraError:
        return None
