"""Writers: functions that make plain data of model values, one for each type, made once.

A class becomes a dictionary of the fields that differ from their defaults, in the order that keys have in
canonical bytes. Every snapshot and seal goes through these functions, so those of classes are compiled from
source text made of their fields: that takes a third of the time of a loop over the fields.

A writer takes the value and the `Sink` that decides how sequences, tables and large values are written.
"""

from collections.abc import Callable
from typing import Any, NewType, Protocol, get_args, get_origin

import attrs

from orchestra.codec import cbor
from orchestra.codec.cbor import Tag
from orchestra.codec.fields import is_plain, omitted, same
from orchestra.ids import Digest
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value


class Sink(Protocol):
    """Who decides how the parts of a state are written."""

    def vec(self, vec: Vec[Any], item: "Write | None") -> Tag:
        """A sequence as plain data."""

    def table(self, table: Table[Any], item: "Write | None") -> Tag:
        """A table as plain data."""

    def value(self, value: Value) -> bytes | Tag:
        """A frozen value as plain data."""


Write = Callable[[Any, Any], Any]
"""From a model value and a `Sink` to plain data."""

_WRITERS: dict[Any, Write | None] = {}


def writer_for(kind: Any) -> Write | None:
    """The function that makes plain data of things of that type; None when they are plain data already."""
    try:
        return _WRITERS[kind]
    except KeyError:
        found = _WRITERS[kind] = _make(kind)
        return found


def _make(kind: Any) -> Write | None:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_plain(kind):
        return None
    if kind is Value:
        return lambda held, sink: sink.value(held)
    if kind is Digest:
        return lambda held, _: Tag(cbor.TAG_DIGEST, held)
    if isinstance(kind, NewType):
        return writer_for(kind.__supertype__)
    if origin in (Vec, Table):
        return _container(origin is Vec, arguments[0])
    if origin is tuple:
        return _sequence(arguments)
    if arguments:
        return _union(arguments)
    assert attrs.has(kind), f"BUG: no writer for {kind}"
    _WRITERS[kind] = _by_class  # for a class that contains itself, until its own function is made
    return _class(kind)


def _container(is_vec: bool, kind: Any) -> Write:
    item = writer_for(kind)
    if is_vec:
        return lambda held, sink: sink.vec(held, item)
    return lambda held, sink: sink.table(held, item)


def _sequence(arguments: tuple[Any, ...]) -> Write:
    """A tuple of which not every item is plain data."""
    if arguments[1:] == (...,):
        item = writer_for(arguments[0])
        assert item is not None, "BUG: a tuple of plain data is plain data"
        return lambda held, sink: [item(each, sink) for each in held]
    items = [writer_for(argument) for argument in arguments]
    return lambda held, sink: [
        each if item is None else item(each, sink) for item, each in zip(items, held, strict=True)
    ]


def _union(arguments: tuple[Any, ...]) -> Write:
    """One of several classes, or something or nothing."""
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) > 1:
        return _by_class
    inner = writer_for(others[0])
    assert inner is not None, "BUG: plain data or nothing is plain data"
    return lambda held, sink: None if held is None else inner(held, sink)


def _by_class(held: Any, sink: Sink) -> Any:
    write = writer_for(type(held))
    return held if write is None else write(held, sink)


def _class(kind: Any) -> Write:
    """Compiled once for each class; the names in the text are those of our fields, nothing from outside."""
    fields = sorted(attrs.fields(attrs.resolve_types(kind)), key=lambda field: (len(field.name), field.name))
    known: dict[str, Any] = {"same": same}
    lines = ["def write(thing, sink):", "    plain = {}"]
    for at, field in enumerate(fields):
        known[f"default{at}"], known[f"write{at}"] = omitted(field), writer_for(field.type)
        lines += _field(at, field.name, known[f"default{at}"], known[f"write{at}"])
    exec("\n".join([*lines, "    return plain"]), known)  # nosec: made of our own field names
    made: Write = known["write"]
    return made


def _field(at: int, name: str, default: Any, write: Write | None) -> list[str]:
    """The lines that write one field unless it has its default."""
    put = f"plain[{name!r}] = " + ("held" if write is None else f"write{at}(held, sink)")
    lines = [f"    held = thing.{name}"]
    if default is attrs.NOTHING:
        return [*lines, f"    {put}"]
    if default is None:
        test = "held is not None"
    elif type(default) in (Vec, Table):
        test = "len(held)"
    else:
        test = f"held is not default{at} and (held != default{at} or not same(held, default{at}))"
    return [*lines, f"    if {test}:", f"        {put}"]
