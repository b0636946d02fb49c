"""Making frozen values quickly: `maker(Class)` is a function that makes what calling the class makes.

A frozen value guards its fields, and its own constructor has to go around the guard for each of them. A value
that is made here begins as one of a subclass without that guard, is filled, and then becomes one of the class
it is meant to be. It takes a quarter of the time, and every turn makes dozens of values.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, ParamSpec, TypeVar, cast

import attrs

P = ParamSpec("P")
T = TypeVar("T")
_Field = Any
"""An `attrs.Attribute`, of which the type of the default is not known before it is looked at."""
_NOT_GIVEN: Final = object()


@cache
def _unguarded(kind: Any) -> Any:
    """A subclass of a frozen class with slots, whose fields can be set; its objects can become `kind`'s."""
    body = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(f"Unguarded{kind.__name__}", (kind,), body)


def maker(kind: Callable[P, T]) -> Callable[P, T]:
    """A function with the parameters of a class that makes its values.

    The class has slots and plain fields: nothing is converted, checked or worked out when one is made.
    """
    fields: tuple[_Field, ...] = attrs.fields(cast(Any, kind))
    if hasattr(kind, "__attrs_post_init__") or not all(map(_is_plain, fields)):
        raise TypeError(f"{kind!r} does more than hold its fields")
    if not hasattr(kind, "__slots__"):
        raise TypeError(f"{kind!r} has no slots")
    known: dict[str, Any] = {}
    head = [f"def make({', '.join(_parameters(fields, known))}):", *_factories(fields, known)]
    made: Callable[P, T] = filling(kind, head, {field.name: field.alias for field in fields}, known)
    return made


def filling(kind: Any, head: Iterable[str], values: Mapping[str, str], known: dict[str, Any]) -> Any:
    """The function `make` that begins with the lines `head`; what its value holds is given as source text."""
    known |= {"_kind_": kind, "_unguarded_": _unguarded(kind), "_new_": object.__new__}
    filled = [f"    _made_.{name} = {value}" for name, value in values.items()]
    lines = [*head, "    _made_ = _new_(_unguarded_)", *filled, "    _made_.__class__ = _kind_"]
    exec("\n".join([*lines, "    return _made_"]), known)  # nosec: made of our own field names
    return known["make"]


def _is_plain(field: _Field) -> bool:
    takes_self = isinstance(field.default, attrs.Factory) and field.default.takes_self  # type: ignore[arg-type]
    return field.init and field.converter is None and field.validator is None and not takes_self


def _parameters(fields: Iterable[_Field], known: dict[str, Any]) -> list[str]:
    """The parameters as text; their defaults are put among what is known."""
    placed = [_parameter(field, known) for field in fields if not field.kw_only]
    named = [_parameter(field, known) for field in fields if field.kw_only]
    return [*placed, "*", *named] if named else placed


def _parameter(field: _Field, known: dict[str, Any]) -> str:
    if field.default is attrs.NOTHING:
        return str(field.alias)
    made_anew = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
    known[f"_default_{field.name}_"] = _NOT_GIVEN if made_anew else field.default
    return f"{field.alias}=_default_{field.name}_"


def _factories(fields: Iterable[_Field], known: dict[str, Any]) -> list[str]:
    """The lines that make the defaults which are made anew for each value."""
    lines = []
    for field in fields:
        if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            known[f"_factory_{field.name}_"] = field.default.factory
            lines.append(f"    if {field.alias} is _default_{field.name}_:")
            lines.append(f"        {field.alias} = _factory_{field.name}_()")
    return lines
