"""Ordering: what people want of a run that is not played here."""

import anyio
import anyio.to_thread

from orchestra.app.mailbox import send_order
from orchestra.app.workbench import Workbench
from orchestra.engine import orders
from orchestra.engine.orders import Order
from orchestra.engine.rollback import RollbackPlan, plan_rollback, roll_back, way_back
from orchestra.ids import RunId
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all


async def carry_out(bench: Workbench, run: RunId, order: Order, patience: float) -> None:
    """Have something done with a run that another process plays, or nobody; raises `BadOrder` or `RunOwned`.

    A run that nobody plays is claimed, changed and given up again.
    """
    manager = bench.manager
    owned = await anyio.to_thread.run_sync(lambda: manager.archive.run(run).owned)
    if owned:
        clean = await _checked(bench, run, order)
        if await send_order(manager, run, clean, bench.clock.now(), patience):
            return
    active = await manager.restore(run)
    try:
        desk = await bench.desk(active.state)
        if order.kind == "rollback":
            await roll_back(manager, active, desk, order)
            return
        events = orders.events_of(desk, order, live=False)
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


async def _checked(bench: Workbench, run: RunId, order: Order) -> Order:
    """The order without secrets; raises `BadOrder` for what who plays the run would only note down."""
    desk = await bench.desk((await bench.manager.look(run)).state)
    if order.kind == "rollback":
        orders.check_open(desk.view.state, order)
        await way_back(bench.manager, run, orders.snapshot_number(order))
    else:
        orders.events_of(desk, order, live=True)
    return orders.without_secrets(desk, order)
