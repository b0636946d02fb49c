"""What changed between two versions of a sequence, found by skipping what they share."""

from collections.abc import Iterator
from operator import is_
from typing import Any

from orchestra.limits import TREE_FANOUT
from orchestra.model.tree import BITS, Node, Vec

Leaf = tuple[int, tuple[Any, ...], tuple[Any, ...]]
"""Where two versions differ: the first position of a leaf, its old items and its new ones."""


def only_grew(old: Vec[Any], new: Vec[Any]) -> bool:
    """Whether a sequence is another with more at its end, where a quick look tells; it is not shorter."""
    return old.root is new.root and (old.tail is new.tail or all(map(is_, old.tail.items, new.tail.items)))


def changed_leaves(old: Vec[Any], new: Vec[Any]) -> Iterator[Leaf]:
    """Where a sequence and a longer one differ in what both have: first position, old items, new items.

    Shared nodes are skipped, so the cost follows what changed.
    """
    assert new.count >= old.count, "BUG: the newer sequence must not be shorter"
    if old.root is not None and new.root is not None and old.root is not new.root:
        node, shift = new.root, new.shift
        while shift > old.shift:
            node, shift = node.items[0], shift - BITS
        yield from _changed(old.root, node, shift, 0)
    if old.count:
        start = (old.count - 1) & ~(TREE_FANOUT - 1)
        leaf = new.leaf_for(start)
        if not same(leaf, old.tail):
            yield start, old.tail.items, leaf.items


def same(mine: Node, theirs: Node) -> bool:
    """Whether two nodes are known to be equal without looking inside."""
    return mine is theirs or (mine.digest is not None and mine.digest == theirs.digest)


def _changed(old: Node, new: Node, shift: int, start: int) -> Iterator[Leaf]:
    if same(old, new):
        return
    if shift == 0:
        yield start, old.items, new.items
        return
    for index, (mine, theirs) in enumerate(zip(old.items, new.items, strict=False)):
        yield from _changed(mine, theirs, shift - BITS, start + (index << shift))
