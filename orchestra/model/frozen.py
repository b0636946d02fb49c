"""Frozen values, quickly: `maker(Class)` makes them, `evolve(value, **changes)` copies them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final, NewType, ParamSpec, TypeVar, cast, get_args

import attrs

from orchestra.ids import Digest

P = ParamSpec("P")
T = TypeVar("T")
_Field = Any  # an `attrs.Attribute`, of which the type of the default is not known before it is looked at
_NOT_GIVEN: Final = object()


def bare_type(kind: Any) -> Any:
    """The type behind the names it was given, and beside None; a digest is a type of its own."""
    if isinstance(kind, NewType) and kind is not Digest:
        return bare_type(kind.__supertype__)
    arguments = get_args(kind)
    return bare_type(arguments[0]) if len(arguments) == 2 and arguments[1] is type(None) else kind


@cache
def _unguarded_class(kind: Any) -> Any:
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
    placed, named, factories = list[str](), list[str](), list[str]()
    for field in fields:
        parameter, default = str(field.alias), f"_default_{field.name}_"
        known[default] = field.default
        if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            known |= {default: _NOT_GIVEN, f"_factory_{field.name}_": field.default.factory}
            factories.append(f"    if {parameter} is {default}: {parameter} = _factory_{field.name}_()")
        if field.default is not attrs.NOTHING:
            parameter = f"{parameter}={default}"
        (named if field.kw_only else placed).append(parameter)
    parameters = ", ".join([*placed, "*", *named] if named else placed)
    values = {field.name: field.alias for field in fields}
    made: Callable[P, T] = fill_source(kind, [f"def make({parameters}):", *factories], values, known)
    return made


def fill_source(kind: Any, head: Iterable[str], values: Mapping[str, str], known: dict[str, Any]) -> Any:
    """The function `make` that begins with the lines `head`; what its value holds is given as source text."""
    known |= {"_kind_": kind, "_unguarded_": _unguarded_class(kind), "_new_": object.__new__}
    filled = [f"    _made_.{name} = {value}" for name, value in values.items()]
    lines = [*head, "    _made_ = _new_(_unguarded_)", *filled, "    _made_.__class__ = _kind_"]
    exec("\n".join([*lines, "    return _made_"]), known)  # nosec: made of our own field names
    return known["make"]


def _is_plain(field: _Field) -> bool:
    takes_self = isinstance(field.default, attrs.Factory) and field.default.takes_self  # type: ignore[arg-type]
    return field.init and field.converter is None and field.validator is None and not takes_self


_COPIERS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {}
"""By class and the names of the fields that change."""


def evolve(value: T, **changes: Any) -> T:
    """A copy of `value` in which the named fields have new values."""
    copier = _COPIERS.get((type(value), *changes))
    if copier is None:
        copier = _COPIERS[type(value), *changes] = _copier(type(value), tuple(changes))
    made: T = copier(value, **changes)
    return made


def changer(kind: type[T], *changed: str) -> Callable[..., T]:
    """`evolve` for values of one class in which always the same fields change, in a third of the time."""
    return _copier(kind, changed)


def converter(source: Any, kind: type[T], *given: str) -> Callable[..., T]:
    """A function that makes a value of one class from one of another.

    What is `given` is given by name. Fields that both classes have are taken over, except `kind`, which tells
    classes apart; the others have their default.
    """
    taken = {field.name for field in attrs.fields(source)} - {"kind"}
    return _copier(kind, given, {field.name for field in attrs.fields(cast(Any, kind))} - taken - {*given})


def _copier(kind: Any, changed: tuple[str, ...], left: Collection[str] = ()) -> Callable[..., Any]:
    """A function that copies a value; fields that are `left` have their default."""
    fields: dict[str, _Field] = attrs.fields_dict(kind)
    unknown = set(changed) - fields.keys()
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {unknown.pop()!r}")
    if not hasattr(kind, "__slots__"):
        return _of_dictionary
    for name in left:
        if isinstance(fields[name].default, (type(attrs.NOTHING), attrs.Factory)):  # type: ignore[arg-type]
            raise TypeError(f"{kind.__name__} needs {name!r} to be given")
    values = {name: name if name in changed else f"_value_.{name}" for name in fields}
    values |= {name: f"_default_{name}_" for name in left}
    known = {f"_default_{name}_": fields[name].default for name in left}
    made: Callable[..., Any] = fill_source(
        kind, [f"def make(_value_, /, {', '.join(changed)}):"], values, known
    )
    return made


def _of_dictionary(value: Any, /, **changes: Any) -> Any:
    copy = object.__new__(type(value))
    copy.__dict__.update(value.__dict__, **changes)
    return copy
