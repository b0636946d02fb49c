"""Connections to one database: a writer under a lock, readers in a pool, and waiting for other processes.

All work goes through `read` and `write`. They wait while other processes are in the way, up to
`limits.BUSY_SECONDS`, and let out our own errors only. Readers come from a pool rather than one per thread:
threads come and go, and a pool has no connections of dead threads to look for.

After an input/output error the writer is closed. The next write opens it anew and moves the whole WAL into
the database first, so that nothing is written on top of pages whose fate is not known.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Final, TypeVar

import apsw

from orchestra import limits
from orchestra.errors import OrchestraError, StoreBusy, StoreClosed, StoreFailed, StoreReadOnly
from orchestra.stores.sqlite.connect import Inspect, Patience, Settings, busy_handler, connect
from orchestra.stores.sqlite.errors import FOREIGN, Kind, kind_of, translate
from orchestra.stores.sqlite.statements import SQL

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]
Needed = Callable[[], int] | None
"""Works out how many bytes a full disk lacks."""

READERS_KEPT: Final = 16


class Pool:
    """The connections of one store object."""

    def __init__(self, settings: Settings, *, read_only: str | None) -> None:
        self.settings = settings
        self.place = settings.place
        self.read_only = read_only  # why nothing can be written, or None
        self.on_wal: Callable[[int], None] = lambda pages: None
        self.frames = 0  # in the WAL after the last write
        self.trusted = False  # set when opening found nothing wrong; only then the WAL is touched at close
        self._lock = threading.RLock()
        self._writer: apsw.Connection | None = None
        self._hurried = False  # whether the writer is one that does not wait for other processes
        self._idle: deque[apsw.Connection] = deque()
        self._spare: apsw.Connection | None = None  # among the idle ones or in use: one that can write
        self._suspect = False  # an input/output error happened since the writer was opened
        self._closed = False
        self._pid = os.getpid()

    def require_open(self) -> None:
        """Raise `StoreClosed` unless this process may use the store."""
        if self._closed:
            raise StoreClosed(place=self.place)
        if self._pid != os.getpid():
            # SQLite's locks do not survive a fork; using the connection here could damage the file.
            raise StoreClosed(place=f"{self.place}, opened by process {self._pid} before a fork,")

    def open_first(self, work: Work[T], inspect: Inspect) -> T:
        """Open a connection that can write and do `work` with it, after `inspect` has seen the file.

        It is kept for whoever needs one next, a reader or the writer: making one takes longer than a read.
        """

        def keep(connection: apsw.Connection) -> T:
            result = work(connection)
            self._spare = connection
            return result

        return self._use(lambda: self._connect(writing=True, inspect=inspect), keep)

    def read(self, work: Work[T], *, together: bool = False) -> T:
        """Do `work` with a reader; with `together` all its statements see one moment."""
        if together:
            return self._use(self._take, lambda connection: _transaction(connection, work, "begin_read"))
        return self._use(self._take, work)

    def _use(self, take: Callable[[], apsw.Connection], work: Work[T]) -> T:
        """Do `work` with a connection and give it to the pool, as often as others are in the way."""
        patience = Patience()
        while True:
            self.require_open()
            connection = take()
            try:
                result = work(connection)
            except FOREIGN as error:
                kind, failure = self._failure(error, connection)
                _close(connection)
                if kind is not Kind.BUSY or not patience.wait():
                    raise failure from error
            except BaseException:
                _close(connection)
                raise
            else:
                self.give(connection)
                return result

    def _take(self) -> apsw.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect(writing=False)

    def give(self, connection: apsw.Connection) -> None:
        """Keep a connection for the next reader."""
        if self._closed or len(self._idle) >= READERS_KEPT:
            _close(connection)
        else:
            self._idle.append(connection)

    def _connect(self, *, writing: bool, inspect: Inspect | None = None) -> apsw.Connection:
        patience = Patience()
        while True:
            try:
                return connect(self.settings, writing=writing, inspect=inspect)
            except FOREIGN as error:
                kind, failure = self._failure(error, None)
                if kind is not Kind.BUSY or not patience.wait():
                    raise failure from error

    def write(self, work: Work[T], *, needed: Needed = None) -> T:
        """Do `work` in one write transaction."""
        return self.use_writer(
            lambda connection: _transaction(connection, work, "begin_write"), needed=needed
        )

    def use_writer(self, work: Work[T], *, needed: Needed = None, patient: bool = True) -> T:
        """Do `work` with the writer while no other write of this store goes on.

        Raises `StoreBusy` at once where somebody is in the way and the caller is not `patient`.
        """
        if not self._lock.acquire(blocking=patient):
            raise StoreBusy(place=self.place, seconds=0)
        try:
            if patient is self._hurried:  # not set each time: nearly all calls are of one sort or the other
                self._hurried = not patient
                if self._writer is not None:
                    self._writer.set_busy_handler(busy_handler() if patient else None)
            patience, squeezed = Patience(), False
            while True:
                connection = self._open_writer()
                try:
                    return work(connection)
                except FOREIGN as error:
                    kind, failure = self._failure(error, connection, needed)
                    self._abandon(connection, kind)
                    if kind is Kind.FULL and not squeezed:
                        # Once: moving the log into the database may make the room that is missing.
                        squeezed = True
                        if self.squeeze():
                            continue
                    if kind is not Kind.BUSY or not patient or not patience.wait():
                        raise failure from error
                except BaseException:
                    self._abandon(connection, Kind.BUSY)
                    raise
        finally:
            self._lock.release()

    def _abandon(self, connection: apsw.Connection, kind: Kind) -> None:
        """Undo the open transaction. After an input/output error the connection is not used again."""
        try:
            if connection.in_transaction:
                connection.execute(SQL["rollback"])
        except FOREIGN:
            kind = Kind.FAILED
        if kind is Kind.FAILED:
            self._suspect = True
            self._drop_writer()

    def _open_writer(self) -> apsw.Connection:
        if self._writer is not None and self._pid == os.getpid():
            return self._writer
        self.require_open()
        if self.read_only is not None:
            raise StoreReadOnly(place=self.place, reason=self.read_only)
        spare = None if self._suspect else self._take_spare()
        self._writer = spare or self._connect(writing=True)
        self._writer.set_wal_hook(self._after_commit)
        if self._hurried:
            self._writer.set_busy_handler(None)
        if self._suspect:
            self._settle(self._writer)
        return self._writer

    def _take_spare(self) -> apsw.Connection | None:
        """The connection that opening left, unless a reader has it just now. The caller holds the lock."""
        spare, self._spare = self._spare, None
        if spare is not None and spare in self._idle:
            self._idle.remove(spare)
            return spare
        return None

    def _settle(self, connection: apsw.Connection) -> None:
        """Move the whole WAL into the database before anything is written after an input/output error."""
        try:
            frames, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
            if moved < frames:
                raise StoreFailed(place=self.place, reason="the log could not be moved into the database yet")
            self._suspect = False
        except FOREIGN as error:
            failure = self._failure(error, connection)[1]
            self._drop_writer()
            raise failure from error
        except StoreFailed:
            self._drop_writer()
            raise

    def _after_commit(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self.frames = pages
        self.on_wal(pages)
        return apsw.SQLITE_OK

    def _drop_writer(self) -> None:
        """Close the writing connection; the next write opens another."""
        writer, self._writer = self._writer, None
        if writer is not None:
            _close(writer)

    def pause(self) -> AbstractContextManager[bool]:
        """Keep every write of this store waiting meanwhile."""
        return self._lock

    def squeeze(self) -> bool:
        """Empty the WAL and give its space back. True when that was possible at once."""
        with self._lock, suppress(*FOREIGN, OrchestraError):
            connection = self._open_writer()
            connection.set_busy_handler(None)
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                connection.set_busy_handler(None if self._hurried else busy_handler())
            return True
        return False

    def close(self) -> None:
        """Close every connection; the WAL is moved into the database if nobody else needs it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._pid != os.getpid():
                # Closing here would work on the parent's file with locks that this process does not hold.
                _LEAKED.extend(filter(None, (self._writer, *self._idle)))
                return
            writer = self._writer or (self._take_spare() if self.trusted else None)
            while self._idle:
                _close(self._idle.pop())
            self._writer = None
            if writer is not None and self.trusted and not self._suspect:
                with suppress(*FOREIGN):  # whatever is not moved now is still in the WAL
                    # The last one out removes the WAL; where others are at work, it is only emptied or left.
                    writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                    writer.set_busy_handler(None)
                    writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            if writer is not None:
                _close(writer)

    def _failure(
        self, error: Exception, connection: apsw.Connection | None, needed: Needed = None
    ) -> tuple[Kind, OrchestraError]:
        """What an error of SQLite means, and what to raise for it."""
        system_errno = _errno(connection)
        kind = kind_of(error, system_errno=system_errno, place=self.place)
        size, seconds = needed() if needed and kind is Kind.FULL else 0, limits.BUSY_SECONDS
        return kind, translate(error, self.place, system_errno=system_errno, seconds=seconds, needed=size)


_LEAKED: Final[list[apsw.Connection]] = []
"""Connections of a parent process, kept from being closed in this one."""


def _transaction(connection: apsw.Connection, work: Work[T], begin: str) -> T:
    connection.execute(SQL[begin])
    result = work(connection)
    connection.execute(SQL["commit"])
    return result


def _errno(connection: apsw.Connection | None) -> int:
    try:
        return connection.system_errno if connection is not None else 0
    except apsw.Error:
        return 0


def _close(connection: apsw.Connection) -> None:
    try:
        connection.close()
    except FOREIGN:
        connection.close(force=True)
