"""What a rollback takes along: what was spent, and the results that are kept."""

from collections.abc import Sequence

import attrs

from orchestra.ids import TaskId
from orchestra.model.apply.work import is_open_failure
from orchestra.model.state import State


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
