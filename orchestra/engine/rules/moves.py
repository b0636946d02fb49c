"""Moves: what Atlas does next, as a value, and the events they are made of."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import attrs

from orchestra.codec.values import freeze
from orchestra.engine.board import Group
from orchestra.engine.names import (
    ATLAS,
    EVALUATION,
    effect_key,
    errand_depth,
    evaluator,
    item_index,
    local_of,
    task_id,
)
from orchestra.engine.view import View
from orchestra.expressions.expression import template
from orchestra.expressions.names import TASK_NAMES
from orchestra.ids import AgentId, Instant, TaskId
from orchestra.model import events as ev
from orchestra.model.frozen import converter, maker
from orchestra.model.records import Decision, Failure, Role, Task
from orchestra.model.state import Cursor
from orchestra.model.workflow import Specialist


@attrs.frozen(kw_only=True)
class Rollback:
    """A rollback that is to be done, and why."""

    task: TaskId  # that failed; empty when a person wants to go back
    reason: str
    to: int | None = None  # the snapshot a person wants to go back to; None: the last good one
    alternatives: tuple[str, ...] = ()  # what else would have been tried
    command: int | None = None  # in the store, which it answers
    answer: Any = None  # who waits for it in this process


@attrs.frozen(kw_only=True)
class Move:
    """What to do next: events to apply, a time to look again, a rollback. Nothing when all are empty."""

    events: tuple[ev.Event, ...] = ()
    wake: Instant | None = None
    rollback: Rollback | None = None
    hold: bool = False  # nothing else may be begun until what is under way has ended


move_of: Final = maker(Move)
"""Makes a move; what every turn does several times is done quickly."""
NOTHING = Move()
HOLD = Move(hold=True)
planned_at: Final = converter(
    Cursor, ev.TaskPlanned, "at", "task", "agent", "by", "description", "effect_key", "key"
)
"""Makes an assignment of the visit and round in which a run stands."""
_launched: Final = maker(ev.AgentLaunched)
_PLANNED_FIELDS: Final = (
    "agent", "by", "phase", "visit", "round", "description", "effect_key", "key", "call",
)  # fmt: skip
_BEGINNINGS: frozenset[type] = frozenset({ev.TaskPlanned, ev.AgentLaunched})


def only_launches(events: tuple[ev.Event, ...]) -> bool:
    """Whether a move only begins work, which leaves nothing else to decide."""
    last = events[-1]
    if type(last) is not ev.AgentLaunched or errand_depth(local_of(last.task)):
        return False  # errands begin first, and others after them
    return _BEGINNINGS.issuperset(map(type, events))


def decision(
    view: View,
    now: Instant,
    kind: str,
    description: str,
    rationale: str,
    alternatives: Sequence[str] = (),
    *,
    details: Any = None,
    by: AgentId = ATLAS,
) -> ev.DecisionMade:
    """A decision, of Atlas's unless somebody else is named."""
    made = Decision(
        at=now,
        agent=by,
        kind=kind,
        description=description,
        rationale=rationale,
        confidence=view.state.confidence.overall,
        alternatives=tuple(alternatives),
        details=None if details is None else freeze(details, view.addresser),
    )
    return ev.DecisionMade(at=now, decision=made)


Basis: TypeAlias = tuple[dict[str, Any], list[Any]]
"""What all assignments of a group are made from: what their task names, and the results they need."""


def basis_of(view: View, text: str, specialist: Specialist | None) -> Basis:
    """What the assignments of a specialist are made from; raises `BadExpression`."""
    used = template(text, TASK_NAMES).names - {"item", "index"}
    return view.names(used, specialist), view.sources(specialist)


def plan_task(
    view: View, now: Instant, local: str, by: AgentId, text: str, basis: Basis, item: Any = None
) -> ev.TaskPlanned:
    """An assignment with its task rendered and its keys; raises `BadExpression`."""
    names, made_from = basis
    rendered = template(text, TASK_NAMES).render({**names, "item": item, "index": item_index(local)})
    return planned_at(
        view.state.cursor,
        at=now,
        task=task_id(view.state, local),
        agent=AgentId(local) if local != EVALUATION else evaluator(by),
        by=by,
        description=rendered,
        effect_key=effect_key(view.state, local),
        key=view.key(by, rendered, made_from, item),
    )


def plan_of(
    view: View, group: Group, index: int, now: Instant, *, by: AgentId | None = None
) -> ev.TaskPlanned:
    """One of a group's assignments as it is planned now; raises `BadExpression`."""
    specialist = group.specialist
    assert specialist is not None, "BUG: the evaluation is planned by itself"
    if group.basis is None:
        group.basis = basis_of(view, specialist.task, specialist)
    item = group.items[index] if specialist.foreach is not None else None
    local, by = group.local(index), by or specialist.agent
    return plan_task(view, now, local, by, specialist.task, group.basis, item)


def replan_task(name: TaskId, task: Task, now: Instant, **changes: Any) -> ev.TaskPlanned:
    """An assignment planned as it was, but for `changes`, as if nothing had been tried."""
    fields = {each: getattr(task, each) for each in _PLANNED_FIELDS}
    return ev.TaskPlanned(at=now, task=name, **fields | changes)


def launch_event(now: Instant, event: ev.TaskPlanned, role: Role = "mercury") -> ev.AgentLaunched:
    """The first attempt at an assignment that was just planned."""
    return _launched(at=now, agent=event.agent, task=event.task, attempt=1, role=role)


def relaunch_event(now: Instant, name: TaskId, task: Task, role: Role) -> ev.AgentLaunched:
    """A further attempt at an assignment."""
    return _launched(at=now, agent=task.agent, task=name, attempt=task.attempts + 1, role=role)


def end_event(now: Instant, outcome: str, reason: str = "", failure: Failure | None = None) -> ev.RunEnded:
    """The end of the run."""
    return ev.RunEnded(at=now, outcome=outcome, reason=reason, failure=failure)  # type: ignore[arg-type]


def failed_end(now: Instant, reason: str, error: str = "WorkflowFailed") -> ev.RunEnded:
    """The end of a run that cannot go on for a reason of its own."""
    failure = Failure(error=error, message=reason, at=now, recoverable=True)
    return end_event(now, "failed", reason, failure)
