"""Finds everything that is wrong with the database file."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import apsw

from orchestra.errors import DamageError, OrchestraError
from orchestra.ids import RunId
from orchestra.ports.store import StoreProblem
from orchestra.stores.sqlite import columns as col
from orchestra.stores.sqlite.opener import check_tables
from orchestra.stores.sqlite.pool import Pool
from orchestra.stores.sqlite.statements import SQL, Columns, ask

_PAGE: Final = 200
_OBJECT_PAGE: Final = 20  # with their bytes, of which each may be large


def check(pool: Pool) -> Iterator[StoreProblem]:
    """Every problem of the database file. A part that cannot go on is a problem itself; the next goes on."""
    for part in (_tables, _structure, _facts, _runs, _rows, _objects, _messages, _orphans):
        try:
            yield from part(pool)
        except OrchestraError as error:
            yield _problem("file", pool.place, error)


def _problem(what: str, where: str, error: OrchestraError) -> StoreProblem:
    return StoreProblem(what=what, where=where, reason=str(error.data.get("reason", error)))


def _all(pool: Pool, name: str, bindings: tuple[object, ...] = ()) -> list[Columns]:
    return pool.read(lambda connection: ask(connection, SQL[name], bindings))


def _problems(what: str, where: str, check: Callable[..., object], *values: object) -> Iterable[StoreProblem]:
    try:
        check(*values)
    except DamageError as error:
        return [_problem(what, where, error)]
    return []


def _tables(pool: Pool) -> Iterator[StoreProblem]:
    pool.read(lambda connection: check_tables(connection, pool.place), together=True)
    yield from ()


def _structure(pool: Pool) -> Iterator[StoreProblem]:
    """SQLite's own check: trees, free pages, indexes against tables."""
    for (message,) in _all(pool, "integrity"):
        if message != "ok":
            what = "index" if "index" in str(message) else "file"
            yield StoreProblem(what=what, where=pool.place, reason=str(message))


def _facts(pool: Pool) -> Iterator[StoreProblem]:
    for table in ("meta", "counters"):
        for name, value, crc in _all(pool, f"all_{table}"):
            yield from _problems("fact", f"{table} {name!r}", col.fact_of, name, (value, crc))


def _runs(pool: Pool) -> Iterator[StoreProblem]:
    for columns in _all(pool, "all_runs"):
        found = list(_problems("run", str(columns[1]), col.check_run, columns))
        yield from found or pool.read(partial(_run, columns), together=True)


def _run(listed: Columns, connection: apsw.Connection) -> list[StoreProblem]:
    """A run's head against its rows, at one moment."""
    now = ask(connection, SQL["run_by_no"], (listed[0],))
    if not now or now[0][1] != listed[1]:
        return []  # deleted since it was listed
    problems = []
    run_no, run, head, digest = now[0][0], now[0][1], now[0][7], now[0][8]
    count, first, last = ask(connection, SQL["row_span"], (run_no,))[0]
    if (count, first, last) != (head + 1, 0, head):
        reason = f"its head is {head}, and there are {count} rows from {first} to {last}"
        problems.append(StoreProblem(what="run", where=run, reason=reason))
    newest = ask(connection, SQL["row"], (run_no, head))
    if newest and newest[0][12] != digest:
        reason = "the run names another digest than its newest row"
        problems.append(StoreProblem(what="run", where=f"{run}@{head}", reason=reason))
    return problems


def _names(pool: Pool) -> Callable[[int], RunId]:
    names = {columns[0]: str(columns[1]) for columns in _all(pool, "all_runs")}
    return lambda run_no: RunId(names.get(run_no, f"run number {run_no}"))


def _rows(pool: Pool) -> Iterator[StoreProblem]:
    name_of, read, after = _names(pool), partial(col.row_of, content=True), 0
    while page := _all(pool, "rows_after", (after, _PAGE)):
        for columns in page:
            run = name_of(columns[1])
            yield from _problems("row", f"{run}@{columns[2]}", read, columns, run)
        after = page[-1][0]


def _objects(pool: Pool) -> Iterator[StoreProblem]:
    after = 0
    while page := _all(pool, "objects_content_after", (after, _OBJECT_PAGE)):
        for no, digest, at, size, body, crc, data in page:
            where = digest.hex() if isinstance(digest, bytes) else f"object number {no}"
            yield from _problems("object", where, col.info_of, (no, digest, at, size, body, crc))
            yield from _problems("object", where, col.object_of, (digest, at, body, crc, data))
        after = page[-1][0]


def _messages(pool: Pool) -> Iterator[StoreProblem]:
    name_of = _names(pool)
    for columns in _all(pool, "all_commands"):
        run = name_of(columns[1])
        yield from _problems("command", f"{run} {columns[0]}", col.command_of, columns, run)
    for columns in _all(pool, "all_annotations"):
        run = name_of(columns[0])
        yield from _problems("annotation", f"{run}@{columns[1]}", col.annotation_of, columns, run)


def _orphans(pool: Pool) -> Iterator[StoreProblem]:
    for (run_no,) in _all(pool, "orphans"):
        reason = "rows are there, but their run is not"
        yield StoreProblem(what="run", where=f"run number {run_no}", reason=reason)
