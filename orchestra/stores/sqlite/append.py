"""Appends rows: checks each commit and writes it, inside one write transaction.

A commit is refused before anything of it is written, so that there is nothing to undo and the others of its
batch go on.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final
from zlib import crc32

import apsw

from orchestra.errors import DamageError, OrchestraError
from orchestra.ids import Digest, RunId
from orchestra.ports.store import Claim, Commit, Row
from orchestra.stores.commit_rules import refuse_content, refuse_first, refuse_next
from orchestra.stores.sqlite.columns import body_crc, join_list, object_crc, object_fits, row_crc, run_crc
from orchestra.stores.sqlite.queries import nearest_kept, newest_no, newest_row_no, run_columns
from orchestra.stores.sqlite.statements import SQL, Columns, ask

_APPEND: Final = SQL["append_row"]
_MOVE_HEAD: Final = SQL["move_head"]
_BEGIN: Final = SQL["begin_write"]
_COMMIT: Final = SQL["commit"]
_RUNS_REMEMBERED: Final = 4096

Holder = Callable[[RunId], Claim | None]
"""Tells which claim this store holds on a run."""


class Appender:
    """Appends rows, and remembers what it left behind.

    Between two commits of one process the database rarely changes. SQLite tells within the write transaction
    whether it did; if not, heads and numbers are as this object left them and need not be read again.
    """

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._forget()

    def _forget(self) -> None:
        self._left: tuple[apsw.Connection, int] | None = None  # the connection and the version it left
        self._no = 0
        self._runs: dict[str, Columns] = {}

    def append(self, connection: apsw.Connection, commits: Sequence[Commit]) -> list[int | OrchestraError]:
        """One durable step; the answer of each commit is its number or its error."""
        connection.execute(_BEGIN)
        if self._left != (connection, connection.data_version()) or len(self._runs) > _RUNS_REMEMBERED:
            self._forget()
            self._no = newest_no(connection)
        self._left = None  # until all of this is committed
        answers = [self._answer(connection, commit) for commit in commits]
        connection.execute(_COMMIT)
        self._left = (connection, connection.data_version())
        return answers

    def _answer(self, connection: apsw.Connection, commit: Commit) -> int | OrchestraError:
        row = commit.row
        try:
            run = self._runs.get(row.run) or run_columns(connection, row.run)
            if run is not None and run[8] == row.digest:
                return newest_row_no(connection, run)
            refused = refuse_first(commit) if run is None else refuse_next(commit, run[10], run[8], run[7])
            if refused is None and (commit.whole is not None or commit.requires or commit.consumed):
                refused = refuse_content(
                    commit,
                    partial(nearest_kept, connection),
                    lambda digest: bool(ask(connection, SQL["object_facts"], (digest,))),
                    lambda id: run is not None and bool(ask(connection, SQL["command"], (id, run[0]))),
                )
            return refused or self._write(connection, commit, run)
        except DamageError as error:
            return error

    def _write(self, connection: apsw.Connection, commit: Commit, run: Columns | None) -> int:
        row, no = commit.row, self._no + 1
        if commit.objects:
            put_objects(connection, commit.objects)
        run = _move_head(connection, run, row) if run else _insert_run(connection, commit, self._holder)
        header, patch = row.header, row.patch
        columns = (
            no, run[0], row.seq, row.at, row.status, row.phase, join_list(row.triggers),
            join_list(row.agents), row.marked, row.sealed_at, row.size, patch is None,
            row.digest, row.parent, row.seal,
        )  # fmt: skip
        body = body_crc(header, patch)
        checked = (row_crc(columns, body), body, header, patch)
        connection.execute(_APPEND, columns + checked)
        for id in commit.consumed:
            connection.execute(SQL["consume_command"], (id, run[0]))
        self._no, self._runs[row.run] = no, run
        return no


def _move_head(connection: apsw.Connection, run: Columns, row: Row) -> Columns:
    head = (row.status, row.phase, row.seq, row.digest, row.at)
    columns = run[:5] + head + run[10:12]
    connection.execute(_MOVE_HEAD, (run[0], *head, run_crc(columns)))
    return columns


def _insert_run(connection: apsw.Connection, commit: Commit, holder: Holder) -> Columns:
    row = commit.row
    claim = holder(row.run)
    run_no = int(ask(connection, SQL["newest_run_no"])[0][0]) + 1
    columns = (
        run_no, row.run, commit.family, commit.workflow, row.at,
        row.status, row.phase, row.seq, row.digest, row.at, 1, claim.owner if claim else None,
    )  # fmt: skip
    connection.execute(SQL["insert_run"], (*columns, run_crc(columns)))
    return columns


def put_objects(connection: apsw.Connection, objects: Iterable[tuple[Digest, bytes]]) -> None:
    """Write objects; those that are there are kept and count as written now."""
    at = time.time_ns() // 1000
    for digest, data in objects:
        found = ask(connection, SQL["object_facts"], (digest,))
        if not found or not _refresh(connection, digest, found[0], at):
            body = crc32(data)
            facts = (digest, at, object_crc(digest, at, len(data), body), body, data)
            connection.execute(SQL["insert_object"], facts)


def _refresh(connection: apsw.Connection, digest: Digest, facts: Columns, at: int) -> bool:
    """Note that an object was written again. A damaged entry makes way for the good bytes at hand."""
    no, old, size, body, crc = facts
    if not object_fits(digest, old, size, body, crc):
        connection.execute(SQL["delete_object"], (no,))
        return False
    connection.execute(SQL["refresh_object"], (no, at, object_crc(digest, at, size, body)))
    return True
