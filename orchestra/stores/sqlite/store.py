"""The SQLite store: one file, several processes of one machine, every commit synced.

`opener` looks at the place, `pool` reads and writes, `owners` holds claims, `append` writes commits, and
`queries`, `removal`, `check` and `loss_detector` do what their names say.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from orchestra import errors, limits
from orchestra.errors import BadSetting, OrchestraError
from orchestra.ids import Digest, Fence, Instant, RunId
from orchestra.ports import store as port
from orchestra.ports.store import Annotation, Claim, Command, Commit, Row, RowQuery, RunRow, spare_nothing
from orchestra.stores.sqlite import columns as col
from orchestra.stores.sqlite import opener, queries
from orchestra.stores.sqlite.append import Appender, put_objects
from orchestra.stores.sqlite.check import check
from orchestra.stores.sqlite.checkpointer import Checkpointer
from orchestra.stores.sqlite.connect import Settings, Synchronous
from orchestra.stores.sqlite.loss_detector import LossDetector
from orchestra.stores.sqlite.owners import Owners
from orchestra.stores.sqlite.pool import Needed, Pool, Work
from orchestra.stores.sqlite.queries import COMMANDS, counter, newest_no, run_columns
from orchestra.stores.sqlite.removal import Ballast, Remover
from orchestra.stores.sqlite.statements import SQL, Columns, ask

T = TypeVar("T")

_OBJECTS_PAGE: Final = 1000
_OPTIONS: Final[dict[str, tuple[re.Pattern[str], str]]] = {
    "synchronous": (re.compile("full|normal"), "it is full or normal"),
    "mode": (re.compile("ro|rw"), "it is ro (read only) or rw"),
    "mmap": (re.compile(r"(?i)\s*(\d{1,12})\s*(|B|KB|MB|GB)\s*"), "it is a size such as 64MB"),
}
_DEFAULTS: Final = {"synchronous": "full", "mode": "rw", "mmap": "0"}
_UNITS: Final = {"": 1, "B": 1, "KB": limits.KB, "MB": limits.MB, "GB": 1024 * limits.MB}
_ROOM_FOR_PAGES: Final = 8 * 4096  # what a commit writes beside its own bytes, for a message


class SqliteStore(port.Store):
    """Rows and objects in one SQLite database."""

    properties = port.Properties(scheme="sqlite", durable=True, many_processes=True)

    def __init__(
        self,
        path: Path,
        *,
        create: bool,
        synchronous: Synchronous = "full",
        mmap_bytes: int = 0,
        read_only: bool = False,
        lossy: bool = True,
        vfs: str | None = None,
    ) -> None:
        """Open the store; one that lost commits is refused, unless it is read only and `lossy` allows it."""
        real, place = os.path.realpath(path), str(path)
        settings = Settings(path=real, place=place, synchronous=synchronous, mmap_bytes=mmap_bytes, vfs=vfs)
        size = opener.find_or_make(settings, create=create and not read_only)
        reason = "it was opened for reading only" if read_only else opener.write_obstacle(settings)
        reader = None
        if reason is not None:
            settings, reader = opener.open_for_reading(settings, size)
        self.place = settings.place
        self._pool = Pool(settings, read_only=reason)
        if reader is not None:
            self._pool.give(reader)
        self._losses = LossDetector(self._pool, synced=synchronous == "full")
        self._owners = Owners(settings.beside("-lock"))
        self._appender = Appender(self._owners.holder)
        self._ballast = Ballast(settings.beside("-ballast"))
        self._remover = Remover(self._pool, self._ballast)
        self._checkpointer = Checkpointer(self._pool)
        self._pool.on_wal = self._checkpointer.watch
        try:
            self._begin(size, lossy, version_known=reader is not None)
        except BaseException:
            self._pool.close()
            raise

    def _begin(self, size: int, lossy: bool, *, version_known: bool) -> None:
        pool = self._pool
        if pool.read_only is not None:
            pool.read(lambda connection: self._look_in(connection, lossy, version_known), together=True)
            return
        pool.open_first(self._upgrade, partial(opener.check_header, pool.settings, size))
        self._ballast.take()
        pool.trusted = True

    def _look_in(self, connection: apsw.Connection, lossy: bool, version_known: bool) -> None:
        opener.check_tables(connection, self.place, version_known=version_known)
        if not lossy:
            self._losses.refuse_loss(connection)

    def _upgrade(self, connection: apsw.Connection) -> None:
        opener.upgrade(connection, self.place)
        self._losses.refuse_loss(connection)

    def _write(self, work: Work[T], *, needed: Needed = None) -> T:
        """A write without a commit number."""
        result = self._pool.write(work, needed=needed)
        self._losses.mark()
        return result

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        self._lock(run)
        try:
            claim = self._begin_run(run, owner) if new else self._take_over(run, owner)
        except BaseException:
            self._owners.free(run)
            raise
        self._owners.keep(claim)
        return claim

    def _lock(self, run: RunId) -> None:
        """Take the kernel lock of a run, or name who has it."""
        if self._pool.read_only is not None:
            raise errors.StoreReadOnly(place=self.place, reason=self._pool.read_only)
        self._owners.take(run, lambda: self._owner(run))

    def _owner(self, run: RunId) -> str:
        found = self._columns(run)
        return found[11] if found and found[11] else "another process"

    def _begin_run(self, run: RunId, owner: str) -> Claim:
        # Asked again under the lock: its last owner may have made the run meanwhile.
        if self._columns(run) is not None:
            raise errors.RunExists(run=run)
        return Claim(run=run, fence=Fence(1), owner=owner)

    def _take_over(self, run: RunId, owner: str) -> Claim:
        def work(connection: apsw.Connection) -> int:
            found = self._require(connection, run)
            fence = int(found[10]) + 1
            crc = col.run_crc((*found[:10], fence, owner))
            connection.execute(SQL["move_fence"], (found[0], fence, owner, crc))
            return fence

        return Claim(run=run, fence=Fence(self._write(work)), owner=owner)

    def _require(self, connection: apsw.Connection, run: RunId) -> Columns:
        found = run_columns(connection, run)
        if found is None:
            raise errors.UnknownRun(run=run, store=self.place, hint="")
        return found

    def _columns(self, run: RunId) -> Columns | None:
        return self._pool.read(lambda connection: run_columns(connection, run))

    def release(self, claim: Claim) -> None:
        self._pool.require_open()
        # By identity: a claim on a run that is not there yet equals the next one of the same owner.
        if self._owners.holder(claim.run) is claim:
            self._owners.free(claim.run)

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        answers = self._pool.use_writer(
            lambda connection: self._appender.append(connection, commits),
            needed=lambda: _size(commits),
            patient=patient,
        )
        made = [answer for answer in answers if isinstance(answer, int)]
        if made:
            self._losses.note(max(made))
        return answers

    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        held = list(objects)
        self._write(
            lambda connection: put_objects(connection, held),
            needed=lambda: sum(len(data) for _, data in held) + _ROOM_FOR_PAGES,
        )

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        def work(connection: apsw.Connection) -> dict[Digest, bytes]:
            found = ((digest, ask(connection, SQL["object"], (digest,))) for digest in digests)
            return {digest: col.object_of(columns[0]) for digest, columns in found if columns}

        return self._pool.read(work)

    def objects(self) -> Iterator[port.ObjectInfo]:
        self._pool.require_open()
        return self._objects()

    def _objects(self) -> Iterator[port.ObjectInfo]:
        # What is written while this goes on is not followed, or it might never end.
        last = self._ask("newest_object")[0][0]
        after = 0
        while page := self._ask("objects_after", (after, last, _OBJECTS_PAGE)):
            yield from map(col.info_of, page)
            after = page[-1][0]

    def _ask(self, name: str, bindings: tuple[Any, ...] = ()) -> list[Columns]:
        return self._pool.read(lambda connection: ask(connection, SQL[name], bindings))

    def run(self, run: RunId) -> RunRow | None:
        found = self._columns(run)
        return None if found is None else col.run_of(found, owned=self._owners.is_owned(run))

    def runs(self, query: port.RunQuery) -> list[RunRow]:
        return self._pool.read(lambda connection: queries.list_runs(connection, query, self._owners.is_owned))

    def rows(self, query: RowQuery) -> list[Row]:
        if queries.asks_for_head(query):
            return self._pool.read(lambda connection: queries.head_of_run(connection, query.run))
        return self._pool.read(lambda connection: queries.list_rows(connection, query), together=True)

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        return self._pool.read(
            lambda connection: queries.find_rows(connection, low, high, limit), together=True
        )

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        def work(connection: apsw.Connection) -> int:
            run_no, id = self._require(connection, run)[0], counter(connection, COMMANDS) + 1
            connection.execute(SQL["set_counter"], (COMMANDS, id, col.fact_crc(COMMANDS, id)))
            command = (id, run_no, at, body)
            connection.execute(SQL["insert_command"], (*command, col.command_crc(*command)))
            return id

        return self._write(work)

    def commands(self, run: RunId) -> list[Command]:
        return self._list(run, "commands", col.command_of)

    def withdraw(self, run: RunId, command: int) -> bool:
        def work(connection: apsw.Connection) -> bool:
            found = run_columns(connection, run)
            if found is not None:
                connection.execute(SQL["consume_command"], (command, found[0]))
            return found is not None and connection.changes() > 0

        return self._write(work)

    def annotate(self, annotation: Annotation) -> None:
        run, seq, body = annotation.run, annotation.seq, annotation.body

        def work(connection: apsw.Connection) -> None:
            found = run_columns(connection, run)
            if found is None or not ask(connection, SQL["row"], (found[0], seq)):
                raise errors.UnknownSnapshot(run=run, reference=seq, reason="there is no such snapshot")
            key = (found[0], seq, annotation.kind)
            if body:
                connection.execute(SQL["set_annotation"], (*key, body, col.annotation_crc(*key, body)))
            else:
                connection.execute(SQL["delete_annotation"], key)

        self._write(work)

    def annotations(self, run: RunId) -> list[Annotation]:
        return self._list(run, "annotations", col.annotation_of)

    def _list(self, run: RunId, statement: str, make: Callable[[Columns, RunId], T]) -> list[T]:
        """What a statement finds of a run, in its order; nothing when there is no run."""

        def work(connection: apsw.Connection) -> list[T]:
            found = run_columns(connection, run)
            return [make(each, run) for each in ask(connection, SQL[statement], found[:1])] if found else []

        return self._pool.read(work, together=True)

    def prune(self, run: RunId, seqs: Collection[int], *, spared: port.SparedRows = spare_nothing) -> int:
        removed = self._remover.prune(run, seqs, spared)
        self._losses.mark()
        return removed

    def delete(self, run: RunId, *, spared: port.SparedRows = spare_nothing) -> bool:
        self._lock(run)
        try:
            deleted = self._remover.delete(run, spared)
        finally:
            self._owners.free(run)
        self._losses.mark()
        return deleted

    def sweep(
        self, dead: Collection[Digest], *, since: int, older_than: Instant, spared: port.SparedObjects
    ) -> int:
        removed = self._remover.sweep(dead, since, older_than, spared)
        self._losses.mark()
        return removed

    def last_no(self) -> int:
        return self._pool.read(newest_no, together=True)

    def stats(self) -> port.StoreStats:
        names = ("runs", "rows", "pruned", "objects", "object_bytes", "row_bytes")
        counts = dict(zip(names, self._ask("stats")[0], strict=True))
        return port.StoreStats(**counts, file_bytes=sum(map(self._pool.settings.size, ("", "-wal"))))

    def check(self) -> Iterator[port.StoreProblem]:
        self._pool.require_open()
        yield from self._losses.problems()
        yield from check(self._pool)

    def compact(self) -> None:
        self._pool.squeeze()
        self._pool.use_writer(lambda connection: ask(connection, SQL["vacuum"]))
        self._pool.squeeze()

    def accept_loss(self) -> int:
        """Take the store as it is after commits were lost. Returns how many commit numbers are given up.

        A store that lost commits opens for reading only, so this works on such a store too.
        """
        return self._losses.accept()

    def meta(self, key: str) -> bytes | None:
        found = self._ask("meta", (key,))
        return bytes(col.fact_of(key, found[0])) if found else None

    def set_meta(self, key: str, value: bytes) -> None:
        held = bytes(value)
        self._write(lambda connection: ask(connection, SQL["set_meta"], (key, held, col.fact_crc(key, held))))

    def close(self) -> None:
        self._checkpointer.close()
        self._pool.close()
        self._owners.close()
        self._losses.close()


def _size(commits: Sequence[Commit]) -> int:
    rows = sum(len(commit.row.header) + len(commit.row.patch or b"") + _ROOM_FOR_PAGES for commit in commits)
    return rows + sum(len(data) for commit in commits for _, data in commit.objects)


def open_sqlite(
    url_path: str, options: Mapping[str, str], create: bool, *, read_only: bool = False
) -> SqliteStore:
    """The store of a URL such as `sqlite:outputs/orchestra.db?synchronous=normal&mmap=64MB`.

    Raises `BadSetting` for options it does not know. With `mode=ro` a store that lost commits is opened all
    the same, to be looked at.
    """
    chosen = {name: _read_option(name, value) for name, value in {**_DEFAULTS, **options}.items()}
    if not url_path:
        raise BadSetting(setting="sqlite path", value=url_path, reason="it names no file")
    looking = chosen["mode"][0] == "ro"
    return SqliteStore(
        Path(url_path),
        create=create,
        synchronous="full" if chosen["synchronous"][0] == "full" else "normal",
        mmap_bytes=int(chosen["mmap"][1]) * _UNITS[chosen["mmap"][2].upper()],
        read_only=read_only or looking,
        lossy=looking,
    )


def _read_option(name: str, value: str) -> re.Match[str]:
    pattern, reason = _OPTIONS.get(name, (None, "known options are synchronous, mmap and mode"))
    found = pattern.fullmatch(value) if pattern else None
    if found is None:
        raise BadSetting(setting=f"sqlite {name}", value=value, reason=reason)
    return found
