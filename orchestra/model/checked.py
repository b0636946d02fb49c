"""Events are what they say they are: nothing is recorded that could not be read again.

Types are promises that a caller can break without noticing: an agent's confidence may be text, a count a
fraction. What is stored is read back strictly, so it is checked as strictly before it is stored.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NewType, get_args, get_origin

import attrs

from orchestra.errors import IllegalEvent
from orchestra.ids import DIGEST_BYTES, Digest
from orchestra.limits import VALUE_INTEGER_BITS
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

Check = Callable[[Any], bool]

_COUNT_BITS = 63


def check_event(event: Any, run: str) -> None:
    """Raise `IllegalEvent` unless every field holds what its type says."""
    kind: Any = type(event)
    for name, check in _fields(kind):
        if not check(getattr(event, name)):
            held = type(getattr(event, name)).__name__
            reason = f"its field {name!r} cannot be stored as it is ({held})"
            raise IllegalEvent(kind=str(getattr(event, "kind", "unknown")), run=run, reason=reason)


@cache
def _fields(kind: Any) -> tuple[tuple[str, Check], ...]:
    resolved: Any = attrs.resolve_types(kind)
    return tuple((field.name, _check_of(field.type)) for field in attrs.fields(resolved))


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
    if origin in (Vec, Table):
        return _holding(origin, _check_of(arguments[0]))
    if origin is tuple:
        item = _check_of(arguments[0])
        return lambda held: type(held) is tuple and all(map(item, held))
    if origin is UnionType or arguments:
        checks = tuple(map(_check_of, arguments))
        return lambda held: any(check(held) for check in checks)
    fields = _fields(kind)
    return lambda held: type(held) is kind and all(check(getattr(held, name)) for name, check in fields)


def _holding(container: Any, item: Check) -> Check:
    def check(held: Any) -> bool:
        return type(held) is container and all(map(item, held.values() if container is Table else held))

    return check


def _text(held: Any) -> bool:
    if type(held) is not str:
        return False
    if held.isascii():
        return True
    try:
        held.encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer(held: Any) -> bool:
    return type(held) is int and held.bit_length() <= _COUNT_BITS


def _number(held: Any) -> bool:
    return type(held) is float or (type(held) is int and held.bit_length() <= VALUE_INTEGER_BITS)


_ATOMS: dict[Any, Check] = {
    str: _text,
    int: _integer,
    float: _number,
    int | float: _number,
    bool: lambda held: type(held) is bool,
    NoneType: lambda held: held is None,
    Value: lambda held: type(held) is Value,
    Digest: lambda held: type(held) is bytes and len(held) == DIGEST_BYTES,
}
