"""`evolve(value, **changes)`: a copy of a frozen value with some fields changed.

It does what `attrs.evolve` does for our plain frozen classes, two to five times as fast: it copies the
slots, or the dictionary of a class without slots, instead of going through the constructor. Every event
makes several such copies, so it counts.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import attrs

T = TypeVar("T")


def evolve(value: T, **changes: Any) -> T:
    """A copy of `value` in which the named fields have new values."""
    held_by_name = getattr(value, "__dict__", None)
    if held_by_name is not None:
        copy = object.__new__(type(value))
        copy.__dict__.update(held_by_name, **changes)
        return copy
    duplicate, setters = _plan(cast("Any", type(value)))
    made: T = duplicate(value)
    for name, changed in changes.items():
        setters[name](made, changed)
    return made


@cache
def _plan(kind: Any) -> tuple[Callable[[Any], Any], dict[str, Callable[[Any, Any], None]]]:
    """What copies the slots of a class, compiled from their names, and what sets each of them."""
    names = [field.name for field in attrs.fields(kind)]
    setters = {name: getattr(kind, name).__set__ for name in names}
    known: dict[str, Any] = {f"set_{name}": setter for name, setter in setters.items()}
    known.update(new=object.__new__, kind=kind)
    lines = [f"    set_{name}(copy, value.{name})" for name in names]
    source = ["def duplicate(value):", "    copy = new(kind)", *lines, "    return copy"]
    exec("\n".join(source), known)  # nosec: made of our own field names
    return known["duplicate"], setters
