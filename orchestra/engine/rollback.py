"""Rollback: where to go back to, and which results are kept.

A result is kept when it belongs to the visit and round that the run goes back to, nothing it depends on is
done again, and the rollback does not blame it. What a failed assignment needed is blamed, too. Other items of
a `foreach` are kept also when what they need is done again; `rules.kept_items` looks at their keys then.
"""

from collections.abc import Iterable, Iterator

import attrs

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager, undone_tasks
from orchestra.engine.agents.mercury import Desk
from orchestra.engine.names import caller_of, local_of, specialist_name
from orchestra.engine.orders import ASKED_FOR, Order, snapshot_number
from orchestra.engine.view import View
from orchestra.errors import BadOrder, DamageError, OrchestraError, UnknownSnapshot, UsageError
from orchestra.ids import RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.state import State
from orchestra.model.workflow import Specialist, Workflow


@attrs.frozen(kw_only=True)
class RollbackPlan:
    """What going back would mean, before it is done."""

    run: RunId
    head: int
    to: int
    phase: str | None  # where the run would be
    undone: tuple[TaskId, ...]  # results that would be lost and made again
    kept: tuple[TaskId, ...]
    effects: tuple[str, ...]  # done to the outside world since, and not undone
    tokens: int  # spent since
    cost_micros: int


async def plan_rollback(
    manager: CheckpointManager, run: RunId, workflow: Workflow, to: int | None, blamed: TaskId | None = None
) -> RollbackPlan:
    """What going back to a snapshot, by default the last good one, would mean; raises `UnknownSnapshot`."""
    head, target = await manager.look(run), await manager.rollback_target(run, to)
    view = View(workflow, head.state, manager.archive.value, manager.addresser)
    kept = kept_results(view, target.state, blamed) if blamed is not None else ()
    spent, was = head.state.metrics, target.state.metrics
    return RollbackPlan(
        run=run,
        head=head.header.seq,
        to=target.header.seq,
        phase=target.state.cursor.phase,
        undone=undone_tasks(head.state, target.state, kept),
        kept=kept,
        effects=tuple(effects_since(head.state, target.state)),
        tokens=spent.tokens - was.tokens,
        cost_micros=spent.cost_micros - was.cost_micros,
    )


async def way_back(manager: CheckpointManager, run: RunId, to: int | None) -> int:
    """The snapshot that a person's rollback would go to, by default the last good one; raises `BadOrder`."""
    try:
        return (await manager.rollback_target(run, to)).header.seq
    except (UsageError, DamageError) as error:
        raise no_way_back(error) from error


async def roll_back(manager: CheckpointManager, active: ActiveRun, desk: Desk, order: Order) -> None:
    """Take back a run that nobody plays, as somebody ordered, and leave it so; raises `BadOrder`."""
    workflow = desk.view.workflow
    to = await way_back(manager, active.run, snapshot_number(order))
    plan = await plan_rollback(manager, active.run, workflow, to)
    await manager.rollback(
        active,
        plan.to,
        reason=desk.text(order.reason) or f"it was {ASKED_FOR}",
        kept=plan.kept,
        confidence_factor=workflow.policy.confidence.rollback_factor,
        more=(ev.RunPaused(at=desk.now, reason="rolled back, not resumed yet"),),
    )


def no_way_back(error: OrchestraError) -> BadOrder:
    """A rollback that was asked for and cannot be, in a sentence."""
    reason = str(error).rstrip(".")
    if isinstance(error, UnknownSnapshot):
        reason = f"there is no snapshot {error.data['reference']}: {error.data['reason']}"
    return BadOrder(order="rollback", reason=reason)


def effects_since(state: State, target: State) -> Iterator[str]:
    """What was done to the outside world after an earlier state of a run."""
    for name, effect in state.effects.items():
        if effect.status in ("done", "unknown", "intended") and name not in target.effects:
            yield f"{effect.name} ({effect.task}): {effect.status}"


def kept_results(view: View, target: State, blamed: TaskId | None) -> tuple[TaskId, ...]:
    """The assignments whose results stay, although the run goes back to `target`."""
    here, there = view.state.cursor, target.cursor
    if view.phase is None or (there.phase, there.visit, there.round) != (here.phase, here.visit, here.round):
        return ()
    done = [name for specialist in view.phase.specialists for name, _ in view.tasks(specialist)]
    before = {name for name, task in target.tasks.items() if task.status == "completed"}
    kept = [name for name in tasks_not_redone(view, done, blamed) if name not in before]
    for name, task in view.current_tasks().items():  # errands stay with the results they led to
        if task.call is not None and task.status == "completed" and caller_of(name) in kept:
            kept.append(name)
    return tuple(kept)


def tasks_not_redone(view: View, tasks: Iterable[TaskId], blamed: TaskId | None) -> Iterator[TaskId]:
    """Those of the current visit's assignments that are not done again when the run goes back.

    Of a `foreach` in which one item failed, the others are among them.
    """
    failed = None if blamed is None else view.specialist(specialist_name(local_of(blamed)))
    redone = _redone(view, failed, blamed)
    items = failed.id if failed is not None and failed.foreach is not None else None
    for name in tasks:
        group = specialist_name(local_of(name))
        if group not in redone or (group == items and name != blamed):
            yield name


def _redone(view: View, failed: Specialist | None, blamed: TaskId | None) -> set[str]:
    """Specialists whose work is done again: the blamed one, what it needed, and all that needs those."""
    assert view.phase is not None, "BUG: a rollback is within a phase here"
    specialists = view.phase.specialists
    if failed is None:
        return {each.id for each in specialists} if blamed is None else set()
    redone = {failed.id, *failed.needs}
    while more := {each.id for each in specialists if redone & set(each.needs)} - redone:
        redone |= more
    return redone
