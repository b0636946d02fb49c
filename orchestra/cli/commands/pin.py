"""`orchestra pin`: keep a snapshot for good."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Reference, StoreUrl
from orchestra.cli.render.triggers import print_outcome
from orchestra.cli.store import archive_over, open_for_writing
from orchestra.history import annotations
from orchestra.history.references import resolve
from orchestra.ids import wall_clock


def pin(
    ref: Reference,
    /,
    *,
    remove: Annotated[bool, Parameter(help="Leave it to retention again.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Keep a snapshot for good, whatever retention says."""
    with open_for_writing(store) as opened:
        reader = archive_over(opened)
        row = resolve(reader, ref)
        if remove:
            annotations.unpin(opened, row.run, row.seq)
        else:
            annotations.pin(opened, reader.framer, row.run, row.seq, wall_clock())
        print_outcome(reader, row, "is no longer pinned" if remove else "is pinned", json)
