"""Hypothesis strategies for everything in the model and everything a user may hand in.

`models(kind)` gives any value of a class of the model, whether it can occur in a run or not;
`storable_values` gives plain data that comes back exactly.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, NewType, TypeVar, get_args, get_origin

import attrs
from hypothesis import strategies as st

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze
from orchestra.ids import Digest
from orchestra.limits import LARGE_VALUE_BYTES, VALUE_INTEGER_BITS
from orchestra.model import events as ev
from orchestra.model import records, reducers, snapshot
from orchestra.model import state as states_of
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

C = TypeVar("C")

PLAIN: Final = Addresser()


def _classes() -> Iterator[type]:
    for module in (records, states_of, reducers, snapshot, ev):
        for name, found in vars(module).items():
            if attrs.has(found) and found.__module__ == module.__name__ and not name.startswith("_"):
                yield found


MODEL_CLASSES: Final = tuple(_classes())
"""Every class of the model."""

_BIGGEST: Final = (1 << VALUE_INTEGER_BITS) - 1


def texts(max_size: int = 20) -> st.SearchStrategy[str]:
    """Any text that can be written: no lone surrogates."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size)


def numbers() -> st.SearchStrategy[float]:
    """Any number where a float is expected, integers included, as callers write them."""
    return st.floats() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, float("inf"), float("nan")])


def moments() -> st.SearchStrategy[datetime]:
    """Datetimes with a zone, to the whole second of offset."""
    zones = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
    return st.datetimes(timezones=st.just(UTC) | zones)


def atoms() -> st.SearchStrategy[Any]:
    """Everything storable that holds nothing else."""
    small = st.none() | st.booleans() | st.floats() | texts() | st.binary(max_size=20) | moments()
    return small | st.integers() | st.integers(-_BIGGEST, _BIGGEST)


def storable_values(max_leaves: int = 15) -> st.SearchStrategy[Any]:
    """Anything a user may hand in."""
    hashable = st.recursive(
        atoms(),
        lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
        max_leaves=4,
    )
    return st.recursive(
        hashable | st.sets(hashable, max_size=3),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(texts(8), inner, max_size=4)
        ),
        max_leaves=max_leaves,
    )


def frozen_values() -> st.SearchStrategy[Value]:
    """Frozen values, now and then one that is too large to be written inline."""
    large = st.integers(0, 255).map(lambda byte: bytes([byte]) * (LARGE_VALUE_BYTES + 1))
    return st.one_of(storable_values(5), storable_values(5), storable_values(5), large).map(
        lambda value: freeze(value, PLAIN)
    )


@cache
def models(kind: type[C]) -> st.SearchStrategy[C]:
    """Any value of a class of the model."""
    resolved: Any = attrs.resolve_types(kind)  # type: ignore[type-var]
    fields = {field.name: _of(field.type) for field in attrs.fields(resolved)}
    return st.builds(kind, **fields)


def _of(kind: Any) -> st.SearchStrategy[Any]:
    """Anything that may stand in a field of that type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        return _SIMPLE[kind]()
    if isinstance(kind, NewType):
        return _of(kind.__supertype__)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is Vec:
        return _sequences(_of(arguments[0])).map(Vec)
    if origin is Table:
        return _entries(_of(arguments[0])).map(Table)
    if origin is tuple:
        if arguments[1:] == (...,):
            return st.lists(_of(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*map(_of, arguments))
    if origin is UnionType or arguments:
        return st.one_of(*map(_of, arguments))
    return models(kind)


def _sequences(items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Short sequences, and some that need a tree: of one item repeated, as many take long to think up."""
    many = st.builds(lambda item, count: [item] * count, items, st.integers(7, 70))
    return st.lists(items, max_size=3) | many


def _entries(items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[str, Any]]]:
    short = st.dictionaries(texts(8), items, max_size=3).map(lambda found: list(found.items()))
    many = st.builds(
        lambda item, count: [(f"key-{at}", item) for at in range(count)], items, st.integers(7, 70)
    )
    return short | short | many


_SIMPLE: Final[dict[Any, Callable[[], st.SearchStrategy[Any]]]] = {
    str: texts,
    int: lambda: st.integers(-(1 << 70), 1 << 70),
    bool: st.booleans,
    float: numbers,
    type(None): st.none,
    Digest: lambda: st.binary(min_size=32, max_size=32).map(Digest),
    Value: frozen_values,
}
