"""Finds out whether acknowledged writes are gone: compares the anchor and the WAL with the database."""

import os
from collections.abc import Iterator

import apsw

from orchestra.errors import LostCommits, OrchestraError
from orchestra.ports.store import StoreProblem
from orchestra.stores.sqlite import wal
from orchestra.stores.sqlite.anchor import Anchor
from orchestra.stores.sqlite.append import COMMITS, newest_no
from orchestra.stores.sqlite.columns import fact_crc
from orchestra.stores.sqlite.connect import connect
from orchestra.stores.sqlite.opener import write_obstacle
from orchestra.stores.sqlite.pool import Pool
from orchestra.stores.sqlite.statements import SQL


class LossDetector:
    """Notes every acknowledged write, and raises or reports when one is missing."""

    def __init__(self, pool: Pool, anchor: Anchor) -> None:
        self._pool = pool
        self._anchor = anchor
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
        salts = wal.salts_of(self._wal, frames) if frames > 0 else None
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
        reason = wal.loss_reason(self._wal, mark, frames) if mark is not None and frames is not None else None
        return promised, newest, frames, reason and f"{reason[0].upper()}{reason[1:]}."

    def _frames(self, connection: apsw.Connection, mark: tuple[int, bytes] | None) -> int | None:
        """How many frames of the log SQLite sees; None when nobody can tell. The log was read by now.

        Only a connection that can write may ask. A reader makes one for the question where the log may be
        the marked one and the file can be written; it changes nothing.
        """
        if self._pool.read_only is None:
            return int(connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])
        settings = self._pool.settings
        if mark is None or not wal.size_of(self._wal) or write_obstacle(settings) is not None:
            return None
        asking = connect(settings, writing=True, tuned=False)
        try:
            asking.pragma("user_version")  # any question opens the log, and this one needs no tables
            return int(asking.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])
        finally:
            asking.close()

    def problems(self) -> Iterator[StoreProblem]:
        try:
            pool = self._pool
            losses = pool.read(self._losses) if pool.read_only is not None else pool.use_writer(self._losses)
            promised, newest, frames, loss = losses
            if loss is not None:
                reason = f"{loss} The newest commit is {newest}, and {promised} was acknowledged."
                yield StoreProblem(what="file", where=pool.place, reason=reason)
            cut = wal.truncation_reason(self._wal, frames) if frames is not None else None
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
        pool = Pool(self._pool.settings, read_only=write_obstacle(self._pool.settings))
        try:
            given_up = pool.write(work)
            pool.trusted = True
        finally:
            pool.close()
        self._anchor.write_mark(0, bytes(8))
        return given_up

    def close(self) -> None:
        self._anchor.close()
