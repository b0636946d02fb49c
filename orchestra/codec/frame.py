"""Frames: how addressed bytes are stored. Three bytes, then the canonical bytes, compressed or not.

    byte 0    method   0 as they are, 1 zstd
    byte 1    kind     position in `orchestra.codec.address.KINDS`
    byte 2    version  of the format
    byte 3 …  content

Canonical bytes of most kinds are `[references, body]`: the digests that the body refers to come first, so
that garbage collection and verification follow them without reading the body.
"""

import sys
from collections.abc import Sequence
from typing import Any, Final

import attrs

from orchestra.codec import cbor
from orchestra.codec.address import KINDS, Addresser, Kind
from orchestra.errors import ContentTooLarge, Damaged
from orchestra.ids import Digest
from orchestra.limits import HEADER_BYTES, NODE_BYTES, NODE_ITEMS, VALUE_BYTES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FORMAT: Final = 1
COMPRESS_FROM_BYTES: Final = 200
QUICK_BELOW_BYTES: Final = 2048
_HEAD: Final = 3
_RAW, _ZSTD = 0, 1
_OPAQUE: Final = ("value", "blob")  # values are bounded when they are frozen; blobs are bytes as they are
_CODES: Final = {kind: code for code, kind in enumerate(KINDS)}
_WHOLE: Final = zstd.ZstdCompressor.FLUSH_FRAME
BOUNDS: Final[dict[Kind, int]] = {
    "header": HEADER_BYTES,
    "value": VALUE_BYTES,
    "blob": VALUE_BYTES,
    "definition": NODE_BYTES,
}
"""How many bytes of each kind a reader accepts; nodes and patches when not listed."""


@attrs.frozen
class Framed:
    """A frame that was opened: its kind, version and canonical bytes, verified against its digest."""

    kind: Kind
    version: int
    canonical: bytes


class Framer:
    """Writes and opens frames for one store."""

    __slots__ = ("_addresser", "_compressor", "_from", "_level", "_quick")

    def __init__(
        self, addresser: Addresser, *, level: int = 3, compress_from: int = COMPRESS_FROM_BYTES
    ) -> None:
        """Content of fewer bytes than `compress_from` is left as it is, perhaps for `pack` to compress."""
        self._addresser = addresser
        self._level, self._from = level, compress_from
        # Kept, because making one costs more than using it; not made for those who only read.
        self._compressor: zstd.ZstdCompressor | None = None
        self._quick: zstd.ZstdCompressor | None = None

    def address(self, kind: Kind, canonical: bytes, version: int = FORMAT) -> Digest:
        """The digest of canonical bytes."""
        return self._addresser.address(kind, version, canonical)

    def write(self, kind: Kind, canonical: bytes, *, version: int = FORMAT, compress: bool = True) -> bytes:
        """The frame of canonical bytes; raises `ContentTooLarge` for more than a reader would accept."""
        size, bound = len(canonical), BOUNDS.get(kind, NODE_BYTES)
        if size > bound:
            raise ContentTooLarge(kind=kind, size=size, unit="bytes", limit=bound)
        if size > NODE_ITEMS and kind not in _OPAQUE and cbor.items_in(canonical, NODE_ITEMS) > NODE_ITEMS:
            raise ContentTooLarge(kind=kind, size=f"more than {NODE_ITEMS}", unit="things", limit=NODE_ITEMS)
        frame = bytes((_RAW, _CODES[kind], version)) + canonical
        return self.pack(frame) if compress else frame

    def pack(self, frame: bytes) -> bytes:
        """A frame with its content compressed, where that makes it smaller."""
        size = len(frame) - _HEAD
        if frame[0] != _RAW or self._level <= 0 or size < self._from:
            return frame
        content = self._compressor_for(size).compress(memoryview(frame)[_HEAD:], _WHOLE)
        return bytes((_ZSTD, frame[1], frame[2])) + content if len(content) < size else frame

    def _compressor_for(self, size: int) -> zstd.ZstdCompressor:
        """Of few bytes every level makes the same; the lowest takes three quarters of the time."""
        if size < QUICK_BELOW_BYTES:
            self._quick = self._quick or zstd.ZstdCompressor(level=min(self._level, 1))
            return self._quick
        self._compressor = self._compressor or zstd.ZstdCompressor(level=self._level)
        return self._compressor

    def open(self, digest: Digest, frame: bytes, *, what: str = "", kinds: tuple[Kind, ...] = ()) -> Framed:
        """Open a frame and prove it; raises `Damaged`."""
        name = what or f"object {digest.hex()[:16]}"
        framed = read_frame(frame, what=name)
        if kinds and framed.kind not in kinds:
            raise Damaged(what=name, reason=f"it is of kind {framed.kind}, not {' or '.join(kinds)}")
        if self._addresser.address(framed.kind, framed.version, framed.canonical) != digest:
            raise Damaged(what=name, reason="its content does not match its digest")
        return framed


def read_frame(frame: bytes, *, what: str) -> Framed:
    """Open a frame without proving it; raises `Damaged`."""
    if len(frame) < 3 or frame[1] >= len(KINDS) or frame[0] not in (_RAW, _ZSTD):
        raise Damaged(what=what, reason="it has no valid frame")
    kind, version = KINDS[frame[1]], frame[2]
    if not 1 <= version <= FORMAT:
        raise Damaged(what=what, reason=f"it is of format {version}; this program reads 1 to {FORMAT}")
    bound = BOUNDS.get(kind, NODE_BYTES)
    content = frame[3:] if frame[0] == _RAW else _unpack(frame, bound, what)
    if len(content) > bound:
        raise Damaged(what=what, reason=f"it is larger than the {bound} bytes a {kind} may have")
    return Framed(kind, version, content)


def _unpack(frame: bytes, bound: int, what: str) -> bytes:
    try:
        packed = memoryview(frame)[3:]
        declared: int | None = zstd.get_frame_info(packed).decompressed_size
        if declared is None or declared > bound:
            raise Damaged(what=what, reason=f"it does not say that it unpacks to at most {bound} bytes")
        decompressor = zstd.ZstdDecompressor()  # refuses windows of more than 128 MB
        content = decompressor.decompress(packed, max_length=declared + 1)
    except (zstd.ZstdError, ValueError, MemoryError) as error:
        raise Damaged(what=what, reason=f"it does not unpack ({error})") from None
    if not decompressor.eof or decompressor.unused_data:
        raise Damaged(what=what, reason="its compressed content is cut off or too long")
    return content


def pair_references(refs: Sequence[Digest], body: bytes, *, repeated: bool = False) -> bytes:
    """Canonical bytes of `[references, body]`; each reference once, unless `repeated` says as they come."""
    if not refs:
        return b"\x82\x80" + body
    listed = refs if repeated else dict.fromkeys(refs)
    return b"\x82" + cbor.array([cbor.DIGEST + digest for digest in listed]) + body


def references(body: Any) -> list[Digest]:
    """The reference list of a decoded `[references, body]` pair; raises `ValueError`."""
    if not isinstance(body, list) or len(body) != 2 or not isinstance(body[0], list):
        raise ValueError("it is not a pair of references and body")
    if not all(isinstance(digest, bytes) and len(digest) == 32 for digest in body[0]):
        raise ValueError("a reference is not a digest")
    return body[0]
