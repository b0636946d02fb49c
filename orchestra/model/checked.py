"""Events are what they say they are: nothing is recorded that could not be read again.

Types are promises that a caller can break without noticing: an agent's confidence may be text, a count a
fraction. What is stored is read back strictly, so it is checked as strictly before it is stored.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
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


Fields = tuple[Callable[[Any], tuple[Any, ...]], tuple[tuple[str, Any, Check], ...]]
"""What gets the values of all fields; name, default and check of each."""


def check_event(event: Any, run: str) -> None:
    """Raise `IllegalEvent` unless every field holds what its type says."""
    kind: Any = type(event)
    values, fields = _fields(kind)
    for held, (name, default, check) in zip(values(event), fields, strict=True):
        if held is not default and not check(held):
            reason = f"its field {name!r} cannot be stored as it is ({type(held).__name__})"
            raise IllegalEvent(kind=str(getattr(event, "kind", "unknown")), run=run, reason=reason)


@cache
def _fields(kind: Any) -> Fields:
    """The fields of a class. Most of them hold their default, which needs no check but being it."""
    fields = attrs.fields(attrs.resolve_types(kind))
    names = [field.name for field in fields]
    values = attrgetter(*names) if len(names) > 1 else lambda held: (getattr(held, names[0]),)
    plan = [(field.name, _default(field), _check_of(field.type)) for field in fields]
    return values, tuple(plan)


def _default(field: "attrs.Attribute[Any]") -> Any:
    """The default of a field, or something that no field holds."""
    return object() if field.default is attrs.NOTHING else field.default


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
    if NoneType in arguments and len(arguments) == 2:
        inner = _check_of(arguments[0] if arguments[1] is NoneType else arguments[1])
        return lambda held: held is None or inner(held)
    if origin is UnionType or arguments:
        checks = tuple(map(_check_of, arguments))
        return lambda held: any(check(held) for check in checks)
    return _instance(kind)


def _instance(kind: Any) -> Check:
    values, fields = _fields(kind)

    def check(held: Any) -> bool:
        if type(held) is not kind:
            return False
        for each, (_, default, fits) in zip(values(held), fields, strict=True):
            if each is not default and not fits(each):
                return False
        return True

    return check


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
