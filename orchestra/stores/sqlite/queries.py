"""Reading runs, rows and counters. Each function does its work on one connection, within one transaction."""

import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

import apsw
import attrs

from orchestra.errors import Damaged
from orchestra.ids import RunId
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow
from orchestra.stores.sqlite.columns import SEPARATOR, check_run, fact_of, join_list, row_of, run_of
from orchestra.stores.sqlite.statements import SQL, Columns, ask

_LAST: Final = (1 << 63) - 1
_RUN_COLUMNS: Final = 13
COMMITS: Final = "commits"
COMMANDS: Final = "commands"


def newest_no(connection: apsw.Connection) -> int:
    """The number of the newest commit, whether or not its row is still there."""
    newest, floor, crc = ask(connection, SQL["newest_no"])[0]
    return int(max(newest or 0, 0 if floor is None else fact_of(COMMITS, (floor, crc))))


def counter(connection: apsw.Connection, name: str) -> int:
    """A number that never goes back; 0 before it was first set."""
    found = ask(connection, SQL["counter"], (name,))
    return int(fact_of(name, found[0])) if found else 0


def run_columns(connection: apsw.Connection, run: str) -> Columns | None:
    """The columns of a run, checked; None when it is not there."""
    found = ask(connection, SQL["run"], (run,))
    return check_run(found[0]) if found else None


def newest_row_no(connection: apsw.Connection, run: Columns) -> int:
    """The commit number of a run's newest row."""
    found = ask(connection, SQL["row"], (run[0], run[7]))
    if not found:
        raise Damaged(what=f"run {run[1]}", reason=f"its newest snapshot {run[7]} is not there")
    return row_of(found[0], RunId(run[1]), content=False).no


def nearest_kept(connection: apsw.Connection, name: RunId, seq: int) -> str:
    """The kept snapshots around one that was pruned; empty for one that was not."""
    run = run_columns(connection, name)
    found = ask(connection, SQL["row"], (run[0], seq)) if run else []
    if run is None or not found:
        raise LookupError
    if not row_of(found[0], name, content=False).pruned:
        return ""
    around = [ask(connection, SQL[near], (run[0], seq))[0][0] for near in ("kept_before", "kept_after")]
    return " and ".join(f"{name}@{near}" for near in around if near is not None) or "none"


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
        order = "by_run" if query.after_no is None else "by_no"
        wanted = {**_NO_FILTERS, **_span(query), **_filters(query)}
        found = ask(connection, SQL[f"rows_of_all_{order}{_variant(query)}"], wanted)
        return rows_of_runs(connection, found, content=query.content)
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


_FILTERS: Final = ("phase", "agent", "status", "since", "until", "marked", "sealed", "triggers")
_NO_FILTERS: Final[dict[str, Any]] = dict.fromkeys(_FILTERS)
_conditions: Final = attrgetter(*_FILTERS)
_UNSET: Final = _conditions(RowQuery())


def _filters(query: RowQuery) -> dict[str, Any]:
    """The conditions beyond the span, or nothing when there are none."""
    conditions = _conditions(query)
    if conditions == _UNSET:
        return {}
    wanted = dict(zip(_FILTERS, conditions, strict=True))
    wanted["agent"] = None if query.agent is None else join_list((query.agent,))
    wanted["status"] = join_list(query.status) or None
    triggers = [join_list((trigger,)) for trigger in query.triggers]
    wanted["triggers"] = json.dumps(triggers) if triggers else None
    return wanted


def find_rows(connection: apsw.Connection, low: bytes, high: bytes, limit: int) -> list[Row]:
    """Rows by digest, without contents."""
    # The index holds eight bytes of each digest. SQLite's substr makes NULL of an empty value: Python cuts.
    found = ask(connection, SQL["find"], (low[:8], high[:8], low, high, limit))
    return rows_of_runs(connection, found, content=False)


assert len(SEPARATOR) == 1, "BUG: the statements search for one separator character"
