"""Writers: functions that make canonical bytes of model values, one for each type, made once.

A class becomes a map of the fields that differ from their defaults, in canonical key order; so equal values
have equal bytes. Classes do not know their encoding. Every snapshot and seal goes through these functions, so
those of classes are compiled from source text made of their fields, without data for a general encoder in
between: that takes a third of the time.

A `Writer` decides how sequences and tables are written: whole, or as references to nodes (`Sealer` in
`orchestra.codec.seal`).
"""

from collections.abc import Callable
from typing import Any, Final, Literal, NewType, get_args, get_origin

import attrs

from orchestra.codec import cbor
from orchestra.codec.fields import is_plain, omitted_value, same
from orchestra.ids import AgentId, Digest, PhaseId, RunId
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

Write = Callable[[Any, Any], bytes]  # from a model value and a `Writer` to canonical bytes

_VEC: Final = cbor.tag(cbor.TAG_VEC)
_TABLE: Final = cbor.tag(cbor.TAG_TABLE)
_VALUE_REF: Final = cbor.tag(cbor.TAG_VALUE_REF) + b"\x82" + cbor.DIGEST
_WRITERS: dict[Any, Write] = {}

_ATOMS: Final[dict[Any, str]] = {
    str: "text(held)",
    int: "integer(held)",
    float: "number(held)",
    int | float: "number(held)",
    bool: "(TRUE if held else FALSE)",
    Value: "writer.value(held)",
    Digest: "DIGEST + held",
    AgentId: "name(held)",
    PhaseId: "name(held)",
    RunId: "name(held)",
}
"""How the bytes of an atom are made, as source text. Names of which a run has few are remembered."""

_KNOWN: Final[dict[str, Any]] = {
    "DIGEST": cbor.tag(cbor.TAG_DIGEST) + cbor.DIGEST,
    "FALSE": b"\xf4",
    "MAP": cbor.MAP,
    "TRUE": b"\xf5",
    "head": cbor.head,
    "integer": cbor.integer,
    "name": cbor.name,
    "number": cbor.number,
    "same": same,
    "text": cbor.text,
}


class Writer:
    """Writes model values whole and collects the large values it refers to."""

    def __init__(self) -> None:
        self.references: list[Digest] = []
        self.large: list[Value] = []

    def write(self, thing: object) -> bytes:
        """`thing` as canonical bytes."""
        return writer_for(type(thing))(thing, self)

    def vec(self, vec: Vec[Any], item: Write) -> bytes:
        """A sequence as canonical bytes."""
        return _VEC + cbor.array([item(each, self) for each in vec])

    def table(self, table: Table[Any], item: Write) -> bytes:
        """A table as canonical bytes."""
        return _TABLE + cbor.array([self.pair(pair, item) for pair in table.items()])

    def pair(self, pair: tuple[str, Any], item: Write) -> bytes:
        """An entry of a table as canonical bytes."""
        return b"\x82" + cbor.text(pair[0]) + item(pair[1], self)

    def value(self, value: Value) -> bytes:
        """A frozen value as canonical bytes: its own as a byte string, or a reference to them."""
        if value.digest is None:
            assert value.encoded is not None, "BUG: a value has bytes or a digest"
            return cbor.data(value.encoded)
        self.references.append(value.digest)
        if value.encoded is not None:
            self.large.append(value)
        return _VALUE_REF + value.digest + cbor.integer(value.size)


def writer_for(kind: Any) -> Write:
    """The function that makes canonical bytes of things of that type."""
    try:
        return _WRITERS[kind]
    except KeyError:
        found = _WRITERS[kind] = _make(kind)
        return found


def _make(kind: Any) -> Write:
    origin, arguments = get_origin(kind), get_args(kind)
    made = _atom(kind)
    if made is not None:
        return _compile(["def write(held, writer):", f"    return {made}"], dict(_KNOWN))
    if isinstance(kind, NewType):
        return writer_for(kind.__supertype__)
    if origin is Vec or origin is Table:
        item = writer_for(arguments[0])
        if origin is Vec:
            return lambda held, writer: writer.vec(held, item)
        return lambda held, writer: writer.table(held, item)
    if origin is tuple:
        return _sequence(arguments)
    if arguments:
        return _union(arguments)
    assert attrs.has(kind), f"BUG: no writer for {kind}"
    _WRITERS[kind] = _by_class  # for a class that contains itself, until its own function is made
    return _class(kind)


def _atom(kind: Any) -> str | None:
    """Source text that makes the bytes of `held`, where the type is that simple."""
    if kind in _ATOMS:
        return _ATOMS[kind]
    if isinstance(kind, NewType):
        return _atom(kind.__supertype__)
    if get_origin(kind) is Literal:
        return "name(held)"
    return None


def _sequence(arguments: tuple[Any, ...]) -> Write:
    if arguments[1:] == (...,):
        item = writer_for(arguments[0])
        return lambda held, writer: cbor.array([item(each, writer) for each in held])
    items = [writer_for(argument) for argument in arguments]
    return lambda held, writer: cbor.array(
        [item(each, writer) for item, each in zip(items, held, strict=True)]
    )


def _union(arguments: tuple[Any, ...]) -> Write:
    """One of several classes, or something or nothing."""
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) > 1 and all(map(is_plain, others)):
        return lambda held, _: cbor.encode(held)
    if len(others) > 1:
        return _by_class
    inner = writer_for(others[0])
    return lambda held, writer: cbor.NOTHING if held is None else inner(held, writer)


def _by_class(held: Any, writer: Writer) -> bytes:
    return writer_for(type(held))(held, writer)


def _class(kind: Any) -> Write:
    """Compiled once for each class; the names in the text are those of our fields, nothing from outside."""
    fields = sorted(attrs.fields(attrs.resolve_types(kind)), key=lambda field: (len(field.name), field.name))
    known = dict(_KNOWN)
    lines = ["def write(thing, writer):", "    parts = []", "    add = parts.append"]
    for at, field in enumerate(fields):
        known[f"default{at}"], known[f"key{at}"] = omitted_value(field), cbor.text(field.name)
        lines += _field(at, field, known)
    lines.append("    return head(MAP, len(parts)) + b''.join(parts)")
    return _compile(lines, known)


def _field(at: int, field: "attrs.Attribute[Any]", known: dict[str, Any]) -> list[str]:
    """The lines that write one field unless it has its default."""
    default, kind = known[f"default{at}"], field.type
    if default is None:  # what stands here is something, or the field is left out
        others = [each for each in get_args(kind) if each is not type(None)]
        kind = others[0] if len(others) == 1 else kind
    made = _atom(kind)
    if made is None:
        known[f"write{at}"] = writer_for(kind)
        made = f"write{at}(held, writer)"
    lines = [f"    held = thing.{field.name}"]
    put = f"add(key{at} + {made})"
    if default is attrs.NOTHING:
        return [*lines, f"    {put}"]
    if default is None:
        test = "held is not None"
    elif type(default) in (Vec, Table):
        test = "held.count" if type(default) is Vec else "held.pairs.count"
    else:
        test = f"held is not default{at} and (held != default{at} or not same(held, default{at}))"
    return [*lines, f"    if {test}:", f"        {put}"]


def _compile(lines: list[str], known: dict[str, Any]) -> Write:
    exec("\n".join(lines), known)  # nosec: made of our own field names
    made: Write = known["write"]
    return made
