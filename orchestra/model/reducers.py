"""Reducers: how a contribution joins what a context name already holds.

A context value and a contribution to it are the same kind of thing, and `combine` joins two of them.
"""

from typing import Final, Literal, TypeAlias

import attrs

from orchestra.limits import VALUE_INTEGER_BITS
from orchestra.model.frozen import maker
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

Reducer: TypeAlias = Literal["replace", "append", "merge", "sum", "max"]
REDUCERS: tuple[Reducer, ...] = ("replace", "append", "merge", "sum", "max")


@attrs.frozen(kw_only=True)
class Replaced:
    """The newest contribution."""

    value: Value
    reducer: Literal["replace"] = "replace"


@attrs.frozen(kw_only=True)
class Appended:
    """All contributions, oldest first."""

    items: Vec[Value] = attrs.field(factory=Vec)
    reducer: Literal["append"] = "append"


make_appended: Final = maker(Appended)
"""Makes what was appended; every result that enters the context makes two."""


@attrs.frozen(kw_only=True)
class Merged:
    """The newest contribution of each key."""

    entries: Table[Value] = attrs.field(factory=Table)
    reducer: Literal["merge"] = "merge"


@attrs.frozen(kw_only=True)
class Summed:
    """The total of all contributions."""

    total: int | float
    reducer: Literal["sum"] = "sum"


@attrs.frozen(kw_only=True)
class Largest:
    """The largest contribution."""

    largest: int | float
    reducer: Literal["max"] = "max"


ContextValue: TypeAlias = Replaced | Appended | Merged | Summed | Largest


class ReducerMismatch(Exception):
    """A contribution made for another reducer than the one the name has."""


def combine(held: ContextValue | None, contribution: ContextValue) -> ContextValue:
    """What the name holds after `contribution`; raises `ReducerMismatch`."""
    if held is None:
        return contribution
    match held, contribution:
        case Replaced(), Replaced():
            return contribution
        case Appended(), Appended():
            return make_appended(items=held.items.extend(contribution.items))
        case Merged(), Merged():
            entries = held.entries
            for key, value in contribution.entries.items():
                entries = entries.set(key, value)
            return Merged(entries=entries)
        case Summed(), Summed():
            return Summed(total=_sum(held.total, contribution.total))
        case Largest(), Largest():
            return Largest(largest=max(held.largest, contribution.largest))
        case _:
            raise ReducerMismatch(f"it is reduced by {held.reducer}, not by {contribution.reducer}")


def _sum(held: int | float, more: int | float) -> int | float:
    try:
        total = held + more
    except OverflowError:
        raise ReducerMismatch("the total has no bounds that both numbers fit") from None
    if isinstance(total, int) and total.bit_length() > VALUE_INTEGER_BITS:
        raise ReducerMismatch(f"the total would have more than {VALUE_INTEGER_BITS} bits")
    return total
