"""The anchor: a small file beside the database that remembers what was acknowledged.

SQLite cannot tell a WAL that was deleted, cut off or exchanged from one that never was: it opens the older
state and goes on. The anchor holds the number of the newest commit outside the database, so that opening
notices when acknowledged commits are gone. It is written after each commit and not synced: it costs four
microseconds, and whatever removes commits while the machine runs is noticed. A power failure may lose the
anchor's last numbers too, which only makes it see less.

Writes without a number (claims, objects put ahead, annotations, …) leave a mark instead: how many frames of
which WAL were there. It is good for as long as that WAL is.

The file has slots of equal size. A commit uses the slot of its number, so that two processes that write at
the same time rarely overwrite a newer number by an older, and a torn slot leaves the others. The mark has the
last slot.
"""

import os
import struct
from functools import cache
from pathlib import Path
from typing import Final
from zlib import crc32

_SLOT: Final = struct.Struct("<4sQ8s12sII")
_NUMBER: Final = b"anc1"
_MARK: Final = b"wal1"
_SLOTS: Final = 8
_SYNCED: Final = 1
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@cache
def _boot() -> bytes:
    """Which start of the machine this is, as far as the system tells."""
    try:
        return bytes.fromhex(_BOOT.read_text().strip().replace("-", ""))[:12]
    except (OSError, ValueError):
        return bytes(12)


class Anchor:
    """The file that remembers the newest commit number."""

    def __init__(self, path: str, *, synced: bool) -> None:
        self.path = path
        self._flags = _SYNCED if synced else 0
        self._boot = _boot()
        self._fd = -1

    def newest(self) -> int:
        """The newest number that must be in the database; 0 when nothing is known."""
        return self.read()[0]

    def read(self) -> tuple[int, tuple[int, bytes] | None]:
        """The newest number that must be there, and how many frames of the WAL with which salts.

        A store that does not sync each commit may lose the last ones when the machine fails, by agreement; so
        what such a store noted before this start of the machine binds nobody.
        """
        newest, mark, data, size = 0, None, self._read_file(), _SLOT.size
        for at in range(0, len(data) - size + 1, size):
            kind, count, salts, boot, flags, crc = _SLOT.unpack_from(data, at)
            if crc != crc32(data[at : at + size - 4]) or not (flags & _SYNCED or boot == self._boot):
                continue
            if kind == _NUMBER:
                newest = max(newest, count)
            elif kind == _MARK and mark is None:
                mark = count, salts
        return newest, mark

    def _read_file(self) -> bytes:
        try:
            with open(self.path, "rb", buffering=0) as file:
                return file.read(_SLOT.size * (_SLOTS + 1))
        except OSError:
            return b""

    def write(self, no: int) -> None:
        self._put(no % _SLOTS, _NUMBER, no, bytes(8))

    def write_mark(self, frames: int, salts: bytes) -> None:
        self._put(_SLOTS, _MARK, frames, salts)

    def _put(self, index: int, kind: bytes, count: int, salts: bytes) -> None:
        """Never raises: a commit is made even where it cannot be noted here."""
        data = _SLOT.pack(kind, count, salts, self._boot, self._flags, 0)[:-4]
        try:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            os.pwrite(self._fd, data + crc32(data).to_bytes(4, "little"), index * _SLOT.size)
        except OSError:
            return

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
