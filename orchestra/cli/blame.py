"""`orchestra blame`: which snapshot and which agent last set a value."""

from typing import Any

from orchestra.checkpoint import blame as blaming
from orchestra.checkpoint.archive import Archive
from orchestra.checkpoint.describe import Describer, event_json, sentence, snapshot_json
from orchestra.checkpoint.jsonable import plain_json
from orchestra.checkpoint.paths import Path, format_path
from orchestra.checkpoint.places import Place, read_path
from orchestra.checkpoint.references import resolve
from orchestra.cli.changes import timed
from orchestra.cli.options import AsJson, PathArgument, Reference, StoreUrl
from orchestra.cli.output import print_json
from orchestra.cli.screen import Screen, screen
from orchestra.cli.source import archive, option
from orchestra.cli.times import age, full
from orchestra.cli.values import inline


def blame(ref: Reference, path: PathArgument, /, *, store: StoreUrl = None, json: AsJson = False) -> None:
    """Say which snapshot and which agent last set the value at a path, and what stood there before.

    Follows what the snapshot really builds on, through rollbacks and forks.
    """
    with archive(store) as opened:
        row = resolve(opened, ref)
        wanted = read_path(path, f"{row.run}@{row.seq}")
        found = blaming.blame(opened, row, wanted)
        if json:
            print_json(_json(opened, found, wanted))
        else:
            _print(screen(), opened, found, wanted, store)


def _print(out: Screen, opened: Archive, found: blaming.Blame, path: Path, store: str | None) -> None:
    reference = f"{found.row.run}@{found.row.seq}"
    who = found.who or "the run itself"
    out.line((format_path(path), "bold"))
    out.line("was set by ", (who, "accent"), " in ", (reference, "bold"))
    out.line(full(found.row.at), (f"  {age(found.row.at)} ago  ", "dim"), ", ".join(found.row.triggers))
    if found.event is not None:
        out.wrapped([(sentence(found.event), "")])
    if not found.exact:
        out.line(("Pruned snapshots lie before this one: it may have been set in one of them.", "warn"))
    out.line()
    room = max((out.columns or 120) - 8, 20)
    before = inline(Place(timed(found.before, path, full), True), opened.loader, room=room)[0]
    after = inline(Place(timed(found.after, path, full), True), opened.loader, room=room)[0]
    out.line(("before  ", "dim"), *(before if found.was_there else [("nothing", "dim")]))
    out.line(("after   ", "dim"), *after)
    out.hints((f"orchestra diff {reference}{option(store)}", "what else it changed"))


def _json(opened: Archive, found: blaming.Blame, path: Path) -> dict[str, Any]:
    return {
        "path": format_path(path),
        "who": found.who,
        "event": event_json(found.event) if found.event else None,
        "snapshot": snapshot_json(Describer(opened).describe(found.row)),
        "exact": found.exact,
        "was_there": found.was_there,
        "before": plain_json(timed(found.before, path)),
        "after": plain_json(timed(found.after, path)),
    }
