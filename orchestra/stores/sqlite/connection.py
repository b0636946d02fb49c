"""Connections to one database: a writer under a lock, readers in a pool, and waiting for other processes.

All work goes through `read` and `write`. They wait while other processes are in the way, up to
`limits.BUSY_SECONDS`, and let out our own errors only. Readers come from a pool rather than one per thread:
threads come and go, and a pool has no connections of dead threads to look for.

After an input/output error the writer is closed. The next write opens it anew and moves the whole WAL into
the database first, so that nothing is written on top of pages whose fate is not known.
"""

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeVar

import apsw
import attrs

from orchestra import limits
from orchestra.errors import OrchestraError, StoreBusy, StoreClosed, StoreFailed, StoreReadOnly
from orchestra.stores.sqlite.mapping import FOREIGN, Kind, kind_of, translate
from orchestra.stores.sqlite.statements import SQL

T = TypeVar("T")

Synchronous = Literal["full", "normal"]

PAGE_BYTES: Final = 4096
FRAME_BYTES: Final = PAGE_BYTES + 24
READERS_KEPT: Final = 16

_BEGIN: Final = SQL["begin_write"]
_BEGIN_READ: Final = SQL["begin_read"]
_COMMIT: Final = SQL["commit"]
_ROLLBACK: Final = SQL["rollback"]


@attrs.frozen(kw_only=True)
class Settings:
    """How to open the database."""

    path: Path  # without symbolic links: SQLite puts its companions beside the true file, and so do we
    place: str  # how a person finds it
    synchronous: Synchronous = "full"
    mmap_bytes: int = 0
    vfs: str | None = None
    immutable: bool = False  # nobody can write it: a read-only filesystem without a WAL

    def beside(self, suffix: str) -> Path:
        """A file that belongs to the database."""
        return self.path.with_name(self.path.name + suffix)


class Patience:
    """Waits a little longer each time, until the limit is reached."""

    def __init__(self) -> None:
        self._end: float | None = None
        self._pause = 0.0005

    def wait(self) -> bool:
        """Sleep; False when the time is up."""
        now = time.monotonic()
        if self._end is None:
            self._end = now + limits.BUSY_SECONDS
        if now >= self._end:
            return False
        time.sleep(min(self._pause * random.uniform(0.5, 1.5), self._end - now))
        self._pause = min(self._pause * 1.5, 0.02)
        return True


def _busy_handler() -> Callable[[int], bool]:
    """For SQLite's own waiting: its built-in handler sleeps up to 100 ms at a time."""
    patience = Patience()

    def handle(calls: int) -> bool:
        nonlocal patience
        if calls == 0:
            patience = Patience()
        return patience.wait()

    return handle


def connect(settings: Settings, *, writing: bool) -> apsw.Connection:
    """A connection as this store wants it. It never makes a file, and leaves the WAL as it is when closed."""
    flags = apsw.SQLITE_OPEN_READWRITE if writing else apsw.SQLITE_OPEN_READONLY
    name = str(settings.path)
    if settings.immutable:
        flags |= apsw.SQLITE_OPEN_URI
        name = f"{settings.path.absolute().as_uri()}?immutable=1"
    connection = apsw.Connection(name, flags=flags, vfs=settings.vfs)
    try:
        configure(connection, settings)
    except BaseException:
        connection.close()
        raise
    return connection


def configure(connection: apsw.Connection, settings: Settings) -> None:
    """Set what must hold on every connection."""
    connection.set_busy_handler(_busy_handler())
    # Closing must not touch a WAL that turns out to be damaged: it is evidence. `Pool.close` checkpoints.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.wal_autocheckpoint(0)
    for pragma, value in (
        ("synchronous", settings.synchronous),
        ("fullfsync", 1),
        ("cell_size_check", 1),
        ("mmap_size", settings.mmap_bytes),
        ("temp_store", "memory"),
    ):
        connection.pragma(pragma, value)


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
        self._idle: deque[apsw.Connection] = deque()
        self._suspect = False  # an input/output error happened since the writer was opened
        self._closed = False
        self._pid = os.getpid()

    def alive(self) -> None:
        """Raise unless this process may use the store."""
        if self._closed:
            raise StoreClosed(place=self.place)
        if self._pid != os.getpid():
            # SQLite's locks do not survive a fork; using the connection here could damage the file.
            raise StoreClosed(place=f"{self.place}, opened by process {self._pid} before a fork,")

    # Reading.

    def read(self, work: Callable[[apsw.Connection], T], *, together: bool = False) -> T:
        """Do `work` with a reader; with `together` all its statements see one moment."""
        patience = Patience()
        while True:
            self.alive()
            connection = self._take()
            try:
                result = _together(connection, work) if together else work(connection)
            except FOREIGN as error:
                kind, failure = self._failure(error, connection)
                _close(connection)
                if kind is not Kind.BUSY or not patience.wait():
                    raise failure from error
            except BaseException:
                _close(connection)
                raise
            else:
                self._give(connection)
                return result

    def _take(self) -> apsw.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._opened(writing=False)

    def _give(self, connection: apsw.Connection) -> None:
        if self._closed or len(self._idle) >= READERS_KEPT:
            _close(connection)
        else:
            self._idle.append(connection)

    def _opened(self, *, writing: bool) -> apsw.Connection:
        patience = Patience()
        while True:
            try:
                return connect(self.settings, writing=writing)
            except FOREIGN as error:
                kind, failure = self._failure(error, None)
                if kind is not Kind.BUSY or not patience.wait():
                    raise failure from error

    # Writing.

    def write(self, work: Callable[[apsw.Connection], T], *, needed: Callable[[], int] | None = None) -> T:
        """Do `work` in one write transaction; `needed` works out the bytes that a full disk lacks."""
        return self.alone(lambda connection: _transaction(connection, work), needed=needed)

    def alone(
        self,
        work: Callable[[apsw.Connection], T],
        *,
        needed: Callable[[], int] | None = None,
        patient: bool = True,
    ) -> T:
        """Do `work` with the writer while no other write of this store goes on.

        Who is not patient gets `StoreBusy` at once where somebody is in the way.
        """
        if not self._lock.acquire(blocking=patient):
            raise StoreBusy(place=self.place, seconds=0)
        try:
            return self._tried(work, needed, Patience()) if patient else self._hurried(work, needed)
        finally:
            self._lock.release()

    def _hurried(self, work: Callable[[apsw.Connection], T], needed: Callable[[], int] | None) -> T:
        connection = self._writing()
        connection.set_busy_handler(None)
        try:
            return self._tried(work, needed, None)
        finally:
            if self._writer is connection:
                connection.set_busy_handler(_busy_handler())

    def _tried(
        self,
        work: Callable[[apsw.Connection], T],
        needed: Callable[[], int] | None,
        patience: Patience | None,
    ) -> T:
        """Do `work` with the writer, as often as patience allows. The caller holds the lock."""
        squeezed = False
        while True:
            connection = self._writing()
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
                if kind is not Kind.BUSY or patience is None or not patience.wait():
                    raise failure from error
            except BaseException:
                self._abandon(connection, Kind.BUSY)
                raise

    def _abandon(self, connection: apsw.Connection, kind: Kind) -> None:
        """Undo the open transaction. After an input/output error the connection is not used again."""
        try:
            if connection.in_transaction:
                connection.execute(_ROLLBACK)
        except FOREIGN:
            kind = Kind.FAILED
        if kind is Kind.FAILED:
            self._suspect = True
            self._drop_writer()

    def _writing(self) -> apsw.Connection:
        """The writing connection. The caller holds the lock."""
        if self._writer is not None and self._pid == os.getpid():
            return self._writer
        self.alive()
        if self.read_only is not None:
            raise StoreReadOnly(place=self.place, reason=self.read_only)
        self._writer = self._opened(writing=True)
        self._writer.set_wal_hook(self._after_commit)
        if self._suspect:
            self._settle(self._writer)
        return self._writer

    def _settle(self, connection: apsw.Connection) -> None:
        """Move the whole WAL into the database before anything is written after an input/output error."""
        try:
            frames, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
            if moved < frames:
                raise StoreFailed(place=self.place, reason="the log could not be moved into the database yet")
            self._suspect = False
        except FOREIGN as error:
            _, failure = self._failure(error, connection)
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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While no write of this store goes on."""
        with self._lock:
            yield

    def squeeze(self) -> bool:
        """Empty the WAL and give its space back. True when that was possible at once."""
        with self._lock:
            try:
                connection = self._writing()
                connection.set_busy_handler(None)
                try:
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                finally:
                    connection.set_busy_handler(_busy_handler())
            except FOREIGN:
                return False
            except OrchestraError:
                return False
            return True

    # The end.

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
            while self._idle:
                _close(self._idle.pop())
            self._close_writer()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if self.trusted and not self._suspect:
            try:
                # The last one out removes the WAL; where others are at work, it is only emptied or left.
                writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                writer.set_busy_handler(None)
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except FOREIGN:
                pass  # whatever is not moved now is still in the WAL
        _close(writer)

    def _failure(
        self, error: Exception, connection: apsw.Connection | None, needed: Callable[[], int] | None = None
    ) -> tuple[Kind, OrchestraError]:
        """What an error of SQLite means, and what to raise for it."""
        system_errno = _errno(connection)
        kind = kind_of(error, system_errno=system_errno, place=self.place)
        size = needed() if needed is not None and kind is Kind.FULL else 0
        return kind, translate(
            error, self.place, system_errno=system_errno, seconds=limits.BUSY_SECONDS, needed=size
        )


_LEAKED: Final[list[apsw.Connection]] = []
"""Connections of a parent process, kept from being closed in this one."""


def _together(connection: apsw.Connection, work: Callable[[apsw.Connection], T]) -> T:
    connection.execute(_BEGIN_READ)
    result = work(connection)
    connection.execute(_COMMIT)
    return result


def _transaction(connection: apsw.Connection, work: Callable[[apsw.Connection], T]) -> T:
    connection.execute(_BEGIN)
    result = work(connection)
    connection.execute(_COMMIT)
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
