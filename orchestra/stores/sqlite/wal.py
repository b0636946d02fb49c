"""Reads the write-ahead log (WAL) without SQLite, to find out whether acknowledged writes are missing.

SQLite takes a log to end where the first frame does not fit: after damage it opens the older state and says
nothing. Two things tell such an end from a true one: the anchor's mark, which holds how many frames of
which log were acknowledged; and frames behind the end that belong to this log, because a transaction that was
never finished can leave the frames of one commit there, but not of two.

No locks are ever taken on the log itself, so that reading it here disturbs nobody.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from orchestra.stores.sqlite.connect import FRAME_BYTES

_HEADER_BYTES: Final = 32
_MAGIC: Final = (0x377F0682, 0x377F0683)


class WalFile:
    """One WAL file as it is now."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.header = os.pread(descriptor, _HEADER_BYTES, 0)

    @property
    def frames(self) -> int:
        return max(0, self.size - _HEADER_BYTES) // FRAME_BYTES

    @property
    def salts(self) -> bytes:
        """What marks the frames of this log, as its header says."""
        return self.header[16:24]

    def header_fits(self) -> bool:
        if len(self.header) < _HEADER_BYTES:
            return False
        magic = struct.unpack(">I", self.header[:4])[0]
        if magic not in _MAGIC:
            return False
        words = struct.unpack(">6I" if magic & 1 else "<6I", self.header[:24])
        first = second = 0
        for even, odd in zip(words[::2], words[1::2], strict=True):
            first = (first + even + second) & 0xFFFFFFFF
            second = (second + odd + first) & 0xFFFFFFFF
        return (first, second) == struct.unpack(">2I", self.header[24:32])

    def frame(self, number: int) -> tuple[bytes, bool]:
        """The salts of a frame, counted from 1, and whether it ends a commit."""
        head = os.pread(self._descriptor, 16, _HEADER_BYTES + (number - 1) * FRAME_BYTES)
        return head[8:16], len(head) == 16 and head[4:8] != bytes(4)

    def commits_behind(self, end: int) -> int:
        """How many commits of this log stand behind its frame number `end`."""
        salts = self.salts if self.header_fits() else self.frame(1)[0]
        found = (self.frame(number) for number in range(end + 1, self.frames + 1))
        return sum(commit and frame_salts == salts for frame_salts, commit in found)


@contextmanager
def _open(path: str) -> Iterator[WalFile | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield WalFile(descriptor)
    finally:
        os.close(descriptor)


def size_of(path: str) -> int:
    """How long the file of a log is; 0 when there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def salts_of(path: str, number: int) -> bytes | None:
    """Which log the frame `number` belongs to, read from the frame itself."""
    with _open(path) as log:
        return None if log is None else log.frame(number)[0]


def loss_reason(path: str, mark: tuple[int, bytes], valid: int) -> str | None:
    """Why acknowledged frames are missing, when SQLite sees `valid` of them; None when none is."""
    frames, salts = mark
    if valid >= frames:
        return None
    with _open(path) as log:
        if log is None:
            return None  # a log that is not there was moved into the database, as far as anybody can tell
        # A sound header with other salts is a newer log, begun after the marked one was moved.
        if log.salts == salts or (log.size > 0 and not log.header_fits()):
            return f"its log ends after {valid} frames, and {frames} were acknowledged"
    return None


def truncation_reason(path: str, valid: int) -> str | None:
    """Why a log must have been longer than the `valid` frames that SQLite sees; None when nothing says so."""
    with _open(path) as log:
        behind = log.commits_behind(valid) if log is not None else 0
        if log is None or behind <= 1:
            return None
        if log.size and not log.header_fits() and log.frames:
            return f"the header of the log is damaged; {behind} commits stand in it"
        return f"{behind} commits stand behind frame {valid}, where the log seems to end"
