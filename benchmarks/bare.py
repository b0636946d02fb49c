"""The bare synced commit: the least that any durable store on this machine must take for one row.

One row of 1 KB, inserted in a transaction of its own, in SQLite's write-ahead mode with every commit synced.
Nothing is encoded, hashed, checked or handed to another thread.

Beside it the bare file: what telemetry makes for a run, a file in a folder in a folder. A filesystem may not
use the place of removed files again for a while (ext4 does not for half a minute), and looks further for
every new one until then.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Final

import apsw

ROW_BYTES: Final = 1024
FILE_BYTES: Final = 24 * 1024
BLOCK: Final = 10
"""How many saves are followed by as many bare commits, so that both meet the same disk."""


class Bare:
    """A database of its own beside the store being measured."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.execute("pragma journal_mode=wal; pragma synchronous=full")
        self._connection.execute("create table rows (id integer primary key, body blob not null)")
        self._body = bytes(range(256)) * (ROW_BYTES // 256)
        self.seconds: list[float] = []

    def commit(self, times: int) -> None:
        """So many commits, each timed."""
        for _ in range(times):
            begun = time.perf_counter()
            self._connection.execute("insert into rows (body) values (?)", (self._body,))
            self.seconds.append(time.perf_counter() - begun)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def bare_file(folder: Path, times: int = 100) -> float:
    """The mean time to make a file in a folder in a folder, now; `folder` is made, and must not be there."""
    folder.mkdir()
    begun = time.perf_counter()
    for number in range(times):
        made = folder / str(number) / "inside"
        made.parent.mkdir()
        made.mkdir()
        (made / "file").write_bytes(bytes(FILE_BYTES))
    return (time.perf_counter() - begun) / times


def bare_commit(path: Path, times: int = 50) -> float:
    """The median of some bare commits now: what the disk is like at this moment."""
    bare = Bare(path)
    bare.commit(times)
    bare.close()
    return statistics.median(bare.seconds)
