"""What the types of model classes say: defaults, members of unions, what is plain data already."""

from math import copysign
from types import UnionType
from typing import Any, Literal, NewType, get_args, get_origin

import attrs

from orchestra.ids import Digest
from orchestra.model.tree import Table, Vec

_TELLING = ("reducer", "kind")  # fields that tell the members of a union apart


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal to the last bit: 1 is not 1.0, and 0.0 is not -0.0."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is float:
        return bool(left == right) and (left != 0 or copysign(1, left) == copysign(1, right))
    if kind is tuple:
        return len(left) == len(right) and all(map(same, left, right))
    if hasattr(kind, "__attrs_attrs__"):
        return all(same(getattr(left, each.name), getattr(right, each.name)) for each in kind.__attrs_attrs__)
    return bool(left == right)


def default_of(field: "attrs.Attribute[Any]") -> Any:
    """The default of a field; an empty container stands for that of a factory."""
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def omitted_value(field: "attrs.Attribute[Any]") -> Any:
    """The value for which a field is left out; what tells the members of a union apart never is."""
    return attrs.NOTHING if field.name in _TELLING else default_of(field)


def members(kind: Any) -> dict[str, type]:
    """The classes of a union by what tells them apart; nothing for any other type."""
    found = get_args(kind) if get_origin(kind) is UnionType else ()
    if not found or not all(attrs.has(member) for member in found):
        return {}
    return {getattr(attrs.fields(member), tag_field(member)).default: member for member in found}


def tag_field(kind: Any) -> str:
    """The field whose value tells a member of a union from the others."""
    return next(name for name in _TELLING if hasattr(attrs.fields(kind), name))


def is_plain(kind: Any) -> bool:
    """Whether what a type holds is plain data as it is."""
    if isinstance(kind, NewType):
        return kind is not Digest and is_plain(kind.__supertype__)
    arguments = get_args(kind)
    if get_origin(kind) in (Vec, Table):
        return False
    if get_origin(kind) is Literal:
        return True
    if arguments:
        return all(argument is ... or is_plain(argument) for argument in arguments)
    return kind in (str, int, float, bool, type(None))
