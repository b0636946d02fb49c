"""The log of one run: a folder of segments `log-000000`, `log-000001`, …, each a sequence of frames.

Frames are appended to the last segment and synced, one segment after the other, so that only the end of the
last segment can be incomplete after a crash: that is cut off when the log is loaded. All else that cannot be
read is damage, and so is a record that does not fit what came before it: it is named, and nothing is cut or
written behind it. Segments are small, so that pruning can rewrite one of them with little room to spare.

A record is a row, a claim, a command or an annotation, as the columns and the body of a frame.
"""

import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import attrs

from orchestra.atomic import sync
from orchestra.errors import Damaged
from orchestra.ids import Digest, Fence, Instant, RunId
from orchestra.limits import KB
from orchestra.ports.store import Annotation, Claim, Command, Commit, Row, StoreProblem
from orchestra.stores.files import disk
from orchestra.stores.files.frames import BadFrame, Frame, pack, walk
from orchestra.stores.run_index import IndexedRun, Record, Withdrawal

Columns = Mapping[str, Any]

SEGMENT_BYTES = 256 * KB
"""A segment is at most this long, unless it holds a single frame."""
_PLAIN = ("seq", "at", "status", "phase", "marked", "sealed_at", "size", "pruned", "no")
_LISTS = ("triggers", "agents")


class MisplacedRecord(Exception):
    """A record that is whole but does not fit what came before it."""


def row_frame(commit: Commit, row: Row, owner: str | None) -> bytes:
    """The record of a commit; `row` is its row with number and contents."""
    columns = {name: getattr(row, name) for name in (*_PLAIN, *_LISTS)}
    columns |= {
        "kind": "row",
        "run": row.run,
        "digest": row.digest.hex(),
        "parent": row.parent.hex() if row.parent is not None else None,
        "seal": row.seal.hex(),
        "header": len(row.header),
        "fence": commit.fence,
        "owner": owner,
        "family": commit.family,
        "workflow": commit.workflow,
        "consumed": commit.consumed,
    }
    return pack(columns, row.header + (row.patch or b""))


def pruned_frame(columns: Columns, body: bytes) -> bytes:
    """The record of a row without its patch."""
    return pack({**columns, "pruned": True}, body[: columns["header"]])


def record_frame(record: Record) -> bytes:
    """The record of anything but a row."""
    match record:
        case Claim():
            return pack({"kind": "claim", "fence": record.fence, "owner": record.owner})
        case Command():
            return pack({"kind": "command", "id": record.id, "at": record.at}, record.body)
        case Withdrawal():
            return pack({"kind": "taken_back", "id": record.command})
        case Annotation():
            return pack({"kind": "annotation", "seq": record.seq, "of": record.kind}, record.body)


def replay_row(run: RunId, entry: IndexedRun | None, columns: Columns) -> IndexedRun:
    """Enter a row; the first one makes the run."""
    row = _row(columns)
    if row.run != run or row.seq != (len(entry.rows) if entry else 0):
        raise MisplacedRecord(f"a row of {row.run}@{row.seq} stands where another belongs")
    if entry is None:
        entry = IndexedRun(
            run=run, family=RunId(columns["family"]), workflow=columns["workflow"],
            fence=Fence(columns["fence"]), owner=columns["owner"],
        )  # fmt: skip
    elif row.no <= entry.head.no:
        raise MisplacedRecord(f"row {row.seq} has a number below the row before it")
    entry.append(row, columns["consumed"])
    return entry


def read_record(run: RunId, columns: Columns, body: bytes) -> Record:
    """What `record_frame` wrote."""
    match columns.get("kind"):
        case "claim":
            return Claim(run=run, fence=Fence(columns["fence"]), owner=columns["owner"])
        case "command":
            return Command(id=columns["id"], run=run, at=Instant(columns["at"]), body=body)
        case "taken_back":
            return Withdrawal(run, columns["id"])
        case "annotation":
            return Annotation(run=run, seq=columns["seq"], kind=columns["of"], body=body)
        case kind:
            raise MisplacedRecord(f"a record is of the unknown kind {kind!r}")


def _row(columns: Columns) -> Row:
    try:
        plain: dict[str, Any] = {name: columns[name] for name in _PLAIN}
        lists: dict[str, Any] = {name: tuple(columns[name]) for name in _LISTS}
        parent = columns["parent"]
        return Row(
            run=RunId(columns["run"]),
            digest=Digest(bytes.fromhex(columns["digest"])),
            parent=Digest(bytes.fromhex(parent)) if parent is not None else None,
            seal=Digest(bytes.fromhex(columns["seal"])),
            **plain,
            **lists,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MisplacedRecord(f"a row cannot be read: {error}") from None


@attrs.frozen
class RowPlace:
    """Where the header and patch of a row are on disk."""

    segment: int
    start: int
    header: int
    size: int
    crc: int


class RunLog:
    """One run on disk, and its index entry as read from there."""

    def __init__(self, folder: str, run: RunId) -> None:
        self.folder = folder
        self.run = run
        self._clear()

    def _clear(self) -> None:
        self.entry: IndexedRun | None = None
        self.damage: str | None = None
        self.hidden = 0  # bytes behind the damage
        self.sizes: list[int] = []
        self.places: list[RowPlace] = []

    def path(self, segment: int) -> str:
        return os.path.join(self.folder, f"log-{segment:06d}")

    def refuse_damage(self) -> None:
        """Raise when something in this log could not be read."""
        if self.damage is not None:
            raise Damaged(what=f"run {self.run!r} in {self.folder}", reason=self.damage)

    def load(self) -> None:
        """Read everything from disk; cut off the end of a write that was never finished."""
        self._clear()
        segments = self._segments()
        for segment in range(segments):
            self._load_segment(segment, last=segment == segments - 1)
            if self.damage is not None:
                self.hidden += sum(os.path.getsize(self.path(rest)) for rest in range(segment + 1, segments))
                return
        if segments:
            # What a killed process wrote is seen from now on, so it must be as durable as if acknowledged.
            sync(self.path(segments - 1))
            sync(self.folder)

    def _segments(self) -> int:
        names = []
        for name in os.listdir(self.folder):
            if name.endswith(disk.TMP):
                os.unlink(os.path.join(self.folder, name))
            else:
                names.append(name)
        count = 0
        while os.path.basename(self.path(count)) in names:
            count += 1
        if count != len(names):
            self.damage = "a segment is missing, or a file is there that is none"
            self.hidden += sum(os.path.getsize(os.path.join(self.folder, name)) for name in names)
        return count

    def _load_segment(self, segment: int, *, last: bool) -> None:
        data = disk.read(self.path(segment))
        self.sizes.append(len(data))
        try:
            for frame in walk(data):
                self._replay(segment, frame, data)
        except BadFrame as error:
            if error.torn and last and self.damage is None:
                disk.cut(self.path(segment), error.start)
                self.sizes[-1] = error.start
            else:
                self.damage = f"{error.reason} (segment {segment}, byte {error.start})"
                self.hidden += len(data) - error.start

    def _replay(self, segment: int, frame: Frame, data: bytes) -> None:
        try:
            if frame.columns.get("kind") == "row":
                self.entry = replay_row(self.run, self.entry, frame.columns)
                self.places.append(_place(segment, frame))
            elif self.entry is None:
                raise MisplacedRecord("the log does not begin with a row")
            else:
                self.entry.enter(read_record(self.run, frame.columns, frame.body(data)))
        except (MisplacedRecord, KeyError, TypeError, ValueError) as error:
            raise BadFrame(frame.start, str(error)) from None

    def append(self, frames: Sequence[bytes]) -> None:
        """Add frames, durably. When it fails, `undo` it."""
        self.refuse_damage()
        if not self.sizes:
            disk.make_folder(self.folder)
        rest = list(frames)
        while rest:
            if not self.sizes or (self.sizes[-1] and self.sizes[-1] + len(rest[0]) > SEGMENT_BYTES):
                self.sizes.append(0)
            chunk = _count_fitting(rest, SEGMENT_BYTES - self.sizes[-1])
            self._extend(b"".join(rest[:chunk]))
            del rest[:chunk]

    def _extend(self, data: bytes) -> None:
        segment = len(self.sizes) - 1
        disk.append(self.path(segment), data)
        if not self.sizes[-1]:
            sync(self.folder)
        rows = (frame for frame in walk(data) if frame.columns["kind"] == "row")
        self.places += [_place(segment, frame, self.sizes[-1]) for frame in rows]
        self.sizes[-1] += len(data)

    def undo(self, sizes: Sequence[int]) -> None:
        """Go back to segments of these sizes. What cannot be undone is found out by loading again."""
        for segment in range(len(self.sizes) - 1, -1, -1):
            path = self.path(segment)
            if segment >= len(sizes):
                if os.path.exists(path):
                    os.unlink(path)
            elif segment == len(sizes) - 1:
                disk.cut(path, sizes[segment])
        self.sizes = list(sizes)
        if not sizes and os.path.isdir(self.folder):
            os.rmdir(self.folder)

    def contents(self, rows: Sequence[Row]) -> Iterator[Row]:
        """These rows with their contents, checked."""
        held, data = -1, b""
        for row in rows:
            place = self.places[row.seq]
            if place.segment != held:
                held, data = place.segment, disk.read(self.path(place.segment))
            body = data[place.start : place.start + place.size]
            if zlib.crc32(body) != place.crc:
                reason = "its bytes are not those that were written"
                raise Damaged(what=f"{self.run}@{row.seq}", reason=reason)
            patch = None if row.pruned else body[place.header :]
            yield attrs.evolve(row, header=body[: place.header], patch=patch)

    def row_bytes(self) -> int:
        return sum(place.size for place in self.places)

    def prune(self, seqs: Collection[int]) -> None:
        """Rewrite the segments of these rows without their patches, the newest first, each in one step."""
        self.refuse_damage()
        for segment in sorted({self.places[seq].segment for seq in seqs}, reverse=True):
            data = disk.read(self.path(segment))
            try:
                fresh = b"".join(self._without(data, frame, seqs) for frame in walk(data))
            except BadFrame as error:
                raise Damaged(what=self.path(segment), reason=error.reason) from None
            disk.replace(self.path(segment), fresh)
            sync(self.folder)

    def _without(self, data: bytes, frame: Frame, seqs: Collection[int]) -> bytes:
        if frame.columns.get("kind") == "row" and frame.columns["seq"] in seqs:
            # Checked before it is packed anew: damage must not get a fresh check of its own.
            return pruned_frame(frame.columns, frame.body(data))
        return data[frame.start : frame.end]

    def check(self) -> Iterator[StoreProblem]:
        if self.damage is not None:
            yield StoreProblem(what="run", where=self.run, reason=self.damage)
            return
        for segment, size in enumerate(self.sizes):
            data = disk.read(self.path(segment))
            if len(data) != size:
                reason = f"it has {len(data)} bytes, not {size}"
                yield StoreProblem(what="file", where=self.path(segment), reason=reason)
            try:
                for frame in walk(data):
                    yield from self._check_frame(frame, data)
            except BadFrame as error:
                reason = f"{error.reason} (segment {segment}, byte {error.start})"
                yield StoreProblem(what="run", where=self.run, reason=reason)

    def _check_frame(self, frame: Frame, data: bytes) -> Iterator[StoreProblem]:
        try:
            frame.body(data)
        except BadFrame as error:
            kind = str(frame.columns.get("kind"))
            where = f"{self.run}@{frame.columns['seq']}" if kind == "row" else self.run
            yield StoreProblem(what=kind, where=where, reason=error.reason)


def _place(segment: int, frame: Frame, offset: int = 0) -> RowPlace:
    header = frame.columns["header"]
    if not isinstance(header, int) or not 0 <= header <= frame.body_size:
        raise MisplacedRecord("a row has a header of no possible length")
    return RowPlace(segment, offset + frame.body_start, header, frame.body_size, frame.body_crc)


def _count_fitting(frames: Sequence[bytes], room: int) -> int:
    """How many of the frames fit; at least one."""
    return max(1, sum(used <= room for used in accumulate(map(len, frames))))
