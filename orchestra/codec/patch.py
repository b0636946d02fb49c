"""Patches: what changed between two states, as generic data.

A patch is a list of operations. A path leads from the state through fields (text), table keys (text) and
positions (integers).

    ["set", path, value]                      the value is now this
    ["unset", path]                           the field has its default again
    ["append", path, text or list]            the text or list grew at its end
    ["splice", path, start, count, insert]    `count` characters or items from `start` were replaced
    ["push", path, items]                     the sequence grew at its end
    ["put", path, [[key, value], …]]          entries were added to the table
    ["reset", digest]                         the state is that of this seal

`make` works on model values and skips what is identical; `apply_patch` in `document` needs no model.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, get_args, get_origin

import attrs

from orchestra.codec import cbor
from orchestra.codec.fields import default_of, is_plain, same
from orchestra.codec.frame import pair_references
from orchestra.codec.writers import Write, Writer, writer_for
from orchestra.ids import Digest
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec, changed_leaves, only_grew

Operation = list[Any]  # one operation as it is read

_SPLICE_FROM_CHARS: Final = 64
_GROWING: Final = (Vec, Table)
_ATOMS: Final = frozenset({int, float, bool, type(None)})

_PLACES: Final = [cbor.head(cbor.ARRAY, steps) for steps in range(24)]
"""How a path of so many steps begins. No path through a state is longer."""
_SET: Final = b"\x83" + cbor.text("set")
_UNSET: Final = b"\x82" + cbor.text("unset")
_APPEND: Final = b"\x83" + cbor.text("append")
_SPLICE: Final = b"\x85" + cbor.text("splice")
_PUSH: Final = b"\x83" + cbor.text("push")
_PUT: Final = b"\x83" + cbor.text("put")


def make(writer: Writer, old: State, new: State) -> list[bytes]:
    """The operations that lead from `old` to `new`, each as canonical bytes."""
    maker = _Maker(writer)
    _comparer(State)(maker, old, new, 0, b"")
    return maker.operations


def encode(references: Sequence[Digest], operations: list[bytes]) -> bytes:
    """Canonical bytes of a patch."""
    return pair_references(references, cbor.array(operations))


class _Type:
    """A type as patches see it: how its values are written, and the type of their items."""

    __slots__ = ("_item", "_kind", "write")

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._item: _Type | None = None
        self.write: Write = writer_for(kind)

    @property
    def item(self) -> "_Type":
        """The type of the items of `Vec[T]`, `Table[T]`, `tuple[T, ...]`, or of such a type or None."""
        if self._item is None:
            found = [each for each in get_args(self._kind) if get_origin(each) in (tuple, Vec, Table)]
            self._item = _Type(get_args(found[0] if found else self._kind)[0])
        return self._item


class _Field(_Type):
    """A field as patches see it: its type, its name as a step of a path, and its default."""

    __slots__ = ("default", "step")

    def __init__(self, field: "attrs.Attribute[Any]") -> None:
        super().__init__(field.type)
        self.step = cbor.text(field.name)
        self.default = default_of(field)


Compare = Callable[["_Maker", Any, Any, int, bytes], None]

_COMPARERS: Final[dict[Any, Compare]] = {}


def _comparer(kind: Any) -> Compare:
    """What notes the fields in which two values of a class differ, compiled, as every turn looks at all."""
    found = _COMPARERS.get(kind)
    if found is None:
        found = _COMPARERS[kind] = _compile(kind)
    return found


def _compile(kind: Any) -> Compare:
    known: dict[str, Any] = {"integer": cbor.integer, "PLACES": _PLACES, "SET": _SET}
    known["SHORT"] = _SPLICE_FROM_CHARS
    lines = ["def compare(maker, old, new, depth, path):", "    place = None"]
    for field in attrs.fields(attrs.resolve_types(kind)):
        name = field.name
        held = known[f"field_{name}"] = _Field(field)
        known |= {f"step_{name}": held.step, f"default_{name}": held.default, f"write_{name}": held.write}
        lines += [f"    before, after = old.{name}, new.{name}", "    if before is not after:"]
        if _is_atom(field.type):
            lines += _quick(name)
        else:
            noted = "container" if get_origin(field.type) in _GROWING else "field"
            lines.append(f"        maker.{noted}(before, after, field_{name}, depth, path)")
    exec("\n".join(lines), known)  # nosec: made of our own field names
    made: Compare = known["compare"]
    return made


def _quick(name: str) -> list[str]:
    """The lines that note a field that differs: here what is most common, the rest by the maker."""
    return [
        "        place = place or PLACES[depth + 1] + path",
        f"        if type(after) is int and after != before and after != default_{name}:",
        f"            maker.add(SET + place + step_{name} + integer(after))",
        f"        elif (type(after) is str and type(before) is str and after != default_{name}",
        "              and len(after) < SHORT and not after.startswith(before)):",
        f"            maker.add(SET + place + step_{name} + write_{name}(after, maker.writer))",
        "        else:",
        f"            maker.atom(before, after, field_{name}, place)",
    ]


def _is_atom(kind: Any) -> bool:
    """Whether a field holds a text, a number, a truth value or nothing."""
    return is_plain(kind) and all(get_origin(each) is not tuple for each in (kind, *get_args(kind)))


class _Maker:
    """Walks two values side by side and notes what differs. A path is its number of steps and their bytes."""

    __slots__ = ("add", "operations", "writer")

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.operations: list[bytes] = []
        self.add = self.operations.append

    def atom(self, before: Any, after: Any, field: _Field, place: bytes) -> None:
        """Note a field of a simple type that is not identical; as `field` does, in half the time."""
        if before == after and same(before, after):
            return
        default, place = field.default, place + field.step
        if after == default and same(after, default):
            self.add(_UNSET + place)
        elif type(after) is str and type(before) is str and before != default:
            self._text(before, after, field.write, place)
        else:
            self.add(_SET + place + field.write(after, self.writer))

    def field(self, before: Any, after: Any, field: _Field, depth: int, path: bytes) -> None:
        """Note a field that is not identical."""
        depth, path, default = depth + 1, path + field.step, field.default
        if default is attrs.NOTHING:
            self._value(before, after, field, depth, path)
        elif default is None:
            self._optional(before, after, field, depth, path)
        elif after == default and same(after, default):
            if not (before == default and same(before, default)):
                self._unset(depth, path)
        elif before == default and same(before, default):
            self._set(after, field, depth, path)
        else:
            self._value(before, after, field, depth, path)

    def _optional(self, before: Any, after: Any, kind: _Type, depth: int, path: bytes) -> None:
        if after is None:
            self._unset(depth, path)
        elif before is None:
            self._set(after, kind, depth, path)
        else:
            self._value(before, after, kind, depth, path)

    def container(self, before: Any, after: Any, field: _Field, depth: int, path: bytes) -> None:
        """Note a sequence or a table that is not identical; nearly always it grew."""
        depth, path = depth + 1, path + field.step
        was, now = (before, after) if type(after) is Vec else (before.pairs, after.pairs)
        if not now.count:
            if was.count:
                self._unset(depth, path)
        elif now.count < was.count:
            self._set(after, field, depth, path)
        elif now is after:
            self._vec(before, after, field, depth, path)
        else:
            self._table(before, after, field, depth, path)

    def _value(self, before: Any, after: Any, kind: _Type, depth: int, path: bytes) -> None:
        held = type(after)
        compare = _COMPARERS.get(held)
        if compare is not None and type(before) is held:
            compare(self, before, after, depth, path)
        elif type(before) is not held or (held in _GROWING and len(after) < len(before)):
            self._set(after, kind, depth, path)
        elif held in _ATOMS:
            if not same(before, after):
                self._set(after, kind, depth, path)
        elif held is str:
            if before != after:
                self._text(before, after, kind.write, _PLACES[depth] + path)
        elif held is Vec:
            self._vec(before, after, kind, depth, path)
        elif held is Table:
            self._table(before, after, kind, depth, path)
        elif hasattr(held, "__attrs_attrs__"):
            _comparer(held)(self, before, after, depth, path)
        elif before == after and same(before, after):
            return
        elif held is tuple:
            self._list(before, after, kind, depth, path)
        else:
            self._set(after, kind, depth, path)

    def _unset(self, depth: int, path: bytes) -> None:
        self.add(_UNSET + _PLACES[depth] + path)

    def _set(self, after: Any, kind: _Type, depth: int, path: bytes) -> None:
        self.add(_SET + _PLACES[depth] + path + kind.write(after, self.writer))

    def _vec(self, before: Vec[Any], after: Vec[Any], kind: _Type, depth: int, path: bytes) -> None:
        item = kind.item
        for start, olds, news in () if only_grew(before, after) else changed_leaves(before, after):
            for offset, (old, new) in enumerate(zip(olds, news, strict=False)):
                if old is not new:
                    self._value(old, new, item, depth + 1, path + cbor.integer(start + offset))
        if after.count > before.count:
            write, writer = item.write, self.writer
            added = [write(each, writer) for each in after.since(before.count)]
            self.add(_PUSH + _PLACES[depth] + path + cbor.array(added))

    def _table(self, before: Table[Any], after: Table[Any], kind: _Type, depth: int, path: bytes) -> None:
        item, start, was, now = kind.item, len(self.operations), before.pairs, after.pairs
        for _, olds, news in () if only_grew(was, now) else changed_leaves(was, now):
            for old, new in zip(olds, news, strict=False):
                if old is new:
                    continue
                if old[0] != new[0]:  # the tables grew apart: no turn does that, but any two states can
                    del self.operations[start:]
                    self._set(after, kind, depth, path)
                    return
                self._value(old[1], new[1], item, depth + 1, path + cbor.text(new[0]))
        if now.count > was.count:
            pair, write = self.writer.pair, item.write
            added = [pair(each, write) for each in now.since(was.count)]
            self.add(_PUT + _PLACES[depth] + path + cbor.array(added))

    def _text(self, before: str, after: str, write: Write, place: bytes) -> None:
        if after.startswith(before):
            self.add(_APPEND + place + cbor.text(after[len(before) :]))
        elif len(after) < _SPLICE_FROM_CHARS:
            self.add(_SET + place + write(after, self.writer))
        else:
            start, end = _common(before, after)
            self._splice(place, start, len(before) - start - end, cbor.text(after[start : len(after) - end]))

    def _splice(self, place: bytes, start: int, count: int, insert: bytes) -> None:
        self.add(_SPLICE + place + cbor.integer(start) + cbor.integer(count) + insert)

    def _list(
        self, before: tuple[Any, ...], after: tuple[Any, ...], kind: _Type, depth: int, path: bytes
    ) -> None:
        item, (start, end) = kind.item, _common(before, after)
        olds, news = before[start : len(before) - end], after[start : len(after) - end]
        if len(olds) == len(news):
            for offset, (old, new) in enumerate(zip(olds, news, strict=True)):
                if old is not new:
                    self._value(old, new, item, depth + 1, path + cbor.integer(start + offset))
            return
        insert = cbor.array([item.write(each, self.writer) for each in news])
        place = _PLACES[depth] + path
        if not olds and end == 0:
            self.add(_APPEND + place + insert)
        else:
            self._splice(place, start, len(olds), insert)


def _alike(one: Any, other: Any) -> bool:
    return bool(one == other) and (type(one) is str or same(one, other))


def _common(before: Any, after: Any) -> tuple[int, int]:
    """How many leading and, of the rest, trailing elements two texts or tuples share."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and _alike(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and _alike(before[-1 - end], after[-1 - end]):
        end += 1
    return start, end
