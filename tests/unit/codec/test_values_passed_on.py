"""A frozen value enters the context as if it had been opened and frozen again."""

from typing import Any

import pytest

from orchestra.codec.address import Addresser
from orchestra.codec.values import contribution, freeze, pass_on, thaw
from orchestra.model.reducers import Reducer

ADDRESSER = Addresser()
VALUES: list[Any] = [None, 1, -1, 1.5, "x", "ä" * 9000, b"y", [], [1, [2]], (1, 2), {"a": [1]}, {1, 2}, True]


@pytest.mark.parametrize("reducer", ["replace", "append"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_it_is_the_same(reducer: Reducer, value: Any) -> None:
    frozen = freeze(value, ADDRESSER)
    assert pass_on(reducer, frozen, thaw, ADDRESSER) == contribution(reducer, value, ADDRESSER)


def test_others_are_opened() -> None:
    assert pass_on("sum", freeze(3, ADDRESSER), thaw, ADDRESSER) == contribution("sum", 3, ADDRESSER)
    merged = pass_on("merge", freeze({"a": 1}, ADDRESSER), thaw, ADDRESSER)
    assert merged == contribution("merge", {"a": 1}, ADDRESSER)
