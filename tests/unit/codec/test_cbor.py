"""What is written by hand is what cbor2 writes."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.codec import cbor
from orchestra.errors import Damaged
from orchestra.limits import NODE_ITEMS

EDGES = [0, 23, 24, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**64 - 1, 2**64, -1]


@given(st.integers(-(1 << 70), 1 << 70) | st.sampled_from(EDGES))
def test_whole_numbers_are_written_as_everywhere(number: int) -> None:
    assert cbor.integer(number) == cbor.encode(number)


@given(st.floats() | st.integers())
def test_numbers_are_written_as_everywhere(number: float) -> None:
    assert cbor.number(number) == cbor.encode(number)


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.integers(0, 70_000).map("x".__mul__))
def test_texts_are_written_as_everywhere(text: str) -> None:
    assert cbor.text(text) == cbor.encode(text)


def _counted(thing: Any) -> int:
    if isinstance(thing, dict):
        return 1 + sum(1 + _counted(each) for each in thing.values())
    if isinstance(thing, list):
        return 1 + sum(map(_counted, thing))
    return 1


@pytest.mark.parametrize(
    "thing",
    [
        None,
        "x" * 70_000,
        b"x" * 300,
        [{}] * 1000,
        {"a": [1, 2.5, {"b": "c" * 40}], "bb": -1, "ccc": 1 << 40},
        [[[[]]]],
        list(range(-300, 300)),
    ],
    ids=range(7),
)
def test_things_are_counted_without_making_them(thing: Any) -> None:
    assert cbor.items_in(cbor.encode(thing), 10_000) == _counted(thing)


def test_counting_ends_past_the_limit_and_where_bytes_make_no_sense() -> None:
    assert cbor.items_in(b"\xa0" * 1000, 10) == 11
    assert cbor.items_in(b"\x9f" + b"\x01" * 50, 10) == 0
    assert cbor.items_in(b"\x5b" + b"\xff" * 8, 10) == 1
    assert cbor.items_in(cbor.encode(cbor.Tag(cbor.TAG_TIME, [1, 2])), 10) == 1


@pytest.mark.parametrize(
    "item", [b"\xa0", b"\x80", b"\xf6", b"\x61a"], ids=["maps", "lists", "nothing", "texts"]
)
def test_too_many_things_are_refused_before_they_are_made(item: bytes) -> None:
    count = NODE_ITEMS + 1
    data = cbor.head(cbor.ARRAY, count) + item * count
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match="800,000 things"):
            cbor.make_decoder({})(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
