"""Prunes, deletes and sweeps.

Each is done in small steps, so that writers get in between and the log of what is removed stays smaller than
the *ballast*: a file that keeps disk space in reserve, given up when a full disk has no room for the log.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeVar

import apsw

from orchestra import limits
from orchestra.errors import StoreFull, UnknownRun
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import SparedObjects, SparedRows
from orchestra.stores.sqlite.columns import fact_crc, object_fits, pruned_checks, row_of
from orchestra.stores.sqlite.pool import Pool, Work
from orchestra.stores.sqlite.queries import COMMITS, newest_no, rows_of_runs, run_columns
from orchestra.stores.sqlite.statements import SQL, ask

T = TypeVar("T")

STEP_ROWS: Final = 100


class Ballast:
    """The file beside a database that keeps disk space in reserve."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def is_there(self) -> bool:
        return os.path.exists(self.path)

    def take(self) -> None:
        """Allocate the reserve, if it is not there and there is ample room. Never fails."""
        try:
            room = os.statvfs(os.path.dirname(self.path))
            size = min(limits.BALLAST_BYTES, room.f_bavail * room.f_frsize // 4)
            if not self.is_there and size >= limits.BALLAST_BYTES // 8:
                with open(self.path, "xb") as file:
                    os.posix_fallocate(file.fileno(), 0, size)
        except OSError:
            self.drop()

    def drop(self) -> bool:
        """Give the reserve back to the filesystem. True when there was one."""
        try:
            os.unlink(self.path)
        except OSError:
            return False
        return True


class Remover:
    """The removals of one store."""

    def __init__(self, pool: Pool, ballast: Ballast) -> None:
        self._pool = pool
        self._ballast = ballast

    def _step(self, work: Work[T]) -> T:
        """One write that must also work on a full disk."""
        try:
            return self._pool.write(work)
        except StoreFull:
            if not self._ballast.drop():
                raise
        # What is in the log already is moved first: it may take all the room that was just made.
        self._pool.squeeze()
        return self._pool.write(work)

    def _steps(self, works: Iterable[Work[int]]) -> Iterator[int]:
        had_ballast = self._ballast.is_there
        for work in works:
            yield self._step(work)
            if had_ballast and not self._ballast.is_there:
                self._pool.squeeze()
        self._ballast.take()

    def prune(self, run: RunId, seqs: Collection[int], spared: SparedRows) -> int:
        """Remove patches, the newest first; the head keeps its own, and what `spared` names stays."""
        parts = _parts(sorted(set(seqs), reverse=True), STEP_ROWS)
        return sum(self._steps(partial(_prune_rows, run, part, spared) for part in parts))

    def delete(self, run: RunId, spared: SparedRows) -> bool:
        """Remove a run in one step, whole or not at all. Emptied pages are not logged: the step is small."""
        deleted = self._step(lambda connection: _delete(connection, run, self._pool.place, spared))
        self._ballast.take()
        return deleted

    def sweep(self, dead: Collection[Digest], since: int, older_than: Instant, spared: SparedObjects) -> int:
        """Remove objects in steps; each step first looks at the rows that came since the last one."""
        seen, kept, asked = since, set[Digest](), False

        def step(part: list[Digest], connection: apsw.Connection) -> int:
            nonlocal seen, asked
            later = ask(connection, SQL["rows_after"], (seen, -1))
            if later or not asked:
                kept.update(spared(rows_of_runs(connection, later, content=True)))
                asked = True
            seen = max((columns[0] for columns in later), default=seen)
            return sum(_remove(connection, digest, older_than) for digest in part if digest not in kept)

        parts = _parts(list(dead), limits.GC_BATCH_OBJECTS) if dead else [[]]
        return sum(self._steps(partial(step, part) for part in parts))


def _parts(items: Sequence[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while part := list(islice(left, size)):
        yield part


def _prune_rows(run: RunId, seqs: list[int], spared: SparedRows, connection: apsw.Connection) -> int:
    columns = run_columns(connection, run)
    if columns is None:
        return 0
    doomed = sorted(set(seqs).difference(spared()))
    return sum(_prune(connection, run, columns[0], seq) for seq in doomed if 0 <= seq < columns[7])


def _prune(connection: apsw.Connection, run: RunId, run_no: int, seq: int) -> bool:
    found = ask(connection, SQL["row_content"], (run_no, seq))
    if not found or row_of(found[0], run, content=True).pruned:
        return False
    connection.execute(SQL["prune_row"], (found[0][0], *pruned_checks(found[0])))
    return True


def _delete(connection: apsw.Connection, run: RunId, place: str, spared: SparedRows) -> bool:
    columns = run_columns(connection, run)
    if columns is None:
        raise UnknownRun(run=run, store=place, hint="")
    if spared():
        return False
    # The numbers of what is deleted are not given out again.
    newest = newest_no(connection)
    connection.execute(SQL["set_counter"], (COMMITS, newest, fact_crc(COMMITS, newest)))
    for name in ("delete_rows", "delete_commands", "delete_annotations", "delete_run"):
        connection.execute(SQL[name], (columns[0],))
    return True


def _remove(connection: apsw.Connection, digest: Digest, older_than: Instant) -> bool:
    found = ask(connection, SQL["object_facts"], (digest,))
    if not found:
        return False
    no, at, size, body, crc = found[0]
    # An entry that fails its check is kept: its age is not known, and a check shall still find it.
    if not object_fits(digest, at, size, body, crc) or at >= older_than:
        return False
    connection.execute(SQL["delete_object"], (no,))
    return True
