"""Finds out whether acknowledged writes are gone: compares the anchor and the WAL with the database.

SQLite takes a log to end where the first frame does not fit: after damage it opens the older state and says
nothing. Two things tell such an end from a true one: the anchor's mark, which holds how many frames of
which log were acknowledged; and frames behind the end that belong to this log, because a transaction that was
never finished can leave the frames of one commit there, but not of two.

The log is read here without SQLite, and no locks are ever taken on it, so that this disturbs nobody.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import apsw

from orchestra.errors import LostCommits, OrchestraError
from orchestra.ports.store import StoreProblem
from orchestra.stores.sqlite.anchor import Anchor
from orchestra.stores.sqlite.columns import fact_crc
from orchestra.stores.sqlite.connect import FRAME_BYTES, connect
from orchestra.stores.sqlite.opener import write_obstacle
from orchestra.stores.sqlite.pool import Pool
from orchestra.stores.sqlite.queries import COMMITS, newest_no
from orchestra.stores.sqlite.statements import SQL

_HEADER_BYTES: Final = 32
_MAGIC: Final = (0x377F0682, 0x377F0683)


class LossDetector:
    """Notes every acknowledged write, and raises or reports when one is missing."""

    def __init__(self, pool: Pool, *, synced: bool) -> None:
        self._pool = pool
        self._anchor = Anchor(pool.settings.beside("-anchor"), synced=synced)
        self._wal = pool.settings.beside("-wal")
        self._file = self._identity()

    def note(self, no: int) -> None:
        """Note commit `no`; raises `LostCommits` when it went into a file that was removed or exchanged."""
        if self._identity() != self._file:
            reason = "The database file was removed or exchanged while it was open."
            raise LostCommits(place=self._pool.place, first=1, last=no, reason=reason)
        self._anchor.write(no)

    def _identity(self) -> tuple[int, int] | None:
        """What tells one file at the place from another."""
        try:
            found = os.stat(self._pool.settings.path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def mark(self) -> None:
        """Note a write that has no commit number."""
        frames = self._pool.frames
        salts = _salts_of(self._wal, frames) if frames > 0 else None
        if salts is not None:
            self._anchor.write_mark(frames, salts)

    def refuse_loss(self, connection: apsw.Connection) -> None:
        """Raise when acknowledged writes are gone. The connection may be one that only reads."""
        promised, newest, _, loss = self._losses(connection)
        if loss is not None:
            last = max(promised, newest + 1)
            raise LostCommits(place=self._pool.place, first=newest + 1, last=last, reason=loss)

    def _losses(self, connection: apsw.Connection) -> tuple[int, int, int | None, str | None]:
        """The commit that must be there, the newest that is, the length of the log, and what is missing."""
        promised, mark = self._anchor.read()  # asked first: another process may commit between the two
        newest = newest_no(connection)
        frames = self._frames(connection, mark)
        if promised > newest:
            return promised, newest, frames, "The database or its log was exchanged, cut off or removed."
        reason = _loss_reason(self._wal, mark, frames) if mark is not None and frames is not None else None
        return promised, newest, frames, reason and f"{reason[0].upper()}{reason[1:]}."

    def _frames(self, connection: apsw.Connection, mark: tuple[int, bytes] | None) -> int | None:
        """How many frames of the log SQLite sees; None when nobody can tell. The log was read by now.

        Only a connection that can write may ask. A reader makes one for the question where the log may be
        the marked one and the file can be written; it changes nothing.
        """
        if self._pool.read_only is None:
            return int(connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])
        settings = self._pool.settings
        if mark is None or not settings.size("-wal") or write_obstacle(settings) is not None:
            return None
        with closing(connect(settings, writing=True, tuned=False)) as asking:
            asking.pragma("user_version")  # any question opens the log, and this one needs no tables
            return int(asking.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])

    def problems(self) -> Iterator[StoreProblem]:
        try:
            pool = self._pool
            losses = pool.read(self._losses) if pool.read_only is not None else pool.use_writer(self._losses)
            promised, newest, frames, loss = losses
            if loss is not None:
                reason = f"{loss} The newest commit is {newest}, and {promised} was acknowledged."
                yield StoreProblem(what="file", where=pool.place, reason=reason)
            cut = _truncation_reason(self._wal, frames) if frames is not None else None
            if cut is not None:
                yield StoreProblem(what="file", where=self._wal, reason=cut)
        except OrchestraError as error:
            yield StoreProblem(what="file", where=self._pool.place, reason=str(error))

    def accept(self) -> int:
        """Take the database as it is from now on. Returns how many commits are given up.

        The numbers of what was lost are not given out again: whoever remembers them must not take a new
        commit for an old one.
        """
        last = self._anchor.newest()

        def work(connection: apsw.Connection) -> int:
            newest = newest_no(connection)
            raised = max(newest, last)
            connection.execute(SQL["set_counter"], (COMMITS, raised, fact_crc(COMMITS, raised)))
            return raised - newest

        # The store may be open for reading only, because opening it for writing is refused.
        with closing(Pool(self._pool.settings, read_only=write_obstacle(self._pool.settings))) as pool:
            given_up = pool.write(work)
            pool.trusted = True
        self._anchor.write_mark(0, bytes(8))
        return given_up

    def close(self) -> None:
        self._anchor.close()


class _WalFile:
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
def _open_wal(path: str) -> Iterator[_WalFile | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield _WalFile(descriptor)
    finally:
        os.close(descriptor)


def _salts_of(path: str, number: int) -> bytes | None:
    """Which log the frame `number` belongs to, read from the frame itself."""
    with _open_wal(path) as log:
        return None if log is None else log.frame(number)[0]


def _loss_reason(path: str, mark: tuple[int, bytes], valid: int) -> str | None:
    """Why acknowledged frames are missing, when SQLite sees `valid` of them; None when none is."""
    frames, salts = mark
    if valid >= frames:
        return None
    with _open_wal(path) as log:
        if log is None:
            return None  # a log that is not there was moved into the database, as far as anybody can tell
        # A sound header with other salts is a newer log, begun after the marked one was moved.
        if log.salts == salts or (log.size > 0 and not log.header_fits()):
            return f"its log ends after {valid} frames, and {frames} were acknowledged"
    return None


def _truncation_reason(path: str, valid: int) -> str | None:
    """Why a log must have been longer than the `valid` frames that SQLite sees; None when nothing says so."""
    with _open_wal(path) as log:
        behind = log.commits_behind(valid) if log is not None else 0
        if log is None or behind <= 1:
            return None
        if log.size and not log.header_fits() and log.frames:
            return f"the header of the log is damaged; {behind} commits stand in it"
        return f"{behind} commits stand behind frame {valid}, where the log seems to end"
