"""`orchestra diff`: what differs between two snapshots, of one run or of two."""

from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Full, Reference, StoreUrl
from orchestra.cli.render.changes import print_diff
from orchestra.cli.store import archive
from orchestra.errors import UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.history.references import resolve
from orchestra.ports.store import Row


def diff(
    ref: Reference,
    other: Annotated[str | None, Parameter(help="Another reference; without it, what REF changed.")] = None,
    /,
    *,
    path: Annotated[
        str | None, Parameter(metavar="PATH", help="Only what lies at or below this path.")
    ] = None,
    stat: Annotated[bool, Parameter(help="Only how many changes there are in each field.")] = False,
    all: Annotated[
        bool, Parameter(name="--all", help="Also times, keys, ids, digests and counters.")
    ] = False,
    full: Full = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Show what differs between two snapshots, of one run or of two.

    With one reference: what that snapshot changed, compared with the one it follows. What means something
    comes first; times, keys, ids, digests and counters are only counted unless --all or --path is given.
    """
    with archive(store) as opened:
        if other is None:
            new = resolve(opened, ref)
            old = _before(opened, new)
        else:
            old, new = resolve(opened, ref), resolve(opened, other)
        print_diff(opened, old, new, path=path, stat=stat, every=all, whole=full, store=store, as_json=json)


def _before(opened: Archive, row: Row) -> Row:
    """The snapshot that a snapshot follows, also in another run."""
    if row.parent is None:
        raise UnknownSnapshot(run=row.run, reference=f"{row.seq}'s parent", reason="it is the first one")
    if row.seq > 0:
        return opened.row(row.run, row.seq - 1)
    return resolve(opened, row.parent.hex())
