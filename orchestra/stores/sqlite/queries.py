"""Reading runs and rows. Each function does its work on a reader, within one read transaction."""

import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

import apsw
import attrs

from orchestra.errors import Damaged
from orchestra.ids import RunId
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow
from orchestra.stores.sqlite.append import run_columns
from orchestra.stores.sqlite.columns import SEPARATOR, check_run, join_list, row_of, run_of
from orchestra.stores.sqlite.statements import SQL, Columns, ask

_LAST: Final = (1 << 63) - 1
_RUN_COLUMNS: Final = 13


def list_runs(
    connection: apsw.Connection, query: RunQuery, is_owned: Callable[[RunId], bool]
) -> list[RunRow]:
    """Runs, newest first."""
    wanted = {**attrs.asdict(query), "status": join_list(query.status) or None}
    found = ask(connection, SQL["runs"], wanted)
    return [run_of(check_run(columns), owned=is_owned(RunId(columns[1]))) for columns in found]


def asks_for_head(query: RowQuery) -> bool:
    """Whether a query is for the newest row of a run and nothing else."""
    return (
        query.newest_first
        and query.limit == 1
        and query.run is not None
        and query.content
        and query.first is query.last is query.after_no is None
        and not _filters(query)
    )


def head_of_run(connection: apsw.Connection, run: str | None) -> list[Row]:
    """The newest row of a run, told by one statement and so at one moment; nothing when there is no run."""
    found = ask(connection, SQL["head_of_run"], (run,))
    if not found:
        return []
    entry, row = check_run(found[0][:_RUN_COLUMNS]), found[0][_RUN_COLUMNS:]
    if row[0] is None:
        raise _gap(entry, entry[7])
    return [row_of(row, RunId(entry[1]), content=True)]


def list_rows(connection: apsw.Connection, query: RowQuery) -> list[Row]:
    """Rows in the order that was asked for."""
    if query.run is None:
        return _rows_of_all(connection, query)
    run = run_columns(connection, query.run)
    return [] if run is None else _rows_of_run(connection, query, run)


def _rows_of_run(connection: apsw.Connection, query: RowQuery, run: Columns) -> list[Row]:
    filters = _filters(query)
    name = "rows_of_run" + ("_filtered" if filters else "") + _variant(query)
    found = ask(connection, SQL[name], {**_span(query), "run_no": run[0], **filters})
    rows = [row_of(columns, RunId(run[1]), content=query.content) for columns in found]
    if not filters and query.after_no is None:
        _refuse_gaps(rows, query, run)
    return rows


def _refuse_gaps(rows: list[Row], query: RowQuery, run: Columns) -> None:
    """A run's rows have no gaps; one that is missing was lost, or its index entry was damaged."""
    first = max(query.first or 0, 0)
    last = run[7] if query.last is None else min(query.last, run[7])
    span = range(last, first - 1, -1) if query.newest_first else range(first, last + 1)
    expected = span if query.limit is None else span[: query.limit]
    if [row.seq for row in rows] != list(expected):
        there = {row.seq for row in rows}
        missing = next((seq for seq in expected if seq not in there), run[7] + 1)
        raise _gap(run, missing)


def _gap(run: Columns, seq: int) -> Damaged:
    return Damaged(what=f"snapshot {run[1]}@{seq}", reason="it is not there, though the run's head says so")


def _rows_of_all(connection: apsw.Connection, query: RowQuery) -> list[Row]:
    order = "by_run" if query.after_no is None else "by_no"
    wanted = {**_NO_FILTERS, **_span(query), **_filters(query)}
    found = ask(connection, SQL[f"rows_of_all_{order}{_variant(query)}"], wanted)
    return rows_of_runs(connection, found, content=query.content)


def rows_of_runs(connection: apsw.Connection, found: list[Columns], *, content: bool) -> list[Row]:
    """Rows of several runs. The names come from the runs' own entries, after their check."""
    names = {run_no: _name(connection, run_no) for run_no in {columns[1] for columns in found}}
    return [row_of(columns, names[columns[1]], content=content) for columns in found]


def _name(connection: apsw.Connection, run_no: int) -> RunId | None:
    found = ask(connection, SQL["run_by_no"], (run_no,))
    return RunId(check_run(found[0])[1]) if found else None


def _variant(query: RowQuery) -> str:
    return ("_newest" if query.newest_first else "") + ("_content" if query.content else "")


def _span(query: RowQuery) -> dict[str, int]:
    return {
        "first": query.first or 0,
        "last": _LAST if query.last is None else query.last,
        "after_no": query.after_no or 0,
        "limit": -1 if query.limit is None else query.limit,
    }


_NO_FILTERS: Final[dict[str, Any]] = dict.fromkeys(
    ("phase", "agent", "status", "since", "until", "marked", "sealed", "triggers")
)


_conditions: Final = attrgetter("phase", "agent", "since", "until", "marked", "sealed")
_UNSET: Final = (None,) * 6


def _filters(query: RowQuery) -> dict[str, Any]:
    """The conditions beyond the span, or nothing when there are none."""
    if query.status == () == query.triggers and _conditions(query) == _UNSET:
        return {}
    triggers = [join_list((trigger,)) for trigger in query.triggers]
    return {
        "phase": query.phase,
        "agent": None if query.agent is None else join_list((query.agent,)),
        "status": join_list(query.status) or None,
        "since": query.since,
        "until": query.until,
        "marked": query.marked,
        "sealed": query.sealed,
        "triggers": json.dumps(triggers) if triggers else None,
    }


def find_rows(connection: apsw.Connection, low: bytes, high: bytes, limit: int) -> list[Row]:
    """Rows by digest, without contents."""
    # The index holds eight bytes of each digest. SQLite's substr makes NULL of an empty value: Python cuts.
    found = ask(connection, SQL["find"], (low[:8], high[:8], low, high, limit))
    return rows_of_runs(connection, found, content=False)


assert len(SEPARATOR) == 1, "BUG: the statements search for one separator character"
