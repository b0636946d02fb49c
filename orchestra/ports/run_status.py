"""How a run stands, as people should see it: by its status, and by whether a process plays it.

A run is *cut off* when its process died, or was stopped in order, while it was playing. It is shown as
interrupted: nobody wants it to stand still, and it can simply go on. One that somebody paused is not.
"""

from typing import Final, Literal, TypeAlias

from orchestra.errors import DamageError
from orchestra.ports.store import RowQuery, RunRow, Store

INTERRUPTED: Final = "interrupted"
STORED: Final = {INTERRUPTED: ("running", "paused")}
"""The statuses in the store of runs that stand so; all others are stored as they are shown."""
CHANGING: Final = frozenset({INTERRUPTED, "running", "paused"})
"""What cannot be told from the status alone."""

Interruption: TypeAlias = Literal["", "interrupted", "stopped"]


def shown_status(store: Store, row: RunRow) -> str:
    """The status of a run as people should see it."""
    return INTERRUPTED if interruption(store, row) else row.status


def interruption(store: Store, row: RunRow) -> Interruption:
    """Whether a run was cut off: interrupted when its process died, stopped when that was in order."""
    if row.owned or row.status not in ("running", "paused"):
        return ""
    if row.status == "running":
        return "interrupted"
    try:
        return "stopped" if _was_stopped(store, row) else ""
    except DamageError:  # `verify` tells of it
        return ""


def _was_stopped(store: Store, row: RunRow) -> bool:
    """Whether a paused run is so because its process was stopped, not because somebody wanted it."""
    why = RowQuery(run=row.run, triggers=("shutdown", "paused"), newest_first=True, limit=1, content=False)
    for last in store.rows(why):
        if "shutdown" not in last.triggers:
            return False
        before = RowQuery(run=row.run, last=last.seq - 1, newest_first=True, limit=1, content=False)
        return all(each.status != "paused" for each in store.rows(before))
    return False
