"""Readers: functions that make model values of decoded plain data, one for each type, made once.

Plain data are dictionaries with text keys, lists, atoms and our tags. A field that is not there has its
default, so a field added later with a default reads old bytes. Unknown keys are refused.
"""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, Literal, NewType, TypeVar, get_args, get_origin

import attrs

from orchestra.codec.fields import members, tag_field
from orchestra.errors import Damaged
from orchestra.ids import Digest
from orchestra.model.frozen import bare_type
from orchestra.model.tree import BITS, Node, Table, Vec
from orchestra.model.value import Value

C = TypeVar("C")
Reader = Callable[[Any], Any]
_READERS: dict[Any, Reader] = {}
_MISFITS = (TypeError, ValueError, KeyError, AttributeError)


@attrs.frozen
class Address:
    """A digest inside a document, told apart from a frozen value."""

    digest: bytes


def structure(plain: Any, kind: type[C], *, what: str) -> C:
    """A model value from decoded plain data; raises `Damaged`."""
    try:
        made: C = reader_for(kind)(plain)
    except _MISFITS as error:
        raise _misfit_error(what, error) from None
    return made


def _misfit_error(what: str, error: Exception) -> Damaged:
    why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return Damaged(what=what, reason=f"it does not fit the model ({why})")


def reader_for(kind: Any) -> Reader:
    """The function that makes values of that type from plain data."""
    found = _READERS.get(kind)
    if found is None:
        found = _READERS[kind] = _make_reader(kind)
    return found


def _make_reader(kind: Any) -> Reader:
    if kind in _ATOMS:
        return _ATOMS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if union := members(kind):
        tag = tag_field(next(iter(union.values())))
        return lambda plain: reader_for(union[_check(plain, dict)[tag]])(plain)
    if isinstance(kind, NewType):
        return reader_for(kind.__supertype__)
    if origin is Literal:
        return _literal(frozenset(arguments))
    if origin is Vec:
        item = reader_for(arguments[0])
        return lambda plain: _read_vec(_check(plain, Vec), item)
    if origin is Table:
        value = reader_for(arguments[0])
        return lambda plain: Table.of_pairs(
            _read_vec(_check(plain, Table).pairs, lambda pair: (pair[0], value(pair[1])))
        )
    if origin is tuple:
        return _tuple_reader(arguments)
    if type(None) in arguments:
        inner = reader_for(reduce(or_, [each for each in arguments if each is not type(None)]))
        return lambda plain: None if plain is None else inner(plain)
    assert attrs.has(kind), f"BUG: no reader for {kind}"
    return _class_reader(kind)


def _class_reader(kind: Any) -> Reader:
    fields = attrs.fields(attrs.resolve_types(kind))
    readers = {field.name: reader_for(field.type) for field in fields}
    bare = {field.name: bare_type(field.type) for field in fields}  # most values pass by their type alone

    def read(plain: Any) -> Any:
        return kind(
            **{
                name: value if type(value) is bare[name] else readers[name](value)
                for name, value in _check(plain, dict).items()
            }
        )

    return read


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    if arguments[1:] == (...,):
        item = reader_for(arguments[0])
        return lambda plain: tuple([item(each) for each in _check(plain, list)])
    readers = [reader_for(argument) for argument in arguments]
    return lambda plain: tuple([read(each) for read, each in zip(readers, _check(plain, list), strict=True)])


def _literal(allowed: frozenset[Any]) -> Reader:
    def check(plain: Any) -> Any:
        if plain not in allowed:
            raise ValueError(f"{plain!r} is none of {sorted(allowed)}")
        return plain

    return check


def _exactly(name: str, *atoms: type) -> Reader:
    def check(plain: Any) -> Any:
        if type(plain) not in atoms:
            raise TypeError(f"{type(plain).__name__} where {name} belongs")
        return plain

    return check


def _check(plain: Any, kind: type) -> Any:
    if not isinstance(plain, kind):
        raise TypeError(f"{type(plain).__name__} where {kind.__name__} belongs")
    return plain


_ATOMS: dict[Any, Reader] = {
    str: _exactly("str", str),
    int: _exactly("int", int),
    bool: _exactly("bool", bool),
    float: _exactly("a number", float, int),
    int | float: _exactly("a number", float, int),
    Value: lambda plain: Value(plain) if type(plain) is bytes else _check(plain, Value),
    Digest: lambda plain: _check(plain, Address).digest,
}


class LazyLeaf(Node):
    """A leaf whose items become model values when they are first read; its bytes are proved already."""

    __slots__ = ("_item", "_items", "_source")

    def __init__(self, source: Node, item: Reader) -> None:
        self.digest = source.digest
        self._source: Node | None = source
        self._item = item
        self._items: tuple[Any, ...] = ()

    @property
    def items(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The items; raises `Damaged` when they do not fit the model."""
        if self._source is not None:
            self._items = _read_items(self._source, self._item)
            self._source = None
        return self._items


def _read_items(leaf: Node, item: Reader) -> tuple[Any, ...]:
    try:
        return tuple([item(each) for each in leaf.items])
    except _MISFITS as error:
        raise _misfit_error("a part of the state", error) from None


def _read_vec(vec: Vec[Any], item: Reader) -> Vec[Any]:
    """The same sequence with every item read; nodes keep the digest they have in the store."""
    root = None if vec.root is None else _read_node(vec.root, vec.shift, item)
    return Vec.of_nodes(len(vec), vec.shift, root, _read_node(vec.tail, 0, item))


def _read_node(node: Node, shift: int, item: Reader) -> Node:
    if shift:
        return Node(tuple([_read_node(child, shift - BITS, item) for child in node.items]), node.digest)
    if node.digest is None:
        return Node(_read_items(node, item))
    return LazyLeaf(node, item)
