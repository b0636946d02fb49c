"""Moves the WAL into the database, in a thread of its own so that no commit waits for it.

SQLite begins a WAL anew only when all of it was moved. A writer that never rests would always be a few frames
ahead, the WAL would grow without end, and every commit would pay for a file that grows (twice the time on
ext4). So the bulk is moved while commits go on, and then the few frames that came meanwhile while they wait:
a millisecond in several hundred commits.

For the same reason the WAL is made as long as it will get as soon as a store is really written to: zeros
behind its last frame mean nothing to SQLite, and every commit after that only overwrites.
"""

import os
import threading
from contextlib import closing, suppress
from typing import Final

import apsw

from orchestra import limits
from orchestra.errors import OrchestraError
from orchestra.stores.sqlite.connect import FRAME_BYTES, connect
from orchestra.stores.sqlite.pool import Pool

_EARNEST_FRAMES: Final = 24  # a few commits: a pin or a note does not make a WAL long
_PIECE_BYTES: Final = limits.MB
_ROOMY: Final = 16


class Checkpointer:
    """Watches how large the WAL is after each commit and moves it when it is too large."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._due = limits.WAL_CHECKPOINT_BYTES // FRAME_BYTES
        self._step = self._due
        self._pages = 0
        self._long = pool.settings.vfs is not None  # was the WAL made long? Another VFS has its own files
        self._wake = threading.Event()
        self._stop = False
        self._thread: threading.Thread | None = None

    def watch(self, pages: int) -> None:
        """Called after each commit with the pages in the WAL. It must be quick."""
        if pages < self._pages:
            self._due = self._step  # the WAL began anew
        self._pages = pages
        if pages >= self._due:
            # Not again before it grew by as much: a reader may keep the WAL from being used anew for long.
            self._due = pages + self._step
            self._call()
        elif not self._long and pages >= _EARNEST_FRAMES:
            self._call()

    def _call(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="orchestra-wal", daemon=True)
            self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stop:
                return
            if self._long:
                self._move()
            else:
                self._long = True
                self._lengthen()

    def _connect(self) -> apsw.Connection:
        connection = connect(self._pool.settings, writing=True)
        connection.set_busy_handler(None)
        return connection

    def _move(self) -> None:
        # Nothing is lost by not moving: somebody else may be at it, and the next write says what is wrong.
        with suppress(apsw.Error, OrchestraError), closing(self._connect()) as connection:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            with self._pool.pause():
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)

    def _lengthen(self) -> None:
        """Write zeros behind the WAL's end, a piece at a time, so that no commit waits for all of them."""
        room = os.statvfs(os.path.dirname(self._pool.settings.path))
        if room.f_bavail * room.f_frsize < _ROOMY * limits.WAL_CHECKPOINT_BYTES:
            return
        # Where it fails commits are slower, and that is all.
        with suppress(apsw.Error, OrchestraError, OSError), closing(self._connect()) as connection:
            while not self._stop and self._add_piece(connection):
                pass

    def _add_piece(self, connection: apsw.Connection) -> bool:
        """One piece more, while no process can append to the WAL; False when it is long enough."""
        with self._pool.pause():
            connection.execute("BEGIN IMMEDIATE")
            try:
                with open(self._pool.settings.beside("-wal"), "r+b") as file:
                    size = file.seek(0, os.SEEK_END)
                    if size < FRAME_BYTES or size >= limits.WAL_CHECKPOINT_BYTES:
                        return False  # long enough; or emptied meanwhile: zeros without a header mean damage
                    file.write(bytes(_PIECE_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            finally:
                connection.execute("ROLLBACK")
        return True

    def close(self) -> None:
        self._stop = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
