"""Runs that can simply go on: their process died or was stopped, or what they waited for came meanwhile."""

from collections.abc import Callable
from typing import NamedTuple

from orchestra.engine.orders import READY
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.ports.run_status import interruption
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
    return _runs(store, workflow, interruption)


def playable_runs(archive: Archive) -> list[Incomplete]:
    """All runs that were cut off, and those that got what they waited for while nobody played them."""
    return _runs(archive.store, None, lambda store, row: interruption(store, row) or _ready(archive, row))


def _runs(store: Store, workflow: str | None, reason: Callable[[Store, RunRow], str]) -> list[Incomplete]:
    query = RunQuery(status=("running", "paused"), workflow=workflow, limit=_MOST)
    left = (row for row in reversed(store.runs(query)) if not row.owned)
    return [Incomplete(row.run, why) for row in left if (why := reason(store, row))]


def _ready(archive: Archive, row: RunRow) -> str:
    """Why a run that is paused could go on; nothing when somebody paused it."""
    paused = RowQuery(run=row.run, triggers=("paused",), newest_first=True, limit=1)
    try:
        for held in archive.store.rows(paused):
            said = [each.what for each in archive.header(held).events if each.kind == "run_paused"]
            return "answered" if said[-1:] == [READY] else ""
    except DamageError:
        pass  # nobody knows; the other runs can go on all the same
    return ""
