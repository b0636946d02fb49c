"""Making frozen values quickly: `maker(Class)` is a function that makes what calling the class makes.

A frozen value guards each of its fields, its own constructor included, which has to go around the guard for
every one of them. A value made here begins as one of an unguarded subclass without a field of its own,
is filled, and then becomes one of the class it is meant to be. That takes a quarter of the time, and a turn
makes hundreds of values.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, ParamSpec, TypeVar

import attrs

P = ParamSpec("P")
T = TypeVar("T")
_NOT_GIVEN: Final = object()


@cache
def unguarded(kind: Any) -> Any:
    """A subclass of a frozen class with slots, whose fields can be set; its objects can become `kind`'s."""
    body = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(f"Unguarded{kind.__name__}", (kind,), body)


def maker(kind: Callable[P, T]) -> Callable[P, T]:
    """A function with the parameters of a frozen class that makes its values.

    The class must be one of plain fields: nothing is converted, validated or worked out afterwards.
    """
    fields = attrs.fields(kind)  # type: ignore[arg-type]
    if hasattr(kind, "__attrs_post_init__") or not all(map(_is_plain, fields)):
        raise TypeError(f"{kind!r} does more than hold its fields")
    filling = _filled_slots if hasattr(kind, "__slots__") else _filled_dictionary
    known: dict[str, Any] = {"_new_": object.__new__, "_kind_": kind, "_not_given_": _NOT_GIVEN}
    lines = [
        f"def make({_parameters(fields, known)}):",
        *_factories(fields, known),
        *filling(kind, fields, known),
    ]
    exec("\n".join([*lines, "    return _made_"]), known)  # nosec: made of our own field names
    made: Callable[P, T] = known["make"]
    return made


def _is_plain(field: "attrs.Attribute[Any]") -> bool:
    takes_self = isinstance(field.default, attrs.Factory) and field.default.takes_self  # type: ignore[arg-type]
    return field.init and field.converter is None and field.validator is None and not takes_self


def _parameters(fields: tuple["attrs.Attribute[Any]", ...], known: dict[str, Any]) -> str:
    """The parameters; defaults are put among what is known."""
    placed = [field for field in fields if not field.kw_only]
    named = [field for field in fields if field.kw_only]
    return ", ".join(
        [
            *(_parameter(field, known) for field in placed),
            *["*"][: len(named)],
            *(_parameter(field, known) for field in named),
        ]
    )


def _parameter(field: "attrs.Attribute[Any]", known: dict[str, Any]) -> str:
    if field.default is attrs.NOTHING:
        return field.alias
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return f"{field.alias}=_not_given_"
    known[f"_default_{field.name}_"] = field.default
    return f"{field.alias}=_default_{field.name}_"


def _factories(fields: tuple["attrs.Attribute[Any]", ...], known: dict[str, Any]) -> list[str]:
    lines = []
    for field in fields:
        if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            known[f"_factory_{field.name}_"] = field.default.factory
            lines.append(f"    if {field.alias} is _not_given_: {field.alias} = _factory_{field.name}_()")
    return lines


def _filled_slots(kind: Any, fields: tuple["attrs.Attribute[Any]", ...], known: dict[str, Any]) -> list[str]:
    known["_unguarded_"] = unguarded(kind)
    filled = [f"    _made_.{field.name} = {field.alias}" for field in fields]
    return ["    _made_ = _new_(_unguarded_)", *filled, "    _made_.__class__ = _kind_"]


def _filled_dictionary(
    _kind: Any, fields: tuple["attrs.Attribute[Any]", ...], known: dict[str, Any]
) -> list[str]:
    known["_set_"] = object.__setattr__
    held = ", ".join(f"{field.name!r}: {field.alias}" for field in fields)
    return ["    _made_ = _new_(_kind_)", f"    _set_(_made_, '__dict__', {{{held}}})"]
