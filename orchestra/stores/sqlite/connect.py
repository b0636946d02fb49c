"""How a connection to the database is made, and how one waits for other processes."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import apsw
import attrs

from orchestra import limits

Synchronous = Literal["full", "normal"]

PAGE_BYTES: Final = 4096
FRAME_BYTES: Final = PAGE_BYTES + 24
_CHANCE: Final = random.Random()  # of its own, so that a seed set elsewhere is not used up

Inspect = Callable[[apsw.Connection], None]
"""Looks at a file before anything is asked of it, and raises when it is not one of ours."""


@attrs.frozen(kw_only=True)
class Settings:
    """How to open the database."""

    path: str  # without symbolic links: SQLite puts its companions beside the true file, and so do we
    place: str  # how a person finds it
    synchronous: Synchronous = "full"
    mmap_bytes: int = 0
    vfs: str | None = None
    fresh: bool = False  # there is no file yet
    immutable: bool = False  # nobody can write it: a read-only filesystem without a WAL

    def beside(self, suffix: str) -> str:
        """A file that belongs to the database. As text: making paths takes a tenth of the time of opening."""
        return self.path + suffix

    def size(self, suffix: str = "") -> int:
        """How long the database, or a file beside it, is; 0 when there is none."""
        try:
            return os.stat(self.path + suffix).st_size
        except OSError:
            return 0


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
        time.sleep(min(self._pause * _CHANCE.uniform(0.5, 1.5), self._end - now))
        self._pause = min(self._pause * 1.5, 0.02)
        return True


def busy_handler() -> Callable[[int], bool]:
    """For SQLite's own waiting: its built-in handler sleeps up to 100 ms at a time."""
    patience = Patience()

    def handle(calls: int) -> bool:
        nonlocal patience
        if calls == 0:
            patience = Patience()
        return patience.wait()

    return handle


def connect(
    settings: Settings, *, writing: bool, inspect: Inspect | None = None, tuned: bool = True
) -> apsw.Connection:
    """A connection as this store wants it, which leaves the WAL as it is when closed.

    One that is asked a single question need not be `tuned`. No file is made unless the settings say so.
    """
    flags = apsw.SQLITE_OPEN_READWRITE if writing else apsw.SQLITE_OPEN_READONLY
    flags |= apsw.SQLITE_OPEN_CREATE if settings.fresh else 0
    name = settings.path
    if settings.immutable:
        flags |= apsw.SQLITE_OPEN_URI
        name = f"{Path(name).absolute().as_uri()}?immutable=1"
    connection = apsw.Connection(name, flags=flags, vfs=settings.vfs)
    try:
        _guard(connection)
        if inspect is not None:
            inspect(connection)
        if tuned:
            _tune(connection, settings, writing=writing)
    except BaseException:
        connection.close()
        raise
    return connection


def _guard(connection: apsw.Connection) -> None:
    """What must hold before the file is touched."""
    connection.set_busy_handler(busy_handler())
    # Closing must not touch a WAL that turns out to be damaged: it is evidence. `Pool.close` checkpoints.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    # A statement keeps its plan. Else one with a range is planned anew for every value bound to it: 30 µs.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.wal_autocheckpoint(0)


def _tune(connection: apsw.Connection, settings: Settings, *, writing: bool) -> None:
    """All at once: each call of its own would take as long as all of them."""
    script = "PRAGMA cell_size_check=1;PRAGMA temp_store=memory"
    if settings.mmap_bytes:
        script += f";PRAGMA mmap_size={settings.mmap_bytes}"
    if writing:
        script += f";PRAGMA synchronous={settings.synchronous};PRAGMA fullfsync=1"
    connection.execute(script).fetchall()
