"""Following a run that another process plays, by looking into the store again and again."""

import time
from collections.abc import Iterator
from typing import Final

from orchestra.cli.exit_codes import FAILED, OK, WAITING
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.ports.store import RunRow

_SECONDS: Final = 0.25
_CODES: Final = {"completed": OK, "failed": FAILED, "cancelled": FAILED}


def looks(opened: Archive, run: RunId) -> Iterator[RunRow]:
    """The run as it stands, again and again until nobody plays it; the last is how it was left.

    It is read before whoever looks reads its rows: what was written last is then among them.
    """
    while True:
        row = opened.run(run)
        yield row
        if not row.owned:
            return
        time.sleep(_SECONDS)


def code_of(row: RunRow) -> int:
    """The exit code for a run as it was left: 3 when it can be resumed."""
    return _CODES.get(row.status, WAITING)
