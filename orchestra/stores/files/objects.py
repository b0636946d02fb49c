"""The object folder, shared by all runs: `objects/ab/cdef…`, four bytes of CRC-32, then the object's bytes.

The store does not know how digests are made, so it keeps a check of its own. The time of the file is the time
at which the object was last written.
"""

import os
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress

from orchestra.atomic import sync
from orchestra.errors import Damaged
from orchestra.ids import DIGEST_BYTES, Digest, Instant
from orchestra.ports.store import ObjectInfo, StoreProblem
from orchestra.stores.files import disk

_CHECK = struct.Struct("<I")
_SHELF = re.compile(r"[0-9a-f]{2}")
_NAME = re.compile(rf"[0-9a-f]{{{2 * DIGEST_BYTES - 2}}}")


class ObjectFolder:
    """Objects as files."""

    def __init__(self, folder: str, now: Callable[[], Instant]) -> None:
        self.folder = folder
        self._now = now

    def path(self, digest: Digest) -> str:
        assert len(digest) == DIGEST_BYTES, "BUG: a digest has 32 bytes"
        name = digest.hex()
        return os.path.join(self.folder, name[:2], name[2:])

    def has(self, digest: Digest) -> bool:
        return os.path.exists(self.path(digest))

    def put(self, objects: Iterable[tuple[Digest, bytes]], made: list[Digest]) -> None:
        """Write objects durably; those that were not there before are added to `made`, also when it fails."""
        touched: set[str] = set()
        at = self._now()
        for digest, data in objects:
            path = self.path(digest)
            try:
                os.utime(path, ns=(at * 1000, at * 1000))
            except FileNotFoundError:
                disk.make_folder(os.path.dirname(path))
                disk.replace(path, _CHECK.pack(zlib.crc32(data)) + data, at)
                made.append(digest)
                touched.add(os.path.dirname(path))
        for shelf in sorted(touched):
            sync(shelf)

    def get(self, digest: Digest) -> bytes | None:
        """The object's bytes, checked, or None."""
        try:
            data = disk.read(self.path(digest))
        except FileNotFoundError:
            return None
        problem = _problem(data)
        if problem:
            raise Damaged(what=f"object {digest.hex()[:16]}", reason=problem)
        return data[_CHECK.size :]

    def infos(self) -> Iterator[ObjectInfo]:
        for shelf in filter(_SHELF.fullmatch, os.listdir(self.folder)):
            for name in filter(_NAME.fullmatch, _names_in(os.path.join(self.folder, shelf))):
                with suppress(FileNotFoundError):  # swept meanwhile
                    found = os.stat(os.path.join(self.folder, shelf, name))
                    digest, at = Digest(bytes.fromhex(shelf + name)), Instant(found.st_mtime_ns // 1000)
                    yield ObjectInfo(digest=digest, size=max(found.st_size - _CHECK.size, 0), at=at)

    def discard(self, digests: Iterable[Digest]) -> None:
        """Remove objects; those that are not there are fine."""
        for digest in digests:
            with suppress(FileNotFoundError):
                os.unlink(self.path(digest))

    def sweep(self, dead: Collection[Digest], older_than: Instant) -> int:
        """Remove those of the dead that were last written before a moment."""
        removed = 0
        for digest in dead:
            with suppress(FileNotFoundError):
                if os.stat(self.path(digest)).st_mtime_ns // 1000 < older_than:
                    os.unlink(self.path(digest))
                    removed += 1
        return removed

    def tidy(self) -> None:
        """Remove what a crash left half-written, and make durable what it left whole: it is relied on now."""
        sync(self.folder)
        for shelf in filter(_SHELF.fullmatch, os.listdir(self.folder)):
            path = os.path.join(self.folder, shelf)
            for name in _names_in(path):
                if name.endswith(disk.TMP):
                    os.unlink(os.path.join(path, name))
            if os.path.isdir(path):
                sync(path)

    def check(self, digest: Digest) -> Iterator[StoreProblem]:
        with suppress(FileNotFoundError):  # swept meanwhile
            problem = _problem(disk.read(self.path(digest)))
            if problem:
                yield StoreProblem(what="object", where=digest.hex(), reason=problem)

    def strangers(self) -> Iterator[StoreProblem]:
        """Files in the folder that are no objects."""
        for shelf in os.listdir(self.folder):
            path = os.path.join(self.folder, shelf)
            names = _names_in(path) if _SHELF.fullmatch(shelf) and os.path.isdir(path) else [""]
            for name in names:
                if not _NAME.fullmatch(name):
                    yield StoreProblem(what="file", where=os.path.join(path, name), reason="it is no object")


def _names_in(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def _problem(data: bytes) -> str | None:
    if len(data) < _CHECK.size:
        return "its file is cut short"
    if zlib.crc32(memoryview(data)[_CHECK.size :]) != _CHECK.unpack_from(data)[0]:
        return "its bytes are not those that were written"
    return None
