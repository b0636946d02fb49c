"""Errands: assignments that an agent gives to another agent of the workflow in the middle of its own.

An errand is found again by the tool call that asks for it and by its key, which is made from its caller's. So
it outlives its caller's attempts, and ends when its caller is done or is to do something else.
"""

from itertools import count

import attrs

from orchestra.engine.board import Board
from orchestra.engine.names import effect_key, errand_depth, errand_name, local_of, task_id
from orchestra.engine.rules.moves import NOTHING, Move, decision, move_of, planned_at
from orchestra.engine.view import View
from orchestra.ids import AgentId, Digest, Instant, TaskId
from orchestra.limits import ERRAND_DEPTH, ERRANDS
from orchestra.model import events as ev
from orchestra.model.records import Task
from orchestra.ports.agent import Errand

_OPEN = frozenset({"pending", "running", "failed"})


def outdated_errands(view: View, board: Board, now: Instant) -> Move:
    """Errands that nobody waits for any more are not gone on with."""
    if not board.callers:
        return NOTHING
    gone = [name for name, caller in board.callers.items() if not _is_wanted(view, name, caller)]
    reason = "whoever asked for it does not need it any more"
    return move_of(
        events=tuple(ev.TaskRetired(at=now, task=name, outcome="retired", reason=reason) for name in gone)
    )


def _is_wanted(view: View, name: TaskId, caller: TaskId) -> bool:
    errand, asking = view.state.tasks[name], view.state.tasks.get(caller)
    if asking is None or asking.status not in _OPEN or errand.by not in view.index.agents:
        return False
    return errand.key == _key(view, asking, errand.by, errand.description)


def _key(view: View, caller: Task, agent: AgentId, text: str) -> Digest:
    return view.key(agent, text, [None if caller.key is None else caller.key.hex()])


def find_errand(
    view: View, caller: TaskId, agent: AgentId, text: str, call: str
) -> tuple[TaskId | None, str]:
    """The errand that a tool call asked for, and the local name that it would have if it is to be given."""
    key = _key(view, view.state.tasks[caller], agent, text)
    for number in count(1):
        local = errand_name(local_of(caller), agent, number)
        held = view.state.tasks.get(task_id(view.state, local))
        if held is None:
            return None, local
        if held.call == call and held.key == key and held.status != "retired":
            return task_id(view.state, local), local
    raise AssertionError("BUG: numbers do not end")


def errand_events(
    view: View, now: Instant, caller: TaskId, agent: AgentId, text: str, call: str
) -> tuple[ev.Event, ...]:
    """The decision to give an errand, and the errand."""
    asking = view.state.tasks[caller]
    _, local = find_errand(view, caller, agent, text, call)
    what, why = f"Give {agent} an errand: {local}", f"{local_of(caller)} asks for it: {text}"[:2000]
    planned = planned_at(
        view.state.cursor,
        at=now,
        task=task_id(view.state, local),
        agent=AgentId(local),
        by=agent,
        description=text,
        effect_key=effect_key(view.state, local),
        key=_key(view, asking, agent, text),
    )
    chosen = decision(view, now, "errand", what, why, ("refuse the call",))
    return chosen, attrs.evolve(planned, call=call)


def errand_refusal(view: View, caller: TaskId, agent: AgentId, local: str) -> str:
    """Why an errand cannot be given; empty when it can."""
    by = view.state.tasks[caller].by
    if by is None or agent not in view.index.agents[by].calls:
        return f"{by} may not give errands to {agent}"
    if errand_depth(local) > ERRAND_DEPTH:
        return f"{ERRAND_DEPTH} assignments wait for one another already, and more may not"
    if local.rpartition(".")[2] == str(ERRANDS + 1):
        return f"{local_of(caller)} gave {agent} {ERRANDS} errands already, and may not give more"
    return ""


def errand_outcome(view: View, name: TaskId) -> Errand | None:
    """What came of an errand; None while it goes on."""
    task = view.state.tasks[name]
    if task.status in _OPEN:
        return None
    if task.status == "completed":
        return Errand(output=view.open_value(task.result), confidence=task.confidence)
    failure = task.failure
    return Errand(error=task.status if failure is None else f"{failure.error}: {failure.message}")
