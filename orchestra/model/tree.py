"""The persistent tree: sequences and tables that share what did not change.

`Vec` is an append/set sequence of fan-out 32 with the last leaf kept beside the tree; `Table` is a
`Vec` of `(key, value)` pairs in order of insertion with an index from key to position. Neither
deletes. An update copies the path from the root to one leaf, so older versions stay valid and two
versions share every untouched node *by identity*: that is what patch, seal and diff skip by.

The shape of a tree depends on its length alone, so equal contents have equal seals.

A node carries the digest of its sealed form once its object was seen in the store, and never before.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar, overload

from orchestra.errors import Damaged
from orchestra.limits import TREE_FANOUT

T = TypeVar("T")

_BITS: Final = 5
_MASK: Final = TREE_FANOUT - 1
assert 1 << _BITS == TREE_FANOUT, "BUG: the fan-out must be 32"


class Node:
    """Up to 32 children (a branch) or up to 32 items (a leaf)."""

    __slots__ = ("digest", "items")

    def __init__(self, items: tuple[Any, ...], digest: bytes | None = None) -> None:
        self.items = items
        self.digest = digest


_EMPTY: Final = Node(())
_new: Final = object.__new__


class Vec(Generic[T]):
    """An immutable sequence; `append` and `set` return a new one that shares its nodes."""

    __slots__ = ("_count", "_root", "_shift", "_tail")

    def __init__(self, items: Iterable[T] = ()) -> None:
        built = _build(tuple(items))
        self._count, self._shift, self._root, self._tail = built

    @classmethod
    def of_nodes(cls, count: int, shift: int, root: Node | None, tail: Node) -> "Vec[T]":
        """A sequence over existing nodes; `shift` is 5 times the height of the tree."""
        vec: Vec[T] = cls.__new__(cls)
        vec._count, vec._shift, vec._root, vec._tail = count, shift, root, tail
        return vec

    @property
    def shift(self) -> int:
        """Five times the height of the tree above the leaves."""
        return self._shift

    @property
    def root(self) -> Node | None:
        """The tree of full leaves, or None while everything is in the tail."""
        return self._root

    @property
    def tail(self) -> Node:
        """The last leaf, with 1 to 32 items (none only when the sequence is empty)."""
        return self._tail

    def append(self, item: T) -> "Vec[T]":
        """A sequence with `item` at its end."""
        tail = self._tail
        if self._count & _MASK or not self._count:  # a full tail is not looked at: it may not be loaded yet
            return _vec(self._count + 1, self._shift, self._root, Node((*tail.items, item)))
        shift, root = _push(self._shift, self._root, tail, self._count - TREE_FANOUT)
        return _vec(self._count + 1, shift, root, Node((item,)))

    def extend(self, items: Iterable[T]) -> "Vec[T]":
        """A sequence with all `items` at its end."""
        vec = self
        for item in items:
            vec = vec.append(item)
        return vec

    def set(self, position: int, item: T) -> "Vec[T]":
        """A sequence with the item at `position` replaced."""
        if not 0 <= position < self._count:
            raise IndexError(position)
        start = self._count - len(self._tail.items)
        if position >= start:
            tail = Node(_replaced(self._tail.items, position - start, item))
            return _vec(self._count, self._shift, self._root, tail)
        assert self._root is not None, "BUG: items before the tail live in the tree"
        root = _set(self._shift, self._root, position, item)
        return Vec.of_nodes(self._count, self._shift, root, self._tail)

    def since(self, position: int) -> Sequence[T]:
        """The items from `position` on; quick where these are the last few."""
        start = self._count - len(self._tail.items)
        return self._tail.items[position - start :] if position >= start else self[position:]

    def leaf_for(self, position: int) -> Node:
        """The leaf that holds `position`."""
        if position >= self._count - len(self._tail.items):
            return self._tail
        node, shift = self._root, self._shift
        assert node is not None, "BUG: items before the tail live in the tree"
        while shift > 0:
            node = node.items[(position >> shift) & _MASK]
            shift -= _BITS
        return node

    def leaves(self) -> Iterator[Node]:
        """Every leaf from first to last."""
        if self._root is not None:
            yield from _leaves(self._root, self._shift)
        if self._count:
            yield self._tail

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> list[T]: ...
    def __getitem__(self, position: int | slice) -> T | list[T]:
        if isinstance(position, slice):
            return [self[index] for index in range(*position.indices(self._count))]
        index = position + self._count if position < 0 else position
        if not 0 <= index < self._count:
            raise IndexError(position)
        found: T = self.leaf_for(index).items[index & _MASK]
        return found

    def __iter__(self) -> Iterator[T]:
        for leaf in self.leaves():
            yield from leaf.items

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Vec) or self._count != other._count:
            return NotImplemented if not isinstance(other, Vec) else False
        pairs = zip(self.leaves(), other.leaves(), strict=True)
        return all(mine is theirs or mine.items == theirs.items for mine, theirs in pairs)

    def __hash__(self) -> int:
        return hash((self._count, self._tail.items))

    def __repr__(self) -> str:
        return f"Vec({list(self)!r})"


def _vec(count: int, shift: int, root: Node | None, tail: Node) -> Vec[Any]:
    """What `Vec.of_nodes` makes, without the detour: every event makes several."""
    vec: Vec[Any] = _new(Vec)
    vec._count, vec._shift, vec._root, vec._tail = count, shift, root, tail
    return vec


class _Index:
    """Positions by key, shared by all versions of one line of history; only its tip may add to it."""

    __slots__ = ("positions",)

    def __init__(self, positions: dict[str, int]) -> None:
        self.positions = positions


class Table(Generic[T]):
    """An immutable map with string keys in order of insertion; `set` returns a new one."""

    __slots__ = ("_index", "_pairs")

    def __init__(self, entries: Iterable[tuple[str, T]] = ()) -> None:
        latest: dict[str, T] = dict(entries)
        self._pairs: Vec[tuple[str, T]] = Vec(latest.items())
        self._index: _Index | None = _Index({key: position for position, key in enumerate(latest)})

    @classmethod
    def of_pairs(cls, pairs: Vec[tuple[str, T]]) -> "Table[T]":
        """A table over a sequence of pairs, whose keys must differ; the index is made when needed."""
        return cls._with(pairs, None)

    @property
    def pairs(self) -> Vec[tuple[str, T]]:
        """The entries as a sequence, in order of insertion."""
        return self._pairs

    def position(self, key: str) -> int | None:
        """Where `key` stands, or None."""
        index = self._index
        position = (self._positions() if index is None else index.positions).get(key)
        return position if position is not None and position < self._pairs._count else None

    def set(self, key: str, value: T) -> "Table[T]":
        """A table in which `key` has `value`."""
        position = self.position(key)
        if position is not None:
            return self._with(self._pairs.set(position, (key, value)), self._index)
        index = self._own_index()
        index.positions[key] = len(self._pairs)
        return self._with(self._pairs.append((key, value)), index)

    def added(self, entries: Iterable[tuple[str, T]]) -> "Table[T]":
        """A table with entries of new keys. The others are not looked at: they may not be loaded yet."""
        if self._index is None:
            return self._with(self._pairs.extend(entries), None)
        table = self
        for key, value in entries:
            table = table.set(key, value)
        return table

    def get(self, key: str) -> T | None:
        """The value of `key`, or None."""
        position = self.position(key)
        return None if position is None else self._pairs.leaf_for(position).items[position & _MASK][1]

    def keys(self) -> Iterator[str]:
        """Every key in order of insertion."""
        return (pair[0] for pair in self._pairs)

    def values(self) -> Iterator[T]:
        """Every value in order of insertion."""
        return (pair[1] for pair in self._pairs)

    def items(self) -> Iterator[tuple[str, T]]:
        """Every entry in order of insertion."""
        return iter(self._pairs)

    def __getitem__(self, key: str) -> T:
        position = self.position(key)
        if position is None:
            raise KeyError(key)
        return self._pairs[position][1]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.position(key) is not None

    def __iter__(self) -> Iterator[str]:
        return self.keys()

    def __len__(self) -> int:
        return len(self._pairs)

    def __eq__(self, other: object) -> bool:
        return self._pairs == other._pairs if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __repr__(self) -> str:
        return f"Table({dict(self._pairs)!r})"

    def _own_index(self) -> _Index:
        """The shared index when this version is its tip, else a copy cut to this version."""
        count = len(self._pairs)
        positions = self._positions()
        assert self._index is not None, "BUG: asking for positions makes the index"
        if len(positions) == count:
            return self._index
        return _Index({key: position for key, position in positions.items() if position < count})

    def _positions(self) -> dict[str, int]:
        if self._index is None:
            positions = {pair[0]: position for position, pair in enumerate(self._pairs)}
            if len(positions) != len(self._pairs):
                raise Damaged(what="a table of the state", reason="it has two entries of one key")
            self._index = _Index(positions)
        return self._index.positions

    @classmethod
    def _with(cls, pairs: Vec[tuple[str, T]], index: _Index | None) -> "Table[T]":
        table: Table[T] = _new(cls)
        table._pairs, table._index = pairs, index
        return table


def changed_leaves(old: Vec[Any], new: Vec[Any]) -> Iterator[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
    """Where a sequence and a longer one differ in what both have: first position, old items, new items.

    Shared nodes are skipped, so the cost follows what changed.
    """
    assert len(new) >= len(old), "BUG: the newer sequence must not be shorter"
    if old.root is not None and new.root is not None and old.root is not new.root:
        node, shift = new.root, new.shift
        while shift > old.shift:
            node, shift = node.items[0], shift - _BITS
        yield from _changed(old.root, node, shift, 0)
    if len(old):
        start = len(old) - len(old.tail.items)
        leaf = new.leaf_for(start)
        if not same(leaf, old.tail):
            yield start, old.tail.items, leaf.items


def same(mine: Node, theirs: Node) -> bool:
    """Whether two nodes are known to be equal without looking inside."""
    return mine is theirs or (mine.digest is not None and mine.digest == theirs.digest)


def _changed(
    old: Node, new: Node, shift: int, start: int
) -> Iterator[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
    if same(old, new):
        return
    if shift == 0:
        yield start, old.items, new.items
        return
    for index, (mine, theirs) in enumerate(zip(old.items, new.items, strict=False)):
        yield from _changed(mine, theirs, shift - _BITS, start + (index << shift))


def _replaced(items: tuple[Any, ...], position: int, item: object) -> tuple[Any, ...]:
    return (*items[:position], item, *items[position + 1 :])


def _set(shift: int, node: Node, position: int, item: object) -> Node:
    index = (position >> shift) & _MASK
    if shift == 0:
        return Node(_replaced(node.items, index, item))
    return Node(_replaced(node.items, index, _set(shift - _BITS, node.items[index], position, item)))


def _push(shift: int, root: Node | None, leaf: Node, position: int) -> tuple[int, Node]:
    """The tree with one more full leaf, whose first item stands at `position`."""
    if root is None:
        return 0, leaf
    if position == 1 << (shift + _BITS):
        return shift + _BITS, Node((root, _spine(shift, leaf)))
    if type(root) is Node or type(root) is _Pushed:
        return shift, _push_into(shift, root, leaf, position)
    return shift, _Pushed(shift, root, leaf, position)


class _Pushed(Node):
    """A tree with one more leaf, worked out when it is looked at: the tree may not be loaded yet."""

    __slots__ = ("_inputs", "_items")

    def __init__(self, shift: int, root: Node, leaf: Node, position: int) -> None:
        self.digest = None
        self._inputs = shift, root, leaf, position
        self._items: tuple[Any, ...] | None = None

    @property
    def items(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The children."""
        if self._items is None:
            self._items = _push_into(*self._inputs).items
        return self._items


def _push_into(shift: int, node: Node, leaf: Node, position: int) -> Node:
    index = (position >> shift) & _MASK
    if index == len(node.items):
        return Node((*node.items, _spine(shift - _BITS, leaf)))
    return Node(_replaced(node.items, index, _push_into(shift - _BITS, node.items[index], leaf, position)))


def _spine(shift: int, leaf: Node) -> Node:
    return leaf if shift == 0 else Node((_spine(shift - _BITS, leaf),))


def _leaves(node: Node, shift: int) -> Iterator[Node]:
    if shift == 0:
        yield node
        return
    for child in node.items:
        yield from _leaves(child, shift - _BITS)


def _build(items: tuple[Any, ...]) -> tuple[int, int, Node | None, Node]:
    """All at once what `append` would make of `items` one by one."""
    if not items:
        return 0, 0, None, _EMPTY
    leaves = [Node(items[start : start + TREE_FANOUT]) for start in range(0, len(items), TREE_FANOUT)]
    tail = leaves.pop()
    shift, root = tree_of(leaves)
    return len(items), shift, root, tail


def tree_of(leaves: list[Node]) -> tuple[int, Node | None]:
    """The tree over full leaves: five times its height, and its root."""
    level, shift = leaves, 0
    while len(level) > 1:
        level = [Node(tuple(level[at : at + TREE_FANOUT])) for at in range(0, len(level), TREE_FANOUT)]
        shift += _BITS
    return shift, level[0] if level else None


def shift_for(count: int) -> int:
    """Five times the height of the tree of a sequence of `count` items."""
    full, shift = (max(count - 1, 0) >> _BITS) << _BITS, 0
    while full > 1 << (shift + _BITS):
        shift += _BITS
    return shift
