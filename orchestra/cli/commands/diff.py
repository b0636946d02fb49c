"""`orchestra diff`: what differs between two snapshots, of one run or of two."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any, Final

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Full, Reference, StoreUrl, Task
from orchestra.cli.render.changes import ChangeList, by_meaning, change_json, counts
from orchestra.cli.render.screen import Column, Span, print_json, print_table, screen
from orchestra.cli.render.text import count
from orchestra.cli.render.times import duration
from orchestra.cli.store import archive, option, run_of_task
from orchestra.errors import UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.history.compare import Diff, diff_documents
from orchestra.history.lineage import ancestry
from orchestra.history.places import read_path
from orchestra.history.references import resolve
from orchestra.ids import RunId, iso
from orchestra.ports.store import Row

_PHASE: Final = re.compile(r"phase(\d{1,9})")
_STAT: Final[tuple[Column[tuple[str, dict[str, int]]], ...]] = (
    Column("field", lambda each: (each[0], "bold")),
    Column("added", lambda each: f"{each[1]['added']:,}" if each[1]["added"] else "", align="right"),
    Column("changed", lambda each: f"{each[1]['changed']:,}" if each[1]["changed"] else "", align="right"),
    Column("removed", lambda each: f"{each[1]['removed']:,}" if each[1]["removed"] else "", align="right"),
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
        print_diff(opened, old, new, path=path, stat=stat, every=all, whole=full, store=store, as_json=json)


def diff_checkpoints(
    *,
    from_: Annotated[str, Parameter(name="--from", help="phase1, or any reference.")],
    to: Annotated[str, Parameter(help="phase2, or any reference.")],
    task: Task = None,
    full: Full = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Show what differs between two phases of a run, each at its end, or between any two snapshots."""
    with archive(store) as opened:
        old, new = _place(opened, from_, task), _place(opened, to, task)
        print_diff(opened, old, new, whole=full, store=store, as_json=json)


def _place(opened: Archive, text: str, task: str | None) -> Row:
    if phase := _PHASE.fullmatch(text):
        return _phase_end(opened, run_of_task(opened, task), int(phase[1]))
    return resolve(opened, text)


def _phase_end(opened: Archive, run: RunId, ordinal: int) -> Row:
    """The newest snapshot of the N-th phase visit that the run's head builds on."""
    visits: set[int] = set()
    for row in _through_forks(opened, opened.row(run, opened.run(run).head)):
        visits.add(opened.header(row).ordinal)
        if ordinal in visits and not row.pruned:
            return row
    known = ", ".join(f"phase{each}" for each in sorted(visits) if each) or "none yet"
    raise UnknownSnapshot(run=run, reference=f"phase{ordinal}", reason=f"its phase visits are {known}")


def _through_forks(opened: Archive, row: Row) -> Iterator[Row]:
    """What a snapshot builds on, newest first, also in the runs that its run was forked from."""
    while True:
        oldest = row
        for oldest in ancestry(opened, row.run, row.seq):
            yield oldest
        if oldest.seq != 0 or oldest.parent is None:
            return
        found = opened.store.find(oldest.parent, oldest.parent, 1)
        if not found:
            return
        row = found[0]


def _before(opened: Archive, row: Row) -> Row:
    """The snapshot that a snapshot follows, also in another run."""
    if row.parent is None:
        raise UnknownSnapshot(run=row.run, reference=f"{row.seq}'s parent", reason="it is the first one")
    if row.seq > 0:
        return opened.row(row.run, row.seq - 1)
    return resolve(opened, row.parent.hex())


def print_diff(
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
        ends = {"from": _end_json(old), "to": _end_json(new)}
        changes = [change_json(change) for change in found.changes]
        about = {"counts": counts(found.changes), "truncated": found.truncated}
        print_json({**ends, **about, "changes": changes})
        return
    out = screen()
    later = f"@{new.seq}" if old.run == new.run else f"{new.run}@{new.seq}"
    between = f"{count(abs(new.seq - old.seq), 'snapshot')}, " if old.run == new.run else ""
    apart = f"  {between}{duration(abs(new.at - old.at))} apart"
    out.print_cut([(f"{old.run}@{old.seq}", "bold"), (" → ", "dim"), (later, "bold"), (apart, "dim")])
    out.line()
    if not found.changes:
        out.line("No difference.")
        return
    if stat:
        fields = groupby(found.changes, key=lambda change: str(change.path[0]) if change.path else ".")
        print_table(out, _STAT, [(field, counts(changes)) for field, changes in fields])
    else:
        telling, details = by_meaning(found.changes)
        shown = ChangeList(opened.loader, columns=out.columns, whole=whole)
        out.lines(shown.lines(telling))
        if every or path is not None:
            out.lines(shown.lines(details))
        elif details:
            more = f"… {len(details)} more" if telling else f"Only {len(details)} of little meaning"
            out.line((f"{more}: times, keys, ids and counters (--all shows them)", "dim"))
    out.line()
    more = " (and more: only the first were looked at)" if found.truncated else ""
    numbers = counts(found.changes)
    comma: Span = (", ", "dim")
    changed: Span = (f"{numbers['changed']:,} changed", "warn")
    added: Span = (f"{numbers['added']:,} added", "good")
    out.line(changed, comma, added, comma, (f"{numbers['removed']:,} removed", "bad"), (more, "dim"))
    out.hints((f"orchestra blame {new.run}@{new.seq} PATH{option(store)}", "who set a value"))


def _end_json(row: Row) -> dict[str, Any]:
    return {"reference": f"{row.run}@{row.seq}", "digest": row.digest.hex(), "at": iso(row.at)}
