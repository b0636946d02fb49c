"""`evolve(value, **changes)`: a copy of a frozen value with some fields changed.

It does what `attrs.evolve` does for our plain frozen classes, two to five times as fast: it copies the
slots, or the dictionary of a class without slots, instead of going through the constructor. Every event
makes several such copies, so it counts.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, cast

import attrs

T = TypeVar("T")


def evolve(value: T, **changes: Any) -> T:
    """A copy of `value` in which the named fields have new values."""
    copy = object.__new__(type(value))
    held_by_name = getattr(value, "__dict__", None)
    if held_by_name is not None:
        copy.__dict__.update(held_by_name, **changes)
        return copy
    names, get, setters = _plan(cast("Any", type(value)))
    for setter, held in zip(setters, get(value), strict=True):
        setter(copy, held)
    for name, changed in changes.items():
        names[name](copy, changed)
    return copy


@cache
def _plan(
    kind: Any,
) -> tuple[
    dict[str, Callable[[Any, Any], None]], Callable[[Any], tuple[Any, ...]], list[Callable[[Any, Any], None]]
]:
    fields = [field.name for field in attrs.fields(kind)]
    assert len(fields) > 1, "BUG: a class with one field needs no copy"
    setters = {name: getattr(kind, name).__set__ for name in fields}
    return setters, attrgetter(*fields), list(setters.values())
