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

`make` works on model values and skips what is identical; `orchestra.codec.document.patched` needs no model.
"""

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter, is_
from typing import Any, Final, cast, get_args, get_origin

import attrs

from orchestra.codec import cbor
from orchestra.codec.convert import Writer
from orchestra.codec.fields import default_of, same
from orchestra.codec.writers import Write, writer_for
from orchestra.ids import Digest
from orchestra.model.state import State
from orchestra.model.tree import Table, Vec, changed_leaves

Path = tuple[str | int, ...]
Operation = list[Any]

_SPLICE_FROM_CHARS: Final = 64
_GROWING: Final = (Vec, Table)
_ATOMS: Final = frozenset({int, float, bool, type(None)})


def make(writer: Writer, old: State, new: State) -> list[Operation]:
    """The operations that lead from `old` to `new`."""
    maker = _Maker(writer)
    maker.fields(old, new, ())
    return maker.operations


def encode(references: Sequence[Digest], operations: list[Operation]) -> bytes:
    """Canonical bytes of a patch."""
    return cbor.encode([list(dict.fromkeys(references)), operations])


class _Type:
    """A type as patches see it: how its values are written, and the type of their items."""

    __slots__ = ("_item", "_kind", "write")

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._item: _Type | None = None
        self.write: Write | None = writer_for(kind)

    @property
    def item(self) -> "_Type":
        """The type of the items of `Vec[T]`, `Table[T]`, `tuple[T, ...]`, or of such a type or None."""
        if self._item is None:
            self._item = _Type(_item_of(self._kind))
        return self._item


def _item_of(kind: Any) -> Any:
    for argument in get_args(kind):
        if get_origin(argument) in (tuple, Vec, Table):
            return get_args(argument)[0]
    return get_args(kind)[0]


@cache
def _fields_of(kind: Any) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[tuple[str, Any, _Type], ...]]:
    """What gets the values of all fields, and name, default and type of each."""
    fields = attrs.fields(attrs.resolve_types(kind))
    names = [field.name for field in fields]
    assert len(names) > 1, "BUG: a class with one field has nothing to compare"
    plan = tuple((field.name, default_of(field), _Type(field.type)) for field in fields)
    return attrgetter(*names), plan


class _Maker:
    """Walks two values side by side and notes what differs."""

    __slots__ = ("_writer", "operations")

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.operations: list[Operation] = []

    def fields(self, old: Any, new: Any, path: Path) -> None:
        values, fields = _fields_of(cast("Any", type(new)))
        for before, after, field in zip(values(old), values(new), fields, strict=True):
            if before is not after:
                name, default, kind = field
                self._field(before, after, default, kind, (*path, name))

    def _field(self, before: Any, after: Any, default: Any, kind: _Type, path: Path) -> None:
        if type(after) in _GROWING:
            if len(after):
                self._value(before, after, kind, path)
            elif len(before):
                self.operations.append(["unset", path])
        elif default is attrs.NOTHING:
            self._value(before, after, kind, path)
        elif after == default and same(after, default):
            if not (before == default and same(before, default)):
                self.operations.append(["unset", path])
        elif before == default and same(before, default):
            self._set(after, kind, path)
        else:
            self._value(before, after, kind, path)

    def _value(self, before: Any, after: Any, kind: _Type, path: Path) -> None:
        held = type(after)
        if type(before) is not held or (held in _GROWING and len(after) < len(before)):
            self._set(after, kind, path)
        elif held in _ATOMS:
            if not same(before, after):
                self._set(after, kind, path)
        elif held is Vec:
            self._vec(before, after, kind, path)
        elif held is Table:
            self._table(before, after, kind, path)
        elif hasattr(held, "__attrs_attrs__"):
            self.fields(before, after, path)
        elif before == after and same(before, after):
            return
        elif held is str:
            self._text(before, after, path)
        elif held is tuple:
            self._list(before, after, kind, path)
        else:
            self._set(after, kind, path)

    def _set(self, after: Any, kind: _Type, path: Path) -> None:
        self.operations.append(["set", path, self._plain(after, kind)])

    def _plain(self, thing: Any, kind: _Type) -> Any:
        return thing if kind.write is None else kind.write(thing, self._writer)

    def _vec(self, before: Vec[Any], after: Vec[Any], kind: _Type, path: Path) -> None:
        item = kind.item
        for start, olds, news in changed_leaves(before, after):
            if not all(map(is_, olds, news)):
                for offset, (old, new) in enumerate(zip(olds, news, strict=False)):
                    if old is not new:
                        self._value(old, new, item, (*path, start + offset))
        count = len(before)
        if len(after) > count:
            added = [self._plain(each, item) for each in after.since(count)]
            self.operations.append(["push", path, added])

    def _table(self, before: Table[Any], after: Table[Any], kind: _Type, path: Path) -> None:
        item, start = kind.item, len(self.operations)
        for _, olds, news in changed_leaves(before.pairs, after.pairs):
            if all(map(is_, olds, news)):
                continue
            for old, new in zip(olds, news, strict=False):
                if old is new:
                    continue
                if old[0] != new[0]:  # the tables grew apart: no turn does that, but any two states can
                    del self.operations[start:]
                    self._set(after, kind, path)
                    return
                self._value(old[1], new[1], item, (*path, new[0]))
        count = len(before)
        if len(after) > count:
            added = [[key, self._plain(each, item)] for key, each in after.pairs.since(count)]
            self.operations.append(["put", path, added])

    def _text(self, before: str, after: str, path: Path) -> None:
        if after.startswith(before):
            self.operations.append(["append", path, after[len(before) :]])
        elif len(after) < _SPLICE_FROM_CHARS:
            self.operations.append(["set", path, after])
        else:
            start, end = _common(before, after)
            insert = after[start : len(after) - end]
            self.operations.append(["splice", path, start, len(before) - start - end, insert])

    def _list(self, before: tuple[Any, ...], after: tuple[Any, ...], kind: _Type, path: Path) -> None:
        item = kind.item
        start, end = _common(before, after)
        olds, news = before[start : len(before) - end], after[start : len(after) - end]
        if len(olds) == len(news):
            for offset, (old, new) in enumerate(zip(olds, news, strict=True)):
                if old is not new:
                    self._value(old, new, item, (*path, start + offset))
            return
        insert = [self._plain(each, item) for each in news]
        if not olds and end == 0:
            self.operations.append(["append", path, insert])
        else:
            self.operations.append(["splice", path, start, len(olds), insert])


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
