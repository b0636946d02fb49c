"""Plans: what forking a run or going on with it would mean, before anything is done."""

from collections.abc import Mapping
from typing import Any

import attrs

from orchestra.app.orchestra import Orchestra
from orchestra.engine.rollback import effects_since
from orchestra.ids import RunId, TaskId
from orchestra.model.apply.apply import apply_all
from orchestra.model.state import State

_DONE = frozenset({"completed", "skipped", "retired", "abandoned"})


@attrs.frozen(kw_only=True)
class ActionPlan:
    """What would be done again, and what would not."""

    run: RunId
    at: int  # the snapshot it begins with
    phase: str | None
    kept: tuple[TaskId, ...]  # results that stay valid
    undone: tuple[TaskId, ...]  # results that the changed values make invalid
    again: tuple[TaskId, ...]  # assignments of the current phase that are done, or done again
    effects: tuple[str, ...]  # done to the outside world since, and not undone
    tokens: int  # what the run has spent since then
    cost_micros: int


async def plan_fork(house: Orchestra, run: RunId, seq: int, values: Mapping[str, Any]) -> ActionPlan:
    """What a fork at a snapshot with some values changed would do; raises what `fork` raises."""
    base, head = await house.manager.look(run, seq), await house.manager.look(run)
    state = base.state
    if values:
        stored = await house.stored_definition(state)
        state = apply_all(state, house.workbench.edits(state, stored, values, False))
    before, after = _completed(base.state), _completed(state)
    return ActionPlan(
        run=run,
        at=seq,
        phase=state.cursor.phase,
        kept=tuple(sorted(after)),
        undone=tuple(sorted(before - after)),
        again=tuple(_open(state)),
        effects=tuple(effects_since(head.state, base.state)),
        tokens=head.state.metrics.tokens - base.state.metrics.tokens,
        cost_micros=head.state.metrics.cost_micros - base.state.metrics.cost_micros,
    )


async def plan_resume(house: Orchestra, run: RunId) -> ActionPlan:
    """What going on with a run would do."""
    return await plan_fork(house, run, (await house.manager.look(run)).header.seq, {})


def _completed(state: State) -> set[TaskId]:
    return {TaskId(name) for name, task in state.tasks.items() if task.status == "completed"}


def _open(state: State) -> list[TaskId]:
    """Assignments of the current visit that are not done."""
    cursor = state.cursor
    return [
        TaskId(name)
        for name, task in state.tasks.items()
        if (task.phase, task.visit) == (cursor.phase, cursor.visit) and task.status not in _DONE
    ]
