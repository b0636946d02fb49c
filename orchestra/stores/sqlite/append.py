"""Appends rows: checks each commit and writes it, inside one write transaction.

A commit is refused before anything of it is written, so that there is nothing to undo and the others of its
batch go on.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from zlib import crc32

import apsw

from orchestra import errors
from orchestra.errors import DamageError, OrchestraError
from orchestra.ids import Digest, RunId
from orchestra.ports.store import Claim, Commit
from orchestra.stores.commit_rules import refuse_first, refuse_gone, refuse_next
from orchestra.stores.sqlite.columns import (
    body_crc,
    check_run,
    fact_of,
    join_list,
    object_crc,
    object_fits,
    row_crc,
    row_of,
    run_crc,
)
from orchestra.stores.sqlite.statements import SQL, Columns, ask

_RUN: Final = SQL["run"]
_APPEND: Final = SQL["append_row"]
_MOVE_HEAD: Final = SQL["move_head"]
_NEWEST: Final = SQL["newest_no"]
_COUNTER: Final = SQL["counter"]
_BEGIN: Final = SQL["begin_write"]
_COMMIT: Final = SQL["commit"]
_RUNS_REMEMBERED: Final = 4096

Holder = Callable[[RunId], Claim | None]
"""Tells which claim this store holds on a run."""

COMMITS: Final = "commits"
COMMANDS: Final = "commands"


def newest_no(connection: apsw.Connection) -> int:
    """The number of the newest commit, whether or not its row is still there."""
    newest, floor, crc = ask(connection, _NEWEST)[0]
    return int(max(newest or 0, 0 if floor is None else fact_of(COMMITS, (floor, crc))))


def counter(connection: apsw.Connection, name: str) -> int:
    """A number that never goes back; 0 before it was first set."""
    found = ask(connection, _COUNTER, (name,))
    return int(fact_of(name, found[0])) if found else 0


def run_columns(connection: apsw.Connection, run: str) -> Columns | None:
    """The columns of a run, checked; None when it is not there."""
    found = ask(connection, _RUN, (run,))
    return check_run(found[0]) if found else None


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
        try:
            return self._append(connection, commit)
        except DamageError as error:
            return error

    def _append(self, connection: apsw.Connection, commit: Commit) -> int | OrchestraError:
        row = commit.row
        run = self._runs.get(row.run) or run_columns(connection, row.run)
        if run is not None and run[8] == row.digest:
            return _old_number(connection, run)
        if run is None:
            refused = refuse_first(commit)
        else:
            refused = refuse_next(commit, run[1], run[10], run[8], run[7])
        if refused is None and (commit.whole is not None or commit.requires):
            refused = _refuse_whole(connection, commit) or _refuse_missing(connection, commit)
        if refused is None and commit.consumed:
            refused = refuse_gone(
                commit, lambda id: run is not None and bool(ask(connection, SQL["command"], (id, run[0])))
            )
        return refused or self._write(connection, commit, run)

    def _write(self, connection: apsw.Connection, commit: Commit, run: Columns | None) -> int:
        if commit.objects:
            put_objects(connection, commit.objects)
        if run is None:
            run = _insert_run(connection, commit, self._holder)
        else:
            run = _move_head(connection, run, commit)
        no = self._no + 1
        _insert_row(connection, commit, no, run[0])
        for id in commit.consumed:
            connection.execute(SQL["consume_command"], (id, run[0]))
        self._no, self._runs[commit.row.run] = no, run
        return no


# Judging.


def _old_number(connection: apsw.Connection, run: Columns) -> int:
    found = ask(connection, SQL["row"], (run[0], run[7]))
    if not found:
        raise errors.Damaged(what=f"run {run[1]}", reason=f"its newest snapshot {run[7]} is not there")
    return row_of(found[0], RunId(run[1]), content=False).no


def _refuse_whole(connection: apsw.Connection, commit: Commit) -> OrchestraError | None:
    if commit.whole is None:
        return None
    name, seq = commit.whole
    run = run_columns(connection, name)
    found = ask(connection, SQL["row"], (run[0], seq)) if run else []
    if run is None or not found:
        return errors.UnknownSnapshot(run=name, reference=seq, reason="it was deleted, or never was")
    if row_of(found[0], name, content=False).pruned:
        return errors.PrunedSnapshot(run=name, seq=seq, nearest=_nearest(connection, run, seq))
    return None


def _nearest(connection: apsw.Connection, run: Columns, seq: int) -> str:
    around = [ask(connection, SQL[name], (run[0], seq))[0][0] for name in ("kept_before", "kept_after")]
    return " and ".join(f"{run[1]}@{near}" for near in around if near is not None) or "none"


def _refuse_missing(connection: apsw.Connection, commit: Commit) -> OrchestraError | None:
    own = {digest for digest, _ in commit.objects}
    for digest in commit.requires:
        if digest not in own and not ask(connection, SQL["object_facts"], (digest,)):
            return errors.MissingObject(what=f"object {digest.hex()[:16]}")
    return None


# Writing.


def _insert_row(connection: apsw.Connection, commit: Commit, no: int, run_no: int) -> None:
    row = commit.row
    header, patch = row.header, row.patch
    columns = (
        no, run_no, row.seq, row.at, row.status, row.phase, join_list(row.triggers), join_list(row.agents),
        row.marked, row.sealed_at, row.size, patch is None, row.digest, row.parent, row.seal,
    )  # fmt: skip
    body = body_crc(header, patch)
    connection.execute(_APPEND, (*columns, row_crc(columns, body), body, header, patch))


def _move_head(connection: apsw.Connection, run: Columns, commit: Commit) -> Columns:
    row = commit.row
    head = (row.status, row.phase, row.seq, row.digest, row.at)
    columns = (*run[:5], *head, run[10], run[11])
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
