"""The bytes of an export file: a beginning that tells what it is, then sections, each with its own check.

    beginning   18 bytes that begin with 0x89 and "orchestra", then the format as 2 bytes
    section     1 byte kind, 4 bytes length, 4 bytes CRC-32 of kind, length and content, then the content

Numbers have their largest byte first. Kinds of sections, in this order: `M` one manifest, `O` objects,
`R` rows, `A` annotations, `E` the end, whose content is the digest of all that stands before it. That digest
is worked out section by section: the digest of the beginning, then for each section the digest of the digest
so far followed by the section, every time as an address of kind "export".
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import attrs

from orchestra.codec.frame import Framer
from orchestra.errors import Damaged, NotAStore, StoreTooNew
from orchestra.ids import Digest
from orchestra.limits import EXPORT_FRAME_BYTES

MAGIC: Final = b"\x89orchestra-run\r\n\x1a\n"
FORMAT: Final = 1
SUFFIX: Final = ".orchestra"
MANIFEST, OBJECT, ROW, ANNOTATION, END = b"M", b"O", b"R", b"A", b"E"
_ORDER: Final = b"MORAE"
_VERSION: Final = struct.Struct(">H")
_SECTION: Final = struct.Struct(">cI")
_CRC: Final = struct.Struct(">I")
_HEAD_BYTES: Final = _SECTION.size + _CRC.size


@attrs.frozen
class Section:
    """A section that was read: its kind, where its content stands and the content."""

    kind: bytes
    offset: int
    content: bytes


class FrameWriter:
    """Writes an export file section by section."""

    def __init__(self, file: BinaryIO, framer: Framer) -> None:
        self._file, self._framer = file, framer
        beginning = MAGIC + _VERSION.pack(FORMAT)
        self._digest = framer.address("export", beginning)
        self.size = file.write(beginning)

    def put(self, kind: bytes, content: bytes) -> None:
        """Add a section."""
        assert len(content) <= EXPORT_FRAME_BYTES, "BUG: rows and objects have smaller limits"
        head = _SECTION.pack(kind, len(content))
        section = b"".join((head, _CRC.pack(zlib.crc32(content, zlib.crc32(head))), content))
        self._digest = self._framer.address("export", self._digest + section)
        self.size += self._file.write(section)

    def end(self) -> Digest:
        """Add the end; returns the digest of all that stands before it."""
        digest = self._digest
        self.put(END, digest)
        return digest


class FrameReader:
    """Reads an export file section by section and checks each."""

    def __init__(self, file: BinaryIO, path: Path, framer: Framer) -> None:
        self._file, self._path, self._framer = file, path, framer
        self._size = path.stat().st_size
        self._digest = self._beginning()

    def sections(self) -> Iterator[Section]:
        """Every section before the end; raises `Damaged` for one that is not as it was written."""
        stage = 0
        while True:
            section = self._section()
            found = _ORDER.find(section.kind)
            if found < stage or not section.kind:
                raise self.damage_error("its sections are not in order")
            stage = found
            if section.kind == END:
                self._check_end(section)
                return
            yield section

    def damage_error(self, reason: str) -> Damaged:
        """The error for a file that is not what was written."""
        return Damaged(what=f"export file {self._path}", reason=reason)

    def _beginning(self) -> Digest:
        beginning = self._file.read(len(MAGIC) + _VERSION.size)
        if not beginning.startswith(MAGIC[: len(beginning)]) or self._size == 0:
            raise NotAStore(place=self._path, reason="it is not an orchestra export")
        if len(beginning) < len(MAGIC) + _VERSION.size:
            raise self.damage_error("it is cut off at its beginning")
        version: int = _VERSION.unpack_from(beginning, len(MAGIC))[0]
        if version > FORMAT:
            raise StoreTooNew(place=self._path, found=version, known=FORMAT)
        if version < 1:
            raise self.damage_error(f"there never was a format {version}")
        return self._framer.address("export", beginning)

    def _section(self) -> Section:
        start = self._file.tell()
        head = self._file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            raise self.damage_error(f"it is cut off after {self._size} bytes")
        kind, length = _SECTION.unpack_from(head)
        if length > EXPORT_FRAME_BYTES:
            claim = f"the section at byte {start} claims {length} bytes; no section has so many"
            raise self.damage_error(claim)
        # Asked before anything is read: a length is believed only as far as the file goes.
        if length > self._size - start - _HEAD_BYTES:
            raise self.damage_error(f"it is cut off after {self._size} bytes")
        content = self._file.read(length)
        if zlib.crc32(content, zlib.crc32(head[: _SECTION.size])) != _CRC.unpack_from(head, _SECTION.size)[0]:
            raise self.damage_error(f"the section at byte {start} fails its check")
        if kind != END:
            self._digest = self._framer.address("export", self._digest + head + content)
        return Section(kind, start + _HEAD_BYTES, content)

    def _check_end(self, section: Section) -> None:
        if section.content != self._digest:
            raise self.damage_error("its content does not match the digest at its end")
        rest = self._size - section.offset - len(section.content)
        if rest:
            raise self.damage_error(f"{rest} bytes follow after its end")
