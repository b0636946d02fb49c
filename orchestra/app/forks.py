"""Forking: a new run that begins at a snapshot of another."""

import secrets
from collections.abc import Mapping
from typing import Any

from orchestra.app.definitions import Definition, load_definition
from orchestra.app.workbench import Workbench
from orchestra.engine import orders
from orchestra.errors import BadOrder
from orchestra.ids import RunId, new_run_id, run_id
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all


async def fork(
    bench: Workbench,
    source: RunId,
    seq: int | None,
    *,
    new: str | None,
    values: Mapping[str, Any],
    workflow: Definition | None,
    reason: str,
) -> RunId:
    """Begin a run at a snapshot of another, with some values or the workflow changed; returns its id."""
    manager = bench.manager
    base = await manager.look(source, seq)
    now = bench.clock.now()
    stored = await bench.stored_definition(base.state)
    bench.view_with_secrets(stored.workflow, base.state)
    chosen = stored if workflow is None else load_definition(workflow)
    name = run_id(new) if new else new_run_id(chosen.workflow.name, now, secrets.token_bytes(4))
    at = base.header.seq
    if base.state.status == "completed":
        left = f"nothing is left to do at {source}@{at}; fork from an earlier snapshot"
        raise BadOrder(order="fork", reason=left)
    forked = ev.Forked(at=now, run=name, from_run=source, from_seq=at, from_digest=base.digest)
    more = bench.edits(apply_all(base.state, (forked,)), chosen, values, workflow is not None)
    active = await manager.fork(source, at, name, reason=bench.redactor.text(reason), more=more)
    paused = ev.RunPaused(at=bench.clock.now(), reason=orders.FORKED)
    await manager.record(active, (paused,))
    await manager.release(active)
    return name
