"""What runs wait for that a person can give them."""

from typing import Final

from orchestra.cli.render.summary import open_waits
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.model.records import Wait
from orchestra.ports.store import RunQuery

_MOST: Final = 10_000
_PEOPLE: Final = frozenset({"question", "dependency", "breakpoint"})


def waits_for_people(opened: Archive, run: RunId | None) -> list[tuple[RunId, str, Wait]]:
    """Every open wait for a person, of one run or of all, oldest first."""
    if run is not None:
        names = [run]
    else:
        query = RunQuery(status=("running", "waiting", "paused"), limit=_MOST)
        names = [row.run for row in opened.store.runs(query)]
    found = [
        (name, wait, held)
        for name in names
        for wait, held in open_waits(opened.snapshot(opened.newest(name)).state)
        if held.kind in _PEOPLE
    ]
    return sorted(found, key=lambda each: each[2].opened_at)
