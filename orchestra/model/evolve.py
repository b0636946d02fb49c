"""`evolve(value, **changes)`: a copy of a frozen value with some fields changed.

It does what `attrs.evolve` does for our plain frozen classes, several times as fast: the slots are copied by
a function that is compiled for the class and the fields that change, and the dictionary of a class without
slots in one go. Every event makes several such copies, so it counts.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs

from orchestra.model.making import filling

T = TypeVar("T")
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


def _copier(kind: Any, changed: tuple[str, ...]) -> Callable[..., Any]:
    names = [field.name for field in attrs.fields(kind)]
    unknown = set(changed) - set(names)
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {unknown.pop()!r}")
    if not hasattr(kind, "__slots__"):
        return _of_dictionary
    values = {name: name if name in changed else f"_value_.{name}" for name in names}
    made: Callable[..., Any] = filling(kind, [f"def make(_value_, /, {', '.join(changed)}):"], values, {})
    return made


def _of_dictionary(value: Any, /, **changes: Any) -> Any:
    copy = object.__new__(type(value))
    copy.__dict__.update(value.__dict__, **changes)
    return copy
