"""The persistent tree: sequences and tables that share what did not change, and what changed between two."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import is_
from typing import Any, Final, Generic, TypeVar, overload

from orchestra.errors import Damaged
from orchestra.limits import TREE_FANOUT

T = TypeVar("T")

BITS: Final = 5
_MASK: Final = TREE_FANOUT - 1
assert 1 << BITS == TREE_FANOUT, "BUG: the fan-out must be 32"


class Node:
    """Up to 32 children (a branch) or up to 32 items (a leaf)."""

    __slots__ = ("digest", "items")

    def __init__(self, items: tuple[Any, ...], digest: bytes | None = None) -> None:
        self.items = items
        self.digest = digest


_EMPTY: Final = Node(())
_new: Final = object.__new__


class Vec(Generic[T]):
    """An immutable sequence; `append` and `set` return a new one that shares its nodes.

    `count` is its length, `root` the tree of full leaves (None while everything is in the tail), `shift` five
    times the height of that tree above its leaves, and `tail` the last leaf, with 1 to 32 items (none only
    when the sequence is empty). They are plain attributes: every turn asks for them hundreds of times.
    """

    __slots__ = ("count", "root", "shift", "tail")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self.count, self.shift, self.root, self.tail = _build(tuple(items))

    @classmethod
    def of_nodes(cls, count: int, shift: int, root: Node | None, tail: Node) -> "Vec[T]":
        """A sequence over existing nodes; `shift` is 5 times the height of the tree."""
        return _vec(count, shift, root, tail)

    def append(self, item: T) -> "Vec[T]":
        count = self.count
        if count & _MASK or not count:  # a full tail is not looked at: it may not be loaded yet
            return _with_tail(self, count + 1, (*self.tail.items, item))
        shift, root = _push(self.shift, self.root, self.tail, count - TREE_FANOUT)
        return _vec(count + 1, shift, root, Node((item,)))

    def extend(self, items: Iterable[T]) -> "Vec[T]":
        vec = self
        for item in items:
            vec = vec.append(item)
        return vec

    def set(self, position: int, item: T) -> "Vec[T]":
        """A sequence with the item at `position` replaced."""
        if not 0 <= position < self.count:
            raise IndexError(position)
        if position >= (self.count - 1) & ~_MASK:
            return _with_tail(self, self.count, _replace(self.tail.items, position & _MASK, item))
        assert self.root is not None, "BUG: items before the tail live in the tree"
        root = _set(self.shift, self.root, position, item)
        return _vec(self.count, self.shift, root, self.tail)

    def since(self, position: int) -> Sequence[T]:
        """The items from `position` on; quick where these are the last few."""
        if position >= self.count:
            return ()
        start = (self.count - 1) & ~_MASK
        return self.tail.items[position - start :] if position >= start else self[position:]

    def leaf_for(self, position: int) -> Node:
        """The leaf that holds `position`."""
        if position >= (self.count - 1) & ~_MASK:
            return self.tail
        node, shift = self.root, self.shift
        assert node is not None, "BUG: items before the tail live in the tree"
        while shift > 0:
            node = node.items[(position >> shift) & _MASK]
            shift -= BITS
        return node

    def leaves(self) -> Iterator[Node]:
        if self.root is not None:
            yield from _leaves(self.root, self.shift)
        if self.count:
            yield self.tail

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> list[T]: ...
    def __getitem__(self, position: int | slice) -> T | list[T]:
        if isinstance(position, slice):
            return [self[index] for index in range(*position.indices(self.count))]
        index = position + self.count if position < 0 else position
        if not 0 <= index < self.count:
            raise IndexError(position)
        found: T = self.leaf_for(index).items[index & _MASK]
        return found

    def __iter__(self) -> Iterator[T]:
        if self.root is None:
            return iter(self.tail.items)
        return chain.from_iterable(leaf.items for leaf in self.leaves())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Vec) or self.count != other.count:
            return NotImplemented if not isinstance(other, Vec) else False
        pairs = zip(self.leaves(), other.leaves(), strict=True)
        return all(mine is theirs or mine.items == theirs.items for mine, theirs in pairs)

    def __hash__(self) -> int:
        return hash((self.count, self.tail.items))

    def __repr__(self) -> str:
        return f"Vec({list(self)!r})"


def _vec(count: int, shift: int, root: Node | None, tail: Node) -> Vec[Any]:
    """What `Vec.of_nodes` makes, without the detour: every event makes several."""
    vec: Vec[Any] = _new(Vec)
    vec.count, vec.shift, vec.root, vec.tail = count, shift, root, tail
    return vec


def _with_tail(old: Vec[Any], count: int, items: tuple[Any, ...]) -> Vec[Any]:
    """A sequence that differs from another in its tail alone, which is how nearly all of them come about."""
    tail: Node = _new(Node)
    tail.items, tail.digest = items, None
    vec: Vec[Any] = _new(Vec)
    vec.count, vec.shift, vec.root, vec.tail = count, old.shift, old.root, tail
    return vec


_Index = dict[str, int]
"""Positions by key, shared by all versions of one line of history; only its tip may add to it."""


class Table(Generic[T]):
    """An immutable map with string keys in order of insertion, its `pairs`; `set` returns a new one."""

    __slots__ = ("_index", "pairs")

    def __init__(self, entries: Iterable[tuple[str, T]] = ()) -> None:
        latest: dict[str, T] = dict(entries)
        self.pairs: Vec[tuple[str, T]] = Vec(latest.items())
        self._index: _Index | None = {key: position for position, key in enumerate(latest)}

    @classmethod
    def of_pairs(cls, pairs: Vec[tuple[str, T]]) -> "Table[T]":
        """A table over a sequence of pairs, whose keys must differ; the index is made when needed."""
        return _table(pairs, None)

    def position(self, key: str) -> int | None:
        index = self._index
        position = (self._positions() if index is None else index).get(key)
        return position if position is not None and position < self.pairs.count else None

    def set(self, key: str, value: T) -> "Table[T]":
        """A table in which `key` has `value`."""
        index, pairs = self._index, self.pairs
        position = (self._positions() if index is None else index).get(key)
        if position is not None and position < pairs.count:
            if position < (pairs.count - 1) & ~_MASK:
                return _table(pairs.set(position, (key, value)), self._index)
            items = [*pairs.tail.items]
            items[position & _MASK] = (key, value)
            return _table(_with_tail(pairs, pairs.count, tuple(items)), self._index)
        index = self._positions()  # shared with other versions: their tip may add to it, others to a copy
        if len(index) != pairs.count:
            index = {known: place for known, place in index.items() if place < pairs.count}
        index[key] = pairs.count
        return _table(pairs.append((key, value)), index)

    def add(self, entries: Iterable[tuple[str, T]]) -> "Table[T]":
        """A table with entries of new keys. The others are not looked at: they may not be loaded yet."""
        if self._index is None:
            return _table(self.pairs.extend(entries), None)
        table = self
        for key, value in entries:
            table = table.set(key, value)
        return table

    def get(self, key: str) -> T | None:
        index, pairs = self._index, self.pairs
        position = (self._positions() if index is None else index).get(key)
        if position is None or position >= pairs.count:
            return None
        leaf = pairs.tail if position >= (pairs.count - 1) & ~_MASK else pairs.leaf_for(position)
        found: T = leaf.items[position & _MASK][1]
        return found

    def keys(self) -> Iterator[str]:
        return (pair[0] for pair in self.pairs)

    def values(self) -> Iterator[T]:
        return (pair[1] for pair in self.pairs)

    def items(self) -> Iterator[tuple[str, T]]:
        return iter(self.pairs)

    def __getitem__(self, key: str) -> T:
        index, pairs = self._index, self.pairs
        position = (self._positions() if index is None else index).get(key)
        if position is None or position >= pairs.count:
            raise KeyError(key)
        leaf = pairs.tail if position >= (pairs.count - 1) & ~_MASK else pairs.leaf_for(position)
        found: T = leaf.items[position & _MASK][1]
        return found

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.position(key) is not None

    def __iter__(self) -> Iterator[str]:
        return self.keys()

    def __len__(self) -> int:
        return self.pairs.count

    def __eq__(self, other: object) -> bool:
        return self.pairs == other.pairs if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.pairs)

    def __repr__(self) -> str:
        return f"Table({dict(self.pairs)!r})"

    def _positions(self) -> _Index:
        if self._index is None:
            index = {pair[0]: position for position, pair in enumerate(self.pairs)}
            if len(index) != len(self.pairs):
                raise Damaged(what="a table of the state", reason="it has two entries of one key")
            self._index = index
        return self._index


def _table(pairs: Vec[tuple[str, Any]], index: _Index | None) -> Table[Any]:
    """A table over pairs with their index, without the detour through the class."""
    table: Table[Any] = _new(Table)
    table.pairs, table._index = pairs, index
    return table


def _replace(items: tuple[Any, ...], position: int, item: object) -> tuple[Any, ...]:
    changed = [*items]
    changed[position] = item
    return tuple(changed)


def _set(shift: int, node: Node, position: int, item: object) -> Node:
    index = (position >> shift) & _MASK
    if shift == 0:
        return Node(_replace(node.items, index, item))
    return Node(_replace(node.items, index, _set(shift - BITS, node.items[index], position, item)))


def _push(shift: int, root: Node | None, leaf: Node, position: int) -> tuple[int, Node]:
    """The tree with one more full leaf, whose first item stands at `position`."""
    if root is None:
        return 0, leaf
    if position == 1 << (shift + BITS):
        return shift + BITS, Node((root, _spine(shift, leaf)))
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
        return Node((*node.items, _spine(shift - BITS, leaf)))
    return Node(_replace(node.items, index, _push_into(shift - BITS, node.items[index], leaf, position)))


def _spine(shift: int, leaf: Node) -> Node:
    return leaf if shift == 0 else Node((_spine(shift - BITS, leaf),))


def _leaves(node: Node, shift: int) -> Iterator[Node]:
    if shift == 0:
        yield node
        return
    for child in node.items:
        yield from _leaves(child, shift - BITS)


def _build(items: tuple[Any, ...]) -> tuple[int, int, Node | None, Node]:
    """All at once what `append` would make of `items` one by one."""
    if len(items) <= TREE_FANOUT:
        return len(items), 0, None, Node(items) if items else _EMPTY
    leaves = [Node(items[start : start + TREE_FANOUT]) for start in range(0, len(items), TREE_FANOUT)]
    tail = leaves.pop()
    shift, root = tree_of(leaves)
    return len(items), shift, root, tail


def tree_of(leaves: list[Node]) -> tuple[int, Node | None]:
    """The tree over full leaves: five times its height, and its root."""
    level, shift = leaves, 0
    while len(level) > 1:
        level = [Node(tuple(level[at : at + TREE_FANOUT])) for at in range(0, len(level), TREE_FANOUT)]
        shift += BITS
    return shift, level[0] if level else None


def shift_for(count: int) -> int:
    """Five times the height of the tree of a sequence of `count` items."""
    full, shift = (max(count - 1, 0) >> BITS) << BITS, 0
    while full > 1 << (shift + BITS):
        shift += BITS
    return shift


Leaf = tuple[int, tuple[Any, ...], tuple[Any, ...]]
"""Where two versions differ: the first position of a leaf, its old items and its new ones."""


def only_grew(old: Vec[Any], new: Vec[Any]) -> bool:
    """Whether a sequence is another with more at its end, where a quick look tells; it is not shorter."""
    return old.root is new.root and (old.tail is new.tail or all(map(is_, old.tail.items, new.tail.items)))


def changed_leaves(old: Vec[Any], new: Vec[Any]) -> Iterator[Leaf]:
    """Where a sequence and a longer one differ in what both have; shared nodes are skipped."""
    assert new.count >= old.count, "BUG: the newer sequence must not be shorter"
    if old.root is not None and new.root is not None and old.root is not new.root:
        node, shift = new.root, new.shift
        while shift > old.shift:
            node, shift = node.items[0], shift - BITS
        yield from _differences(old.root, node, shift, 0)
    if old.count:
        start = (old.count - 1) & ~(TREE_FANOUT - 1)
        leaf = new.leaf_for(start)
        if not is_same_node(leaf, old.tail):
            yield start, old.tail.items, leaf.items


def is_same_node(mine: Node, theirs: Node) -> bool:
    """Whether two nodes are known to be equal without looking inside."""
    return mine is theirs or (mine.digest is not None and mine.digest == theirs.digest)


def _differences(old: Node, new: Node, shift: int, start: int) -> Iterator[Leaf]:
    if is_same_node(old, new):
        return
    if shift == 0:
        yield start, old.items, new.items
        return
    for index, (mine, theirs) in enumerate(zip(old.items, new.items, strict=False)):
        yield from _differences(mine, theirs, shift - BITS, start + (index << shift))
