"""An export file, written and read section by section, and as a read-only store.

Its bytes are a beginning that tells what it is, then sections, each with its own check:

    beginning   18 bytes that begin with 0x89 and "orchestra", then the format as 2 bytes
    section     1 byte kind, 4 bytes length, 4 bytes CRC-32 of kind, length and content, then the content

Numbers have their largest byte first. Kinds of sections, in this order: `M` one manifest, `O` objects,
`R` rows, `A` annotations, `E` the end, whose content is the digest of all that stands before it. That digest
is worked out section by section: the digest of the beginning, then for each section the digest of the digest
so far followed by the section, every time as an address of kind "export".

Opening it as a store checks every section and the digest of the whole; rows and objects are proved on
reading, as in any store.
"""

import struct
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import attrs

from orchestra.atomic import file_error
from orchestra.codec import cbor
from orchestra.codec.frame import Framer
from orchestra.codec.header import read_header
from orchestra.errors import BadName, Damaged, NotAStore, StoreReadOnly, StoreTooNew
from orchestra.history.archive import columns_of
from orchestra.ids import DIGEST_BYTES, Digest, Fence, Instant, RunId, run_id
from orchestra.limits import EXPORT_FRAME_BYTES
from orchestra.ports.store import (
    Annotation,
    AnnotationKind,
    Command,
    ObjectInfo,
    Properties,
    Row,
    RowQuery,
    RunQuery,
    RunRow,
    Store,
    StoreProblem,
    StoreStats,
)

MAGIC: Final = b"\x89orchestra-run\r\n\x1a\n"
FORMAT: Final = 1
SUFFIX: Final = ".orchestra"
MANIFEST, OBJECT, ROW, ANNOTATION, END = b"M", b"O", b"R", b"A", b"E"
_ORDER: Final = b"MORAE"
_VERSION: Final = struct.Struct(">H")
_SECTION: Final = struct.Struct(">cI")
_CRC: Final = struct.Struct(">I")
_HEAD_BYTES: Final = _SECTION.size + _CRC.size
_decode = cbor.make_decoder({})
_KINDS: dict[str, AnnotationKind] = {"pin": "pin", "note": "note"}
_MANIFEST_TYPES: dict[str, type] = {
    **dict.fromkeys(("run", "family", "workflow"), str),
    **dict.fromkeys(("created_at", "rows", "pruned", "objects", "annotations"), int),
    "digest": bytes,
}


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


# --- as a store


@attrs.frozen(kw_only=True)
class Manifest:
    """What an export file says about itself at its beginning."""

    run: RunId
    family: RunId
    workflow: str
    created_at: Instant
    digest: Digest  # of the newest row
    rows: int
    pruned: int
    objects: int
    annotations: int


def write_manifest(manifest: Manifest) -> bytes:
    """The content of a manifest section."""
    plain = attrs.asdict(manifest)
    return cbor.encode({key: plain[key] for key in sorted(plain, key=cbor.key_order)})


def write_row(row: Row) -> bytes:
    """The content of a row section; all other columns stand in the header."""
    return cbor.encode([row.digest, row.header, row.patch, row.size])


def write_annotation_section(annotation: Annotation) -> bytes:
    """The content of an annotation section."""
    return cbor.encode([annotation.seq, annotation.kind, annotation.body])


class ExportStore(Store):
    """The one run in an export file. Everything that writes raises `StoreReadOnly`."""

    properties = Properties(scheme="export", durable=True, many_processes=True)

    def __init__(self, path: Path, framer: Framer) -> None:
        self.place, self._path, self._framer = str(path), path, framer
        self._lock = threading.Lock()
        self._rows: list[tuple[int, int]] = []  # where the content of each stands, and its length
        self._objects: dict[Digest, tuple[int, int]] = {}
        self._annotations: list[Annotation] = []
        self._file = open_file(path, "an export file")
        try:
            self.manifest = self._read(FrameReader(self._file, path, framer))
        except BaseException:
            self._file.close()
            raise

    # --- opening

    def _read(self, reader: FrameReader) -> Manifest:
        manifest: Manifest | None = None
        for section in reader.sections():
            if (section.kind == MANIFEST) != (manifest is None):
                raise reader.damage_error("it does not have exactly one manifest, at its beginning")
            if manifest is None:
                manifest = self._manifest(section)
            else:
                self._enter(section, manifest)
        if manifest is None:
            raise reader.damage_error("it has no manifest")
        counts = (len(self._rows), len(self._objects), len(self._annotations))
        if counts != (manifest.rows, manifest.objects, manifest.annotations) or not self._rows:
            raise reader.damage_error("it does not hold as many rows, objects and annotations as it says")
        return manifest

    def _manifest(self, section: Section) -> Manifest:
        plain = self._plain(section)
        types = {name: type(each) for name, each in plain.items()} if isinstance(plain, dict) else {}
        if types != _MANIFEST_TYPES or len(plain["digest"]) != DIGEST_BYTES:
            raise self._damage_error("its manifest is not one")
        return Manifest(**{**plain, "run": self._id(plain["run"]), "family": self._id(plain["family"])})

    def _id(self, text: str) -> RunId:
        try:
            return run_id(text)
        except BadName as error:
            raise self._damage_error(f"it names a run that could not be: {error}") from None

    def _enter(self, section: Section, manifest: Manifest) -> None:
        spot = (section.offset, len(section.content))
        if section.kind == ROW:
            self._rows.append(spot)
        elif section.kind == OBJECT:
            digest = Digest(section.content[:DIGEST_BYTES])
            if digest in self._objects:
                raise self._damage_error("it holds an object twice")
            self._objects[digest] = (section.offset + DIGEST_BYTES, len(section.content) - DIGEST_BYTES)
        else:
            self._annotations.append(self._annotation(section, manifest.run))

    def _annotation(self, section: Section, run: RunId) -> Annotation:
        assert section.kind == ANNOTATION, "BUG: the reader knows all kinds"
        match self._plain(section):
            case [int(seq), str(kind), bytes(body)] if kind in _KINDS and body and 0 <= seq < len(self._rows):
                return Annotation(run=run, seq=seq, kind=_KINDS[kind], body=body)
            case _:
                raise self._damage_error("an annotation in it is not one")

    def _plain(self, section: Section) -> Any:
        return _decode(section.content, f"export file {self.place}")

    def _damage_error(self, reason: str) -> Damaged:
        return Damaged(what=f"export file {self.place}", reason=reason)

    # --- reading

    def run(self, run: RunId) -> RunRow | None:
        return self._run_row() if run == self.manifest.run else None

    def runs(self, query: RunQuery) -> list[RunRow]:
        fits = query.contains is None or query.contains in self.manifest.run
        return [self._run_row()] if fits and query.offset == 0 and query.limit > 0 else []

    def _run_row(self) -> RunRow:
        head, manifest = self._row(len(self._rows) - 1), self.manifest
        return RunRow(
            run=manifest.run,
            family=manifest.family,
            workflow=manifest.workflow,
            status=head.status,
            phase=head.phase,
            head=head.seq,
            digest=manifest.digest,
            fence=Fence(0),
            owner=None,
            owned=False,
            created_at=manifest.created_at,
            updated_at=head.at,
        )

    def rows(self, query: RowQuery) -> list[Row]:
        """Rows between two sequence numbers. Other conditions are not needed for a file and not honoured."""
        if query.run is not None and query.run != self.manifest.run:
            return []
        last = len(self._rows) - 1 if query.last is None else min(query.last, len(self._rows) - 1)
        seqs = range(max(query.first or 0, 0), last + 1)
        wanted = (seqs[::-1] if query.newest_first else seqs)[: query.limit]
        return [self._row(seq) for seq in wanted]

    def _row(self, seq: int) -> Row:
        offset, length = self._rows[seq]
        what = f"snapshot {self.manifest.run}@{seq}"
        match self._plain(Section(ROW, offset, self._at(offset, length))):
            case [bytes(digest), bytes(header_bytes), None | bytes() as patch, int(size)]:
                header = read_header(Digest(digest), header_bytes, self._framer, what=what)
            case _:
                raise Damaged(what=what, reason="it is not a row")
        if (header.run, header.seq) != (self.manifest.run, seq):
            raise Damaged(what=what, reason=f"in its place stands {header.run}@{header.seq}")
        return Row(
            **columns_of(header),
            digest=Digest(digest),
            size=size,
            header=header_bytes,
            patch=patch,
            pruned=patch is None,
            no=seq + 1,
        )

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        return {digest: self._at(*self._objects[digest]) for digest in digests if digest in self._objects}

    def objects(self) -> Iterator[ObjectInfo]:
        at = self.manifest.created_at
        return (ObjectInfo(digest=digest, size=size, at=at) for digest, (_, size) in self._objects.items())

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        rows = (self._row(seq) for seq in range(len(self._rows)))
        return [row for row in rows if low <= row.digest <= high][:limit]

    def commands(self, run: RunId) -> list[Command]:
        return []

    def annotations(self, run: RunId) -> list[Annotation]:
        return self._annotations if run == self.manifest.run else []

    def last_no(self) -> int:
        return len(self._rows)

    def stats(self) -> StoreStats:
        return StoreStats(
            runs=1,
            rows=len(self._rows),
            pruned=self.manifest.pruned,
            objects=len(self._objects),
            object_bytes=sum(size for _, size in self._objects.values()),
            row_bytes=sum(size for _, size in self._rows),
            file_bytes=self._path.stat().st_size,
        )

    def check(self) -> Iterator[StoreProblem]:
        return iter(())  # opening it was the check

    def meta(self, key: str) -> bytes | None:
        return None

    def close(self) -> None:
        self._file.close()

    def _at(self, offset: int, length: int) -> bytes:
        with self._lock:
            self._file.seek(offset)
            return self._file.read(length)

    # --- what a file cannot do

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise StoreReadOnly(place=self.place, reason="it is an export file; import it first")

    claim = release = commit = put_objects = send = withdraw = annotate = _refuse
    prune = delete = sweep = compact = set_meta = _refuse


def open_file(path: Path, kind: str) -> BinaryIO:
    """Open a file for reading; raises `NotAStore` when there is none, or what `file_error` says."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NotAStore(place=path, reason="there is no such file") from None
    except IsADirectoryError:
        raise NotAStore(place=path, reason=f"it is a folder, not {kind}") from None
    except OSError as error:
        raise file_error(error, path) from None
