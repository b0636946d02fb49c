"""Frames: the records of a log on disk. A frame is there whole or not at all.

    frame  = prefix columns body mark
    prefix = five little-endian u32: length of columns, length of body, CRC-32 of columns, CRC-32 of body,
             CRC-32 of the sixteen bytes before
    columns = a JSON object in ASCII
    mark   = one byte, 0xFF

The prefix has a check of its own, so that a flipped bit in a length is not taken for a file that ends early.
The mark is the last byte written and is never zero: where the last frame ends in a zero instead, the file was
lengthened but not yet filled when the power failed, and the frame was never acknowledged. Whatever else is
wrong with a frame that is there in full length is damage.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress

import attrs

MARK = b"\xff"

_LENGTHS = struct.Struct("<IIII")
_CHECK = struct.Struct("<I")
PREFIX_BYTES = _LENGTHS.size + _CHECK.size


@attrs.define
class BadFrame(Exception):
    """There is no whole frame at `start`. `torn`: it is the end of a write that was never acknowledged."""

    start: int
    reason: str
    torn: bool = False


@attrs.frozen
class Frame:
    """A frame found in a file: its columns, and where its body is."""

    columns: Mapping[str, object]
    start: int
    body_start: int
    body_size: int
    body_crc: int

    @property
    def end(self) -> int:
        return self.body_start + self.body_size + len(MARK)

    def body(self, data: bytes) -> bytes:
        """The body, checked."""
        found = data[self.body_start : self.body_start + self.body_size]
        if zlib.crc32(found) != self.body_crc:
            raise BadFrame(self.start, "its content fails its check")
        return found


def pack(columns: Mapping[str, object], body: bytes = b"") -> bytes:
    """One frame."""
    head = json.dumps(columns, separators=(",", ":")).encode("ascii")
    lengths = _LENGTHS.pack(len(head), len(body), zlib.crc32(head), zlib.crc32(body))
    return b"".join((lengths, _CHECK.pack(zlib.crc32(lengths)), head, body, MARK))


def walk(data: bytes) -> Iterator[Frame]:
    """The frames of a file, in order. Raises `BadFrame` where they end before the file does.

    Bodies are checked by whoever reads them.
    """
    start = 0
    while start < len(data):
        frame = _frame(data, start)
        yield frame
        start = frame.end


def single(data: bytes) -> tuple[Mapping[str, object], bytes]:
    """The columns and body of a file that is one frame and nothing else."""
    frame = _frame(data, 0)
    if frame.end != len(data):
        raise BadFrame(frame.end, "there is more in it than one record")
    return frame.columns, frame.body(data)


def _frame(data: bytes, start: int) -> Frame:
    prefix = data[start : start + PREFIX_BYTES]
    if len(prefix) < PREFIX_BYTES:
        raise BadFrame(start, "the file ends inside a record", torn=True)
    if zlib.crc32(prefix[: _LENGTHS.size]) != _CHECK.unpack_from(prefix, _LENGTHS.size)[0]:
        # Every record has columns, so nothing but zeros behind the prefix was never filled.
        unfilled = not any(data[start + PREFIX_BYTES :])
        raise BadFrame(start, "the beginning of a record fails its check", torn=unfilled)
    head_size, body_size, head_crc, body_crc = _LENGTHS.unpack_from(prefix)
    head_start = start + PREFIX_BYTES
    body_start = head_start + head_size
    end = body_start + body_size + len(MARK)
    if end > len(data):
        raise BadFrame(start, "the file ends inside a record", torn=True)
    if data[end - 1 : end] != MARK:
        raise BadFrame(start, "a record has no end", torn=end == len(data) and data[end - 1] == 0)
    head = data[head_start:body_start]
    if zlib.crc32(head) != head_crc:
        raise BadFrame(start, "a record fails its check")
    return Frame(_columns(head, start), start, body_start, body_size, body_crc)


def _columns(head: bytes, start: int) -> Mapping[str, object]:
    with suppress(ValueError, RecursionError):
        columns = json.loads(head)
        if isinstance(columns, dict):
            return columns
    raise BadFrame(start, "a record cannot be read")
