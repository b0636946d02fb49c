"""Sequences grow without looking at what is not loaded yet."""

import pytest

from orchestra.model.tree import Node, Vec


class Unloaded(Node):
    """A node that nobody may look into."""

    __slots__ = ()

    @property
    def items(self) -> tuple[object, ...]:  # type: ignore[override]
        raise AssertionError("it was looked at")


def unloaded() -> Node:
    """A node whose items are not there."""
    node: Node = object.__new__(Unloaded)
    node.digest = b"d"
    return node


@pytest.mark.parametrize("count", [32, 64, 96, 1024, 1056])
def test_what_is_full_is_not_looked_at(count: int) -> None:
    whole: Vec[int] = Vec(range(count))
    root = None if whole.root is None else unloaded()
    vec: Vec[int] = Vec.of_nodes(count, whole.shift, root, unloaded())
    grown = vec.append(-1).append(-2)
    assert len(grown) == count + 2
    assert grown[count] == -1
    assert grown[-1] == -2


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 65, 1100])
@pytest.mark.parametrize("position", [0, 1, 31, 32, 33, 64, 1099])
def test_the_items_since_a_position(count: int, position: int) -> None:
    vec = Vec(range(count))
    assert list(vec.since(min(position, count))) == list(range(min(position, count), count))
