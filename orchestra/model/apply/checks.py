"""Checks of an event before it is applied: its fields have their types, its texts their bounds."""

from collections.abc import Callable, Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, NewType, get_args, get_origin

import attrs

from orchestra.errors import IllegalEvent
from orchestra.ids import DIGEST_BYTES, Digest
from orchestra.limits import TEXT_CHARS, VALUE_INTEGER_BITS
from orchestra.model import events as ev
from orchestra.model.frozen import bare_type
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value, is_storable_text

Check = Callable[[Any], bool]
_COUNT_BITS = 63
Misfit = Callable[[Any], str | None]  # names the first field of a value that does not hold what its type says


def illegal(event: ev.Event, run: str, reason: str) -> IllegalEvent:
    """The error to raise for an event that does not fit."""
    return IllegalEvent(kind=str(getattr(event, "kind", "unknown")), run=run, reason=reason)


def check_event(event: Any, run: str) -> None:
    """Raise `IllegalEvent` unless every field holds what its type says."""
    kind: Any = type(event)
    name = misfit_of(kind)(event)
    if name is not None:
        held = type(getattr(event, name)).__name__
        raise illegal(event, run, f"its field {name!r} cannot be stored as it is ({held})")


@cache
def misfit_of(kind: Any) -> Misfit:
    """What checks the fields of a class, compiled; most hold their default, or a short text or number."""
    known: dict[str, Any] = {"Value": Value}
    lines = ["def misfit(value):"]
    for field in attrs.fields(attrs.resolve_types(kind)):
        name = field.name
        known[f"default_{name}"] = object() if field.default is attrs.NOTHING else field.default
        known[f"check_{name}"] = _check_of(field.type)
        quick = _QUICK.get(bare_type(field.type), "")
        lines += [
            f"    held = value.{name}",
            f"    if held is not default_{name} and {quick}not check_{name}(held):",
            f"        return {name!r}",
        ]
    exec("\n".join([*lines, "    return None"]), known)  # nosec: made of our own field names
    made: Misfit = known["misfit"]
    return made


_QUICK: dict[Any, str] = {
    str: "not (type(held) is str and held.isascii()) and ",
    int: "not (type(held) is int and -0x7fffffff < held < 0x7fffffffffffff) and ",
    Value: "type(held) is not Value and ",
}
"""What is asked first of the most common types: whether a value is one of those that certainly fit."""


@cache
def _check_of(kind: Any) -> Check:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _ATOMS:
        return _ATOMS[kind]
    if isinstance(kind, NewType):
        return _check_of(kind.__supertype__)
    if origin is Literal:
        allowed = frozenset(arguments)
        return lambda held: type(held) is str and held in allowed
    if origin is Table:
        value = _check_of(arguments[0])
        return lambda held: type(held) is Table and all(map(value, held.values()))
    if origin in (Vec, tuple):
        item = _check_of(arguments[0])
        return lambda held: type(held) is origin and all(map(item, held))
    if NoneType in arguments and len(arguments) == 2:
        inner = _check_of(arguments[0] if arguments[1] is NoneType else arguments[1])
        return lambda held: held is None or inner(held)
    if arguments and all(map(attrs.has, arguments)):
        misfits = {each: misfit_of(each) for each in arguments}
        return lambda held: type(held) in misfits and misfits[type(held)](held) is None
    if origin is UnionType or arguments:
        checks = tuple(map(_check_of, arguments))
        return lambda held: any(check(held) for check in checks)
    misfit = misfit_of(kind)
    return lambda held: type(held) is kind and misfit(held) is None


def _number(held: Any) -> bool:
    return type(held) is float or (type(held) is int and held.bit_length() <= VALUE_INTEGER_BITS)


_ATOMS: dict[Any, Check] = {
    str: lambda held: type(held) is str and is_storable_text(held),
    int: lambda held: type(held) is int and held.bit_length() <= _COUNT_BITS,
    float: _number,
    int | float: _number,
    bool: lambda held: type(held) is bool,
    NoneType: lambda held: held is None,
    Value: lambda held: type(held) is Value,
    Digest: lambda held: type(held) is bytes and len(held) == DIGEST_BYTES,
}


def check_texts(state: State, event: ev.Event) -> None:
    """Raise `IllegalEvent` when an event would make a text of the state too long."""
    planned = type(event) is ev.TaskPlanned  # the most common by far
    size = len(event.description) if planned else sum(map(len, _texts(state, event)))  # type: ignore[union-attr]
    if size > TEXT_CHARS:
        what = f"the task of {event.task}" if planned else "a text"  # type: ignore[union-attr]
        limit = f"the limit is {TEXT_CHARS:,}; use a value or an output"
        raise illegal(event, state.run, f"{what} would have {size:,} characters and {limit}")


WITH_TEXTS: Final = frozenset({
    ev.DecisionMade, ev.TaskPlanned, ev.TextEmitted, ev.MessagePosted, ev.MessageStreamed, ev.TaskFailed,
    ev.RunEnded, ev.CriterionScored, ev.WaitOpened,
})  # fmt: skip
"""The events that bring texts; the others need no check."""


def _texts(state: State, event: ev.Event) -> Iterator[str]:
    """The texts that would stand together in one item of the state."""
    match event:
        case ev.DecisionMade(decision=decision):
            yield from (decision.description, decision.rationale, *decision.alternatives)
        case ev.TextEmitted():
            agent = state.agents.get(event.agent)
            yield from (agent.partial if agent is not None else "", event.text)
        case ev.MessagePosted():
            yield from (part.text for part in event.parts)
        case ev.MessageStreamed():
            held = state.messages.get(event.message)
            yield from (part.text for part in (*(held.parts if held is not None else ()), *event.parts))
            yield event.text
        case ev.TaskFailed(failure=failure) | ev.RunEnded(failure=failure) if failure is not None:
            yield from (failure.message, failure.stack)
        case ev.CriterionScored():
            evaluation = state.evaluations.get(event.evaluation)
            yield from (evaluation.feedback if evaluation is not None else "", event.feedback)
        case ev.WaitOpened():
            yield from (event.text, *event.choices)
        case _:
            return
