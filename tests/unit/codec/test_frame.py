"""Frames: what is written is what the rule says, and what is opened is proved."""

import pytest
from blake3 import blake3

from orchestra.codec.address import KINDS, Addresser
from orchestra.codec.frame import BOUNDS, COMPRESS_FROM_BYTES, FORMAT, Framer, read_frame, references
from orchestra.errors import Damaged
from orchestra.ids import Digest
from orchestra.limits import NODE_BYTES

FRAMER = Framer(Addresser())
LONG = b"words and more words, " * 100


@pytest.mark.parametrize("kind", KINDS)
def test_addresses_follow_the_rule(kind: str) -> None:
    assert FRAMER.address(kind, b"abc") == blake3(f"orchestra/{kind}/1\0abc".encode()).digest()
    key = bytes(range(32))
    keyed = blake3(f"orchestra/{kind}/1\0abc".encode(), key=key).digest()
    assert Framer(Addresser(key)).address(kind, b"abc") == keyed


@pytest.mark.parametrize("code", range(len(KINDS)))
@pytest.mark.parametrize("content", [b"", b"\x01", LONG], ids=["empty", "short", "long"])
def test_a_frame_comes_back(code: int, content: bytes) -> None:
    kind = KINDS[code]
    frame = FRAMER.write(kind, content)
    assert frame[1:3] == bytes((code, FORMAT))
    framed = FRAMER.open(FRAMER.address(kind, content), frame, kinds=(kind,))
    assert (framed.kind, framed.version, framed.canonical) == (kind, FORMAT, content)


def test_only_what_is_worth_it_is_compressed() -> None:
    assert FRAMER.write("leaf", LONG)[0] == 1
    assert FRAMER.write("leaf", LONG, compress=False)[0] == 0
    assert FRAMER.write("leaf", LONG[: COMPRESS_FROM_BYTES - 1])[0] == 0
    assert Framer(Addresser(), level=0).write("leaf", LONG)[0] == 0
    noise = bytes(blake3(b"noise").digest(length=500))
    assert FRAMER.write("leaf", noise) == bytes((0, KINDS.index("leaf"), FORMAT)) + noise


def test_levels_do_not_change_addresses() -> None:
    digest = FRAMER.address("leaf", LONG)
    for level in (0, 1, 19):
        assert FRAMER.open(digest, Framer(Addresser(), level=level).write("leaf", LONG)).canonical == LONG


def test_a_store_with_another_key_cannot_be_read() -> None:
    keyed = Framer(Addresser(bytes(32)))
    digest, frame = keyed.address("leaf", LONG), keyed.write("leaf", LONG)
    assert keyed.open(digest, frame).canonical == LONG
    with pytest.raises(Damaged, match="does not match its digest"):
        FRAMER.open(digest, frame)


def test_what_is_wrong_is_named() -> None:
    frame = FRAMER.write("leaf", LONG)
    digest = FRAMER.address("leaf", LONG)
    for bent, reason in (
        (b"", "no valid frame"),
        (b"\x00\x04", "no valid frame"),
        (b"\x02" + frame[1:], "no valid frame"),
        (frame[:1] + b"\x63" + frame[2:], "no valid frame"),
        (frame[:2] + b"\x09" + frame[3:], "format 9; this program reads 1 to"),
        (frame[:-1], "cut off"),
        (frame + b"x", "too long"),
        (b"\x01\x04\x01garbage", "does not unpack"),
    ):
        with pytest.raises(Damaged, match=reason):
            FRAMER.open(digest, bent, what="the leaf")
    with pytest.raises(Damaged, match="of kind leaf, not branch or root"):
        FRAMER.open(digest, frame, kinds=("branch", "root"))
    with pytest.raises(Damaged, match="object 0000000000000000 is damaged"):
        FRAMER.open(Digest(bytes(32)), frame)


def test_bounds_hold_for_what_is_not_compressed() -> None:
    large = bytes((0, KINDS.index("header"), FORMAT)) + bytes(BOUNDS["header"] + 1)
    with pytest.raises(Damaged, match="larger than"):
        read_frame(large, what="a header")
    fits = bytes((0, KINDS.index("leaf"), FORMAT)) + bytes(NODE_BYTES)
    assert len(read_frame(fits, what="a leaf").canonical) == NODE_BYTES


def test_a_framer_may_be_used_again_and_again() -> None:
    frames = [FRAMER.write("leaf", LONG + bytes([n])) for n in range(50)]
    for n, frame in enumerate(frames):
        assert read_frame(frame, what="x").canonical == LONG + bytes([n])


@pytest.mark.parametrize(
    "body", [None, [], [[]], [[], 1, 2], [1, 2], [["x"], 1], [[b"short"], 1]], ids=range(7)
)
def test_references_are_digests(body: object) -> None:
    with pytest.raises(ValueError, match="reference"):
        references(body)
    assert references([[bytes(32)], None]) == [bytes(32)]
