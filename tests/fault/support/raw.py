"""CBOR by hand: whatever bytes a test wants, right or wrong, without asking an encoder."""

import struct
from typing import Any

UINT, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, OTHER = range(8)
NULL, TRUE, FALSE, BREAK = b"\xf6", b"\xf5", b"\xf4", b"\xff"


def head(major: int, number: int) -> bytes:
    """The first bytes of an item, as short as possible."""
    if number < 24:
        return bytes([major << 5 | number])
    for extra, (code, limit) in enumerate((("B", 8), ("H", 16), ("I", 32), ("Q", 64))):
        if number < 1 << limit:
            return bytes([major << 5 | 24 + extra]) + struct.pack(f">{code}", number)
    raise ValueError(number)


def open_head(major: int) -> bytes:
    """The first byte of an item of no stated length."""
    return bytes([major << 5 | 31])


def text(content: str | bytes) -> bytes:
    """Text, from bytes also such as is none."""
    data = content if isinstance(content, bytes) else content.encode()
    return head(TEXT, len(data)) + data


def data(content: bytes) -> bytes:
    """A byte string."""
    return head(BYTES, len(content)) + content


def array(*items: bytes) -> bytes:
    """A list of encoded items."""
    return head(ARRAY, len(items)) + b"".join(items)


def mapping(*pairs: tuple[bytes, bytes]) -> bytes:
    """A map of encoded pairs, in the order given."""
    return head(MAP, len(pairs)) + b"".join(key + value for key, value in pairs)


def tag(number: int, content: bytes) -> bytes:
    """A tagged item."""
    return head(TAG, number) + content


def plain(thing: Any) -> bytes:
    """Ordinary data, for the parts that are not the point."""
    if thing is None:
        return NULL
    if isinstance(thing, bool):
        return TRUE if thing else FALSE
    if isinstance(thing, int):
        return head(UINT, thing) if thing >= 0 else head(NEGATIVE, -1 - thing)
    if isinstance(thing, float):
        return b"\xfb" + struct.pack(">d", thing)
    if isinstance(thing, str):
        return text(thing)
    if isinstance(thing, bytes):
        return data(thing)
    if isinstance(thing, list | tuple):
        return array(*map(plain, thing))
    assert isinstance(thing, dict)
    return mapping(*((plain(key), plain(value)) for key, value in thing.items()))


def nested(depth: int, opening: bytes, inside: bytes = NULL) -> bytes:
    """Something inside itself, many times; `opening` begins each level."""
    return opening * depth + inside
