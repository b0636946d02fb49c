"""Runs that were cut off: their process died, or was stopped, and nobody plays them."""

from typing import NamedTuple

from orchestra.ids import RunId
from orchestra.ports.store import RowQuery, RunQuery, RunRow, Store

_MOST = 10_000


class Incomplete(NamedTuple):
    """A run that can simply go on."""

    run: RunId
    why: str


def incomplete_runs(store: Store, workflow: str | None = None) -> list[Incomplete]:
    """The runs of a workflow, or of all, that were cut off, oldest first.

    Not those that wait for somebody, that somebody paused, that failed, or that a process plays.
    """
    query = RunQuery(status=("running", "paused"), workflow=workflow, limit=_MOST)
    found: list[Incomplete] = []
    for row in reversed(store.runs(query)):
        if not row.owned and (why := _why(store, row)):
            found.append(Incomplete(row.run, why))
    return found


def _why(store: Store, row: RunRow) -> str:
    if row.status == "running":
        return "interrupted"
    newest = store.rows(RowQuery(run=row.run, newest_first=True, limit=1, content=False))
    return "stopped" if newest and "shutdown" in newest[0].triggers else ""
