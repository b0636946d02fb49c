"""Frames: whole, torn, or damaged, and never one taken for the other."""

import pytest

from orchestra.stores.files.frames import BadFrame, pack, single, walk

FRAMES = [pack({"n": 0}, b"first"), pack({"n": 1}), pack({"n": 2, "text": "zwölf"}, bytes(range(256)))]
LOG = b"".join(FRAMES)


def read(data: bytes) -> tuple[list[tuple[object, bytes]], BadFrame | None]:
    """What can be read, and why it ends."""
    found: list[tuple[object, bytes]] = []
    try:
        for frame in walk(data):
            found.append((frame.columns["n"], frame.body(data)))
    except BadFrame as error:
        return found, error
    return found, None


def test_round_trip() -> None:
    assert read(LOG) == ([(0, b"first"), (1, b""), (2, bytes(range(256)))], None)
    assert read(b"") == ([], None)
    assert single(FRAMES[0]) == ({"n": 0}, b"first")


def test_every_shorter_file_is_torn() -> None:
    edges = {0, len(FRAMES[0]), len(FRAMES[0] + FRAMES[1])}
    for size in range(len(LOG)):
        _, error = read(LOG[:size])
        if size in edges:
            assert error is None
        else:
            assert error is not None
            assert error.torn
            assert error.start in edges


def test_every_tail_that_was_never_filled_is_torn() -> None:
    """The file has its new length, and from some point on nothing but zeros."""
    for size in range(len(FRAMES[0]) + len(FRAMES[1]), len(LOG)):
        _, error = read(LOG[:size] + b"\0" * (len(LOG) - size))
        assert error is not None
        assert error.start == len(FRAMES[0] + FRAMES[1])
        assert error.torn


def test_every_flipped_bit_is_damage() -> None:
    for bit in range(len(LOG) * 8):
        changed = bytearray(LOG)
        changed[bit // 8] ^= 1 << bit % 8
        _, error = read(bytes(changed))
        assert error is not None
        assert not error.torn


def test_one_record_and_nothing_else() -> None:
    with pytest.raises(BadFrame):
        single(LOG)
    with pytest.raises(BadFrame):
        single(b"")


@pytest.mark.parametrize("columns", [[1], "text", None])
def test_columns_are_an_object(columns: object) -> None:
    with pytest.raises(BadFrame, match="cannot be read"):
        list(walk(pack(columns)))  # type: ignore[arg-type]
