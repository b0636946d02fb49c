"""Bytes that no program of ours wrote, as canonical data of any kind: every one must be refused."""

from collections.abc import Iterator
from typing import Final

from orchestra.codec.cbor import LIVE_TAGS, TAG_FROZENSET, TAG_SET, TAG_TIME, TAG_TUPLE
from tests.fault.support.raw import (
    ARRAY,
    BREAK,
    BYTES,
    MAP,
    NULL,
    TAG,
    TEXT,
    array,
    data,
    head,
    mapping,
    nested,
    open_head,
    plain,
    tag,
    text,
)

ONE: Final = plain(1)
Named = Iterator[tuple[str, bytes]]


def broken() -> Named:
    """What no decoder may accept, wherever it stands."""
    yield "nothing", b""
    yield "a break", BREAK
    for number in range(28, 31):
        for major in range(8):
            yield f"reserved head {major}/{number}", bytes([major << 5 | number])
    for depth in (97, 401, 10_000, 200_000):
        yield f"{depth} lists", nested(depth, head(ARRAY, 1))
        yield f"{depth} maps", nested(depth, head(MAP, 1) + text("a"))
        yield f"{depth} tags", nested(depth, head(TAG, TAG_TUPLE) + head(ARRAY, 1))
        yield f"{depth} open lists", nested(depth, open_head(ARRAY))
        yield f"{depth} bare tags", nested(depth, head(TAG, 55799))
    for major, name in ((BYTES, "bytes"), (TEXT, "text"), (ARRAY, "list"), (MAP, "map")):
        for bits in (24, 31, 32, 40, 62, 63):
            yield f"{name} said to be of 2**{bits}", head(major, 1 << bits)
        yield f"{name} said to be of 2**64-1", head(major, (1 << 64) - 1) + b"abc"
        yield f"{name} of no stated length", open_head(major) + BREAK
        yield f"{name} of no length and no end", open_head(major)
        yield f"{name} one short", head(major, 2) + (ONE if major > TEXT else b"x")
    yield "text in pieces", open_head(TEXT) + text("ab") + text("cd") + BREAK
    yield "bytes in pieces", open_head(BYTES) + data(b"ab") + BREAK
    yield "something after the end", ONE + ONE
    yield "a byte after the end", array() + b"\0"
    yield "text that is not UTF-8", text(b"\xff\xfe")
    yield "a lone surrogate", text(b"\xed\xa0\x80")
    yield "overlong UTF-8", text(b"\xc0\xaf")
    yield "undefined", b"\xf7"
    for number in (0, 19, 32, 255):
        yield f"simple value {number}", (bytes([0xE0 | number]) if number < 24 else bytes([0xF8, number]))


def keys() -> Named:
    """Maps whose keys are not text, or are there twice."""
    odd = {
        "an integer": ONE,
        "a negative integer": plain(-5),
        "bytes": data(b"key"),
        "null": NULL,
        "a float": plain(1.5),
        "nan": plain(float("nan")),
        "a boolean": plain(True),
        "a list": array(ONE),
        "a map": mapping(),
        "a tuple": tag(TAG_TUPLE, array(ONE)),
        "a large integer": tag(2, data(bytes([1]) + bytes(8))),
        "a larger integer": tag(2, data(bytes([1]) * 128)),
        "a set": tag(TAG_FROZENSET, array(data(ONE))),
        "a time": tag(TAG_TIME, array(ONE, plain(0))),
        "a regular expression": tag(35, text("a+")),
    }
    for name, key in odd.items():
        yield f"{name} as a key", mapping((key, ONE))
        yield f"{name} as a key among others", mapping((text("a"), ONE), (key, ONE))
    yield "a key twice", mapping((text("a"), ONE), (text("a"), ONE))
    yield "a key twice, differing", mapping((text("a"), ONE), (text("b"), ONE), (text("a"), plain(2)))
    collide = [(n * ((1 << 61) - 1)).to_bytes(10, "big") for n in range(9, 20_000)]
    yield "colliding keys", mapping(*((tag(2, data(each)), ONE) for each in collide))
    yield "few colliding keys", mapping(*((plain(n * ((1 << 61) - 1)), ONE) for n in range(8)))


def tags() -> Named:
    """Tags that are never written, among them all that a library would bring to life."""
    contents = {
        0: text("2026-11-15T14:30:22Z"),
        1: plain(1_794_744_000),
        4: array(plain(-2), ONE),
        5: array(plain(-2), ONE),
        25: plain(0),
        28: array(),
        29: plain(0),
        30: array(ONE, plain(3)),
        35: text("(a+)+$"),
        36: text("Content-Type: text/plain\n\nhello"),
        37: data(bytes(16)),
        52: data(bytes([127, 0, 0, 1])),
        54: data(bytes(16)),
        100: plain(20_000),
        256: array(text("abcdef"), tag(25, plain(0))),
        258: array(ONE),
        260: data(bytes([127, 0, 0, 1])),
        261: mapping((data(bytes([10, 0, 0, 0])), plain(8))),
        1004: text("2026-11-15"),
        43000: array(ONE, ONE),
        55799: ONE,
    }
    for number in LIVE_TAGS:
        yield f"tag {number}", tag(number, contents.get(number, NULL))
        yield f"tag {number} inside", array(ONE, tag(number, contents.get(number, NULL)))
        yield f"tag {number} of a list", tag(number, array(ONE))
    for number in (6, 21, 22, 24, 32, 33, 63, 257, 28_529, 28_540, 1 << 20, (1 << 64) - 1):
        yield f"unknown tag {number}", tag(number, data(b"x"))
    yield "a cycle", tag(28, array(tag(29, plain(0))))
    yield "a cycle of maps", tag(28, mapping((text("a"), tag(29, plain(0)))))
    yield "shared laughter", array(tag(28, array(ONE)), *(tag(29, plain(0)) for _ in range(50)))
    yield "string references", tag(256, array(text("a" * 99), *(tag(25, plain(0)) for _ in range(99))))


def numbers() -> Named:
    """Large integers that are none, or larger than any that is written."""
    for sign in (2, 3):
        yield f"tag {sign} of nothing", tag(sign, data(b""))
        yield f"tag {sign} of a small number", tag(sign, data(b"\x05"))
        yield f"tag {sign} of 8 bytes", tag(sign, data(b"\xff" * 8))
        yield f"tag {sign} of 129 bytes", tag(sign, data(b"\x01" * 129))
        yield f"tag {sign} of a megabyte", tag(sign, data(b"\x01" * 1_000_000))
        yield f"tag {sign} of text", tag(sign, text("123456789012"))
        yield f"tag {sign} of a list", tag(sign, array(ONE))
        yield f"tag {sign} of itself", tag(sign, tag(sign, data(b"\x01" * 9)))


def values() -> Named:
    """What is wrong in a value alone: our own tags around the wrong things."""
    for number, name in (
        (TAG_TUPLE, "tuple"),
        (TAG_SET, "set"),
        (TAG_FROZENSET, "frozenset"),
        (TAG_TIME, "time"),
    ):
        for what, content in (("null", NULL), ("text", text("ab")), ("a map", mapping()), ("a number", ONE)):
            yield f"a {name} of {what}", tag(number, content)
    for what, member in (
        ("a list", array()),
        ("a map", mapping()),
        ("a set", tag(TAG_SET, array())),
        ("a tuple of a list", tag(TAG_TUPLE, array(array()))),
        ("nothing", b""),
        ("two things", ONE + ONE),
        ("a regular expression", tag(35, text("a"))),
    ):
        yield f"a set with {what}", tag(TAG_SET, array(data(member)))
    yield "a set of items that are not encoded", tag(TAG_SET, array(ONE, ONE))
    for depth in (100, 300, 5000):
        inner = ONE
        for _ in range(depth):
            inner = tag(TAG_FROZENSET, array(data(inner)))
        yield f"{depth} sets", inner
    yield "a time of one number", tag(TAG_TIME, array(ONE))
    yield "a time of three", tag(TAG_TIME, array(ONE, ONE, ONE))
    yield "a time of floats", tag(TAG_TIME, array(plain(1.5), plain(0)))
    yield "a time of booleans", tag(TAG_TIME, array(plain(True), plain(False)))
    yield "a time of no zone on earth", tag(TAG_TIME, array(ONE, plain(86_400)))
    yield "a time after all calendars", tag(TAG_TIME, array(plain(1 << 62), plain(0)))
    yield "a time before all calendars", tag(TAG_TIME, array(plain(-(1 << 62)), plain(0)))
    yield "a time of very large numbers", tag(TAG_TIME, array(tag(2, data(b"\x01" * 100)), plain(0)))
    for number in (28_530, 28_531, 28_532, 28_533, 28_534, 28_539):
        yield f"tag {number} of a state in a value", tag(number, array())


def anywhere() -> Named:
    """All that is wrong in whatever kind of object it stands."""
    yield from broken()
    yield from keys()
    yield from tags()
    yield from numbers()
