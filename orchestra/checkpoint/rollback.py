"""What a rollback records: its event, and the state it leads to."""

from collections.abc import Collection, Sequence

import attrs

from orchestra.checkpoint.active import ActiveRun
from orchestra.ids import Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.apply.work import is_open_failure
from orchestra.model.snapshot import Snapshot
from orchestra.model.state import State


def undone_tasks(current: State, target: State, kept: Collection[TaskId]) -> tuple[TaskId, ...]:
    """The completed tasks whose results are lost by going back to `target`, sorted."""
    done, before = (
        {TaskId(name) for name, task in state.tasks.items() if task.status == "completed"}
        for state in (current, target)
    )
    return tuple(sorted(done - before - set(kept)))


def rollback_event(
    active: ActiveRun,
    target: Snapshot,
    now: Instant,
    reason: str,
    kept: Sequence[TaskId] = (),
    blamed: TaskId | None = None,
    factor: float = 1.0,
) -> ev.RolledBack:
    """The event that puts a rollback on the record."""
    return ev.RolledBack(
        at=now,
        from_seq=active.seq,
        to_seq=target.header.seq,
        reason=reason,
        generation=active.state.generation + 1,
        kept=tuple(kept),
        undone=undone_tasks(active.state, target.state, kept),
        blamed=blamed,
        confidence_factor=factor,
    )


def state_after_rollback(target: State, current: State, kept: Sequence[TaskId]) -> State:
    """The target's state with what a rollback never takes back, and the tasks that are kept.

    With a task stay the agent that did it, the outputs it wrote and what it did to the outside world.
    """
    tasks, agents, outputs, effects = target.tasks, target.agents, target.outputs, target.effects
    for task in kept:
        tasks = tasks.set(task, current.tasks[task])
        agent = current.tasks[task].agent
        if agent in current.agents:
            agents = agents.set(agent, current.agents[agent])
    for path, output in current.outputs.items() if kept else ():
        if output.task in kept:
            outputs = outputs.set(path, output)
    for name, effect in current.effects.items() if kept else ():
        if effect.task in kept:
            effects = effects.set(name, effect)
    return attrs.evolve(
        target,
        tasks=tasks,
        agents=agents,
        outputs=outputs,
        effects=effects,
        completed_tasks=sum(task.status == "completed" for task in tasks.values()),
        open_failures=sum(is_open_failure(task) for task in tasks.values()),
        metrics=current.metrics,
        rollbacks=current.rollbacks,
    )
