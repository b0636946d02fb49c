"""What is written by hand is what cbor2 writes."""

from hypothesis import given
from hypothesis import strategies as st

from orchestra.codec import cbor

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
