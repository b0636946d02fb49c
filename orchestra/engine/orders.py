"""Orders: what people want of a run, as data that travels through the store to whoever owns it."""

import json
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias, assert_never, get_args

import attrs

from orchestra.engine.agents.mercury import Desk
from orchestra.engine.names import caller_of
from orchestra.engine.rules.moves import end_event, replan_task
from orchestra.errors import BadOrder, OrchestraError
from orchestra.history.describe import headline_text
from orchestra.ids import Instant
from orchestra.limits import TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.records import Wait, WaitKind
from orchestra.model.snapshot import Headline
from orchestra.model.state import TERMINAL, State
from orchestra.model.value import is_storable_text
from orchestra.ports.agent import EDITABLE

OrderKind: TypeAlias = Literal[
    "pause", "resume", "cancel", "snapshot", "answer", "provide", "retry", "rollback"
]
READY: Final = "what it waited for is there, not resumed yet"
"""Why a run is paused that could go on if somebody played it."""
FORKED: Final = "forked, not started yet"
"""Why a run is paused that began at a snapshot of another and was never played."""
ASKED_FOR: Final = "asked for"
"""Why something is done with a run when a person wants it and does not say why."""
ORDER_KINDS: Final[tuple[str, ...]] = get_args(OrderKind)


@attrs.frozen(kw_only=True)
class Order:
    """What somebody wants of a run; raises `BadOrder` when its words are no text."""

    kind: OrderKind
    target: str = ""  # the wait to answer, the name to provide, the task to retry, the snapshot to go back to
    value: Any = None  # the answer
    reason: str = ""

    def __attrs_post_init__(self) -> None:
        for given in (self.target, self.reason, self.value):
            if isinstance(given, str) and not is_storable_text(given):
                what = f"{given[:40]!r} is no text: it holds half of a character, or a byte that is not UTF-8"
                raise BadOrder(order=self.kind, reason=what)


def write_order(order: Order) -> bytes:
    """An order as bytes; raises `BadOrder` when its value is no data that can be sent."""
    try:
        return json.dumps(attrs.asdict(order), ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"its value cannot be sent ({type(error).__name__})"
        raise BadOrder(order=order.kind, reason=reason) from None


def read_order(body: bytes) -> Order:
    """An order from bytes; raises `BadOrder`."""
    try:
        order = Order(**json.loads(body))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadOrder(order="command", reason=f"it cannot be read ({type(error).__name__})") from None
    texts: tuple[object, ...] = (order.target, order.reason)
    short = all(isinstance(each, str) and len(each) <= TEXT_CHARS for each in texts)
    if order.kind not in ORDER_KINDS or not short:
        raise BadOrder(order=str(order.kind)[:40], reason="there is no such order")
    return order


def events_of(desk: Desk, order: Order, *, live: bool) -> tuple[ev.Event, ...]:
    """An order as events; raises `BadOrder` when the run is not where it would make sense.

    `live` says that attempts are under way in this process, which go on.
    """
    state = desk.view.state
    check_open(state, order)
    match order.kind:
        case "pause" if state.status == "failed":
            raise BadOrder(order="pause", reason="the run is failed")
        case "pause":
            return (ev.RunPaused(at=desk.now, reason=desk.text(order.reason) or ASKED_FOR),)
        case "resume":
            closed = breakpoint_closings(state, desk.now)
            if live:
                return (ev.RunResumed(at=desk.now, reason=ASKED_FOR, live=True), *closed)
            if not closed:
                raise BadOrder(order="resume", reason="no process plays the run; `orchestra resume` does")
            return closed
        case "cancel":
            return (end_event(desk.now, "cancelled", desk.text(order.reason)),)
        case "snapshot":
            return (ev.SnapshotRequested(at=desk.now, why="user_requested", note=desk.text(order.reason)),)
        case "answer":
            return (_answer(desk, order),)
        case "provide":
            waits = _open_waits(state, "dependency").items()
            met = tuple(ev.WaitClosed(at=desk.now, wait=name) for name, w in waits if w.text == order.target)
            if not met:
                raise BadOrder(order="provide", reason=f"the run does not wait for {order.target!r}")
            return met
        case "retry":
            return (_retry(desk, order.target),)
        case "rollback":
            raise AssertionError("BUG: a rollback is not made of events alone")
        case _:
            assert_never(order.kind)


def without_secrets(desk: Desk, order: Order) -> Order:
    """An order as it may lie in the store until somebody takes it in."""
    return attrs.evolve(order, value=desk.redactor.value(order.value), reason=desk.text(order.reason))


def refusal(command: int, error: OrchestraError) -> str:
    """How a run notes down that it refused a command of the store."""
    kind, reason = error.data.get("order", "command"), error.data.get("reason", error)
    return f"refused order {command}, {kind}: {reason}"[:500]


def refusal_reason(command: int, lines: Iterable[Headline]) -> str | None:
    """The reason for which a command was refused, if these lines say so."""
    begins = f"user_requested: refused order {command}, "
    found = (headline_text(line) for line in lines if line.kind == "snapshot_requested")
    told = (what.removeprefix(begins) for what in found if what.startswith(begins))
    return next((what.partition(": ")[2] for what in told), None)


def check_open(state: State, order: Order) -> None:
    """Raise `BadOrder` when the run is over."""
    if state.status in TERMINAL and order.kind != "snapshot":
        raise BadOrder(order=order.kind, reason=f"the run is {state.status}")


def snapshot_number(order: Order) -> int | None:
    """The snapshot to go back to; None when it is not said. Raises `BadOrder`."""
    if order.target and not order.target.isdecimal():
        raise BadOrder(order=order.kind, reason=f"{order.target!r} is not the number of a snapshot")
    return int(order.target) if order.target else None


def breakpoint_closings(state: State, now: Instant) -> tuple[ev.WaitClosed, ...]:
    """The events that let a run go on from the breakpoints it waits at."""
    return tuple(ev.WaitClosed(at=now, wait=name) for name in _open_waits(state, "breakpoint"))


def _open_waits(state: State, kind: WaitKind) -> dict[str, Wait]:
    waits = state.waits.items()
    return {name: wait for name, wait in waits if wait.status == "open" and wait.kind == kind}


def _is_choice(desk: Desk, wait: Wait, answer: Any) -> bool:
    """Whether an answer is one of the choices, or one with changes to what the question lets people edit."""
    if not isinstance(answer, dict):
        return answer in wait.choices
    details = desk.view.open_value(wait.details)
    editable = details.get(EDITABLE, ()) if isinstance(details, dict) else ()
    return answer.get("choice") in wait.choices and set(answer) - {"choice"} <= set(editable)


def _answer(desk: Desk, order: Order) -> ev.WaitClosed:
    """Answer the open question that is meant: by name, by a part of it, or the only one."""
    wanted, questions = order.target, _open_waits(desk.view.state, "question")
    near = [wanted] if wanted in questions else [name for name in questions if wanted in name]
    if len(near) != 1:
        reason = f"{len(near)} open questions fit {wanted!r}" if near else "no open question fits"
        raise BadOrder(order="answer", reason=reason)
    wait = questions[near[0]]
    if wait.choices and not _is_choice(desk, wait, order.value):
        raise BadOrder(order="answer", reason=f"the choices are {', '.join(wait.choices)}")
    return ev.WaitClosed(at=desk.now, wait=near[0], answer=desk.freeze(order.value))


def _retry(desk: Desk, wanted: str) -> ev.TaskPlanned:
    here = desk.view.current_tasks()
    near = [name for name in here if wanted in (name, name.rpartition("/")[2])]
    if len(near) != 1:
        raise BadOrder(order="retry", reason=f"the current phase has no assignment {wanted!r}")
    name, task = near[0], here[near[0]]
    if task.status == "skipped" and task.effect_key is None:
        raise BadOrder(order="retry", reason=f"{name} was skipped because its condition does not hold")
    if task.call is not None:
        raise BadOrder(order="retry", reason=f"{name} is an errand of {caller_of(name)}; retry that one")
    if task.status in ("running", "completed"):
        hint = "; roll back to have it done again" if task.status == "completed" else ""
        raise BadOrder(order="retry", reason=f"{name} is {task.status}{hint}")
    return replan_task(name, task, desk.now)
