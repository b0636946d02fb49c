"""The door to cbor2: canonical bytes out, plain data in, nothing else.

Writing is canonical: definite lengths, shortest integers, floats of 8 bytes, map keys by length, then by
bytes. Callers order the keys: sorting here would cost every snapshot twice the time. Reading refuses
what this program does not write: unknown tags, keys that are not text or bytes, duplicate keys, indefinite
lengths, deep nesting and trailing bytes. Tags that cbor2 would turn into live objects (regular expressions,
network addresses, shared references …) are refused before it can.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any, Final

import cbor2

from orchestra.errors import Damaged
from orchestra.ids import DIGEST_BYTES, Digest
from orchestra.limits import CODEC_DEPTH, NODE_ITEMS, VALUE_INTEGER_BITS

TAG_VEC: Final = 28530
TAG_VEC_REF: Final = 28531
TAG_TABLE: Final = 28532
TAG_TABLE_REF: Final = 28533
TAG_VALUE_REF: Final = 28534
TAG_TUPLE: Final = 28535
TAG_SET: Final = 28536
TAG_FROZENSET: Final = 28537
TAG_TIME: Final = 28538
TAG_DIGEST: Final = 28539  # a digest inside a state; bytes without a tag are there a frozen value

BYTES: Final = 0x40
TEXT: Final = 0x60
ARRAY: Final = 0x80
MAP: Final = 0xA0
NOTHING: Final = b"\xf6"
DIGEST: Final = b"\x58\x20"  # what stands before the 32 bytes of a digest
_HUGE: Final = float("inf")
_DOUBLE: Final = struct.Struct(">d").pack
_HEADS: Final = [bytes((first,)) for first in range(256)]
_KIND_TAG: Final = 6
_KINDS_LONG: Final = (2, 3)  # byte strings and texts
_TAG_BIGNUM: Final = 2
_TAG_NEGATIVE_BIGNUM: Final = 3

LIVE_TAGS: Final = (
    0, 1, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799,
)  # fmt: skip
"""Tags for which cbor2 has a decoder of its own; a test looks for any it may gain."""

Tag = cbor2.CBORTag
Maker = Callable[[Any, bool], Any]
"""Makes something of a tag's content; the flag says that it stands where a map key may."""


class Refused(Exception):
    """Bytes that this program would not have written."""


def check_digest(plain: Any) -> Digest:
    """The digest that was read; raises `Refused` for anything else."""
    if not isinstance(plain, bytes) or len(plain) != DIGEST_BYTES:
        raise Refused("a digest is not 32 bytes")
    return Digest(plain)


_REFUSALS: Final = (
    Refused, cbor2.CBORDecodeError, ValueError, TypeError, RecursionError, MemoryError, OverflowError,
)  # fmt: skip


def encode(plain: object) -> bytes:
    """Canonical bytes of plain data whose maps have their keys in order. The caller has bounded its depth."""
    return cbor2.dumps(plain)


@lru_cache(maxsize=4096)
def name(text: str | None) -> bytes:
    """Canonical bytes of a short text that is written again and again."""
    return cbor2.dumps(text)


def text(plain: str) -> bytes:
    """Canonical bytes of a text, as `encode` makes them and in a fifth of the time."""
    encoded = plain.encode()
    size = len(encoded)
    return (_TEXT_HEADS[size] if size < 256 else head(TEXT, size)) + encoded


def data(plain: bytes) -> bytes:
    """Canonical bytes of a byte string."""
    return head(BYTES, len(plain)) + plain


def array(items: list[bytes]) -> bytes:
    """Canonical bytes of a list of things that are canonical bytes already."""
    return head(ARRAY, len(items)) + b"".join(items)


def tag(number: int) -> bytes:
    """What stands before the content of a tag."""
    return b"\xd9" + number.to_bytes(2, "big")


def integer(plain: int) -> bytes:
    """Canonical bytes of a whole number."""
    if 0xFFFFFFFF < plain <= 0xFFFFFFFFFFFFFFFF:  # a time
        return b"\x1b" + plain.to_bytes(8, "big")
    if 0 <= plain < 24:
        return _HEADS[plain]
    if 0 <= plain <= 0xFFFFFFFF:
        return head(0, plain)
    return cbor2.dumps(plain)


def number(plain: int | float) -> bytes:
    """Canonical bytes of a number."""
    if type(plain) is float and -_HUGE < plain < _HUGE:
        return b"\xfb" + _DOUBLE(plain)
    if type(plain) is int:
        return integer(plain)
    return cbor2.dumps(plain)  # also for what is no number and what has no end


def head(kind: int, count: int) -> bytes:
    """How an array (`ARRAY`) or a map (`MAP`) of so many items begins."""
    if count < 24:
        return _HEADS[kind + count]
    if count < 256:
        return bytes((kind + 24, count))
    if count < 65536:
        return _HEADS[kind + 25] + count.to_bytes(2, "big")
    return _HEADS[kind + 26] + count.to_bytes(4, "big")


_TEXT_HEADS: Final = [head(TEXT, size) for size in range(256)]


def key_order(key: str) -> tuple[int, bytes]:
    """What map keys are sorted by: the length of their UTF-8 bytes, then the bytes."""
    encoded = key.encode()
    return len(encoded), encoded


def items_in(data: bytes, limit: int) -> int:
    """How many things canonical bytes are made of, counted without making any, at most to past `limit`.

    Tags are not counted, and a time is one thing. Bytes that cannot be read end the count.
    """
    at, count, size = 0, 0, len(data)
    while at < size and count <= limit:
        kind, low = data[at] >> 5, data[at] & 31
        at += 1
        if low >= 24:
            if low > 27:
                break
            width = 1 << (low - 24)
            low = int.from_bytes(data[at : at + width], "big")
            at += width
        if kind == _KIND_TAG:
            count -= 2 if low == TAG_TIME else 0
        else:
            count += 1
            at += low if kind in _KINDS_LONG else 0
    return count


def make_decoder(tags: dict[int, Maker], items: int = NODE_ITEMS) -> Callable[..., Any]:
    """A function that reads canonical bytes of at most `items` things, with makers for our tags.

    It takes the bytes and how to name them, and raises `Damaged`.
    """
    decoders: dict[int, Maker] = dict.fromkeys(LIVE_TAGS, _refuse)
    decoders[_TAG_BIGNUM] = _bignum
    decoders[_TAG_NEGATIVE_BIGNUM] = lambda value, immutable: -1 - _bignum(value, immutable)
    decoders.update(tags)
    options: dict[str, Any] = {
        "semantic_decoders": decoders,
        "tag_hook": _refuse,
        "max_depth": CODEC_DEPTH,
        "allow_indefinite": False,
        "allow_duplicate_keys": False,
        "strict_hashable_types": True,
    }

    def decode(data: bytes, what: str = "it") -> Any:
        try:
            if len(data) > items and items_in(data, items) > items:
                raise Refused(f"it is made of more than {items:,} things")
            decoder = cbor2.CBORDecoder(BytesIO(data), **options)
            plain = decoder.decode()
            if decoder.fp.tell() != len(data) or _has_more(decoder):
                raise Refused("bytes follow after the end")
        except _REFUSALS as error:
            raise damage_error(what, error) from None
        return plain

    return decode


def damage_error(what: str, refused: BaseException) -> Damaged:
    """The error a reader gets for refused bytes."""
    while refused.__cause__ is not None:
        refused = refused.__cause__
    if isinstance(refused, Damaged):  # in something inside that was read by itself
        return Damaged(what=what, reason=refused.data["reason"])
    return Damaged(what=what, reason=f"it is not canonical data ({str(refused) or type(refused).__name__})")


def _has_more(decoder: cbor2.CBORDecoder) -> bool:
    try:
        decoder.read(1)
    except cbor2.CBORDecodeEOF:
        return False
    return True


def _refuse(_tag: object, _immutable: bool) -> Any:
    raise Refused("it uses a tag that is never written")


def _bignum(value: Any, immutable: bool) -> int:
    if immutable or not isinstance(value, bytes) or not 8 < len(value) <= VALUE_INTEGER_BITS // 8:
        raise Refused("an integer is out of bounds")
    return int.from_bytes(value, "big")
