"""`orchestra diff`: what differs between two snapshots, of one run or of two."""

from itertools import groupby
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Full, Reference, StoreUrl
from orchestra.cli.render.changes import ChangeList, by_meaning, change_json, counts
from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, Screen, screen
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.text import count
from orchestra.cli.render.times import duration
from orchestra.cli.store import archive, option
from orchestra.errors import UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.history.compare import Change, Diff, diff_documents
from orchestra.history.places import read_path
from orchestra.history.references import resolve
from orchestra.ids import iso
from orchestra.ports.store import Row

_STAT: Final = (
    Column("field"),
    Column("added", align="right"),
    Column("changed", align="right"),
    Column("removed", align="right"),
)


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
        compare(opened, old, new, path=path, stat=stat, every=all, whole=full, store=store, as_json=json)


def _before(opened: Archive, row: Row) -> Row:
    """The snapshot that a snapshot follows, also in another run."""
    if row.parent is None:
        raise UnknownSnapshot(run=row.run, reference=f"{row.seq}'s parent", reason="it is the first one")
    if row.seq > 0:
        return opened.row(row.run, row.seq - 1)
    return resolve(opened, row.parent.hex())


def compare(
    opened: Archive,
    old: Row,
    new: Row,
    *,
    path: str | None = None,
    stat: bool = False,
    every: bool = False,
    whole: bool = False,
    store: str | None = None,
    as_json: bool = False,
) -> None:
    """Compare two snapshots and print what differs."""
    found = diff_documents(opened.document_of(old), opened.document_of(new), opened.loader)
    if path is not None:
        wanted = read_path(path, f"{new.run}@{new.seq}")
        kept = tuple(each for each in found.changes if each.path[: len(wanted)] == wanted)
        found = Diff(changes=kept, truncated=found.truncated)
    if as_json:
        print_json(_json(old, new, found))
        return
    out = screen()
    out.wrapped(_title(old, new))
    out.line()
    _body(out, opened, found, stat=stat, every=every or path is not None, whole=whole)
    if found.changes:
        out.hints((f"orchestra blame {new.run}@{new.seq} PATH{option(store)}", "who set a value"))


def _body(out: Screen, opened: Archive, found: Diff, *, stat: bool, every: bool, whole: bool) -> None:
    if not found.changes:
        out.line("No difference.")
        return
    if stat:
        print_table(out, _STAT, _stat_rows(found.changes))
    else:
        telling, details = by_meaning(found.changes)
        shown = ChangeList(opened.loader, columns=out.columns, whole=whole)
        out.lines(shown.lines(telling))
        if every:
            out.lines(shown.lines(details))
        elif details:
            more = f"… {len(details)} more" if telling else f"Only {len(details)} of little meaning"
            out.line((f"{more}: times, keys, ids and counters (--all shows them)", "dim"))
    out.line()
    more = " (and more: only the first were looked at)" if found.truncated else ""
    numbers = counts(found.changes)
    spans: Line = [
        (f"{numbers['changed']:,} changed", "warn"),
        (", ", "dim"),
        (f"{numbers['added']:,} added", "good"),
        (", ", "dim"),
        (f"{numbers['removed']:,} removed", "bad"),
    ]
    out.line(*spans, (more, "dim"))


def _stat_rows(changes: tuple[Change, ...]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for field, group in groupby(changes, key=lambda change: str(change.path[0]) if change.path else "."):
        numbers = counts(group)
        cells: list[Line] = [
            [(f"{numbers[kind]:,}" if numbers[kind] else "", "")] for kind in ("added", "changed", "removed")
        ]
        rows.append([[(field, "bold")], *cells])
    return rows


def _title(old: Row, new: Row) -> Line:
    later = f"@{new.seq}" if old.run == new.run else f"{new.run}@{new.seq}"
    between = f"{count(abs(new.seq - old.seq), 'snapshot')}, " if old.run == new.run else ""
    apart = f"  {between}{duration(abs(new.at - old.at))} apart"
    return [(f"{old.run}@{old.seq}", "bold"), (" → ", "dim"), (later, "bold"), (apart, "dim")]


def _json(old: Row, new: Row, found: Diff) -> dict[str, Any]:
    return {
        "from": _end_json(old),
        "to": _end_json(new),
        "counts": counts(found.changes),
        "truncated": found.truncated,
        "changes": [change_json(change) for change in found.changes],
    }


def _end_json(row: Row) -> dict[str, Any]:
    return {"reference": f"{row.run}@{row.seq}", "digest": row.digest.hex(), "at": iso(row.at)}
