"""Ordering: what people want of a run that is not played here."""

import anyio
import anyio.to_thread

from orchestra.app.post import send_order
from orchestra.app.workbench import Workbench
from orchestra.checkpoint.active import ActiveRun
from orchestra.engine import orders
from orchestra.engine.orders import Order
from orchestra.engine.recovery import RollbackPlan, plan_rollback, way_back
from orchestra.ids import RunId
from orchestra.model import events as ev
from orchestra.model.apply import apply_all
from orchestra.model.workflow import Workflow


async def carry_out(bench: Workbench, run: RunId, order: Order, patience: float) -> None:
    """Have something done with a run that another process plays, or nobody; raises `BadOrder` or `RunOwned`.

    A run that nobody plays is claimed, changed and given up again.
    """
    manager = bench.manager
    owned = await anyio.to_thread.run_sync(lambda: manager.archive.run(run).owned)
    if owned:
        await _check(bench, run, order)
        if await send_order(manager, run, order, bench.clock.now(), patience):
            return
    active = await manager.restore(run)
    try:
        loaded = await bench.stored_definition(active.state)
        if order.kind == "rollback":
            await _rolled_back(bench, active, loaded.workflow, order)
            return
        events = orders.events_of(bench.desk(loaded.workflow, active.state), order, live=False)
        if active.state.status != "running" and apply_all(active.state, events).status == "running":
            events = (*events, ev.RunPaused(at=bench.clock.now(), reason=orders.READY))
        await manager.record(active, events)
    finally:
        with anyio.CancelScope(shield=True):
            await manager.release(active)


async def rollback_plan(bench: Workbench, run: RunId, to: int | None) -> RollbackPlan:
    """What going back would undo, keep and pay again, without doing it."""
    head = await bench.manager.look(run)
    loaded = await bench.stored_definition(head.state)
    return await plan_rollback(bench.manager, run, loaded.workflow, to)


async def _check(bench: Workbench, run: RunId, order: Order) -> None:
    """Refuse here what the process that plays the run would only note down; raises `BadOrder`."""
    state = (await bench.manager.look(run)).state
    if order.kind == "rollback":
        orders.check_open(state, order)
        await way_back(bench.manager, run, orders.snapshot_number(order))
        return
    loaded = await bench.stored_definition(state)
    orders.events_of(bench.desk(loaded.workflow, state), order, live=True)


async def _rolled_back(bench: Workbench, active: ActiveRun, workflow: Workflow, order: Order) -> None:
    to = await way_back(bench.manager, active.run, orders.snapshot_number(order))
    plan = await plan_rollback(bench.manager, active.run, workflow, to)
    await bench.manager.rollback(
        active,
        plan.to,
        reason=bench.redactor.text(order.reason) or f"it was {orders.ASKED_FOR}",
        kept=plan.kept,
        confidence_factor=workflow.policy.confidence.rollback_factor,
        more=(ev.RunPaused(at=bench.clock.now(), reason="rolled back, not resumed yet"),),
    )
