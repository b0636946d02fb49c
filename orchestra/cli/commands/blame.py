"""`orchestra blame`: which snapshot and which agent last set a value."""

from typing import Any

from orchestra.cli.options import AsJson, PathArgument, Reference, StoreUrl
from orchestra.cli.render.changes import with_times
from orchestra.cli.render.screen import Screen, print_json, screen
from orchestra.cli.render.times import age, full
from orchestra.cli.render.values import inline
from orchestra.cli.store import archive, option
from orchestra.codec.json_values import to_json
from orchestra.history import blame as blaming
from orchestra.history.archive import Archive
from orchestra.history.describe import Describer, described_json, event_json, sentence
from orchestra.history.paths import Path, format_path
from orchestra.history.places import Place, read_path
from orchestra.history.references import resolve


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
        out.print_cut([(sentence(found.event), "")])
    if not found.exact:
        out.line(("Pruned snapshots lie before this one: it may have been set in one of them.", "warn"))
    out.line()
    room, held = max((out.columns or 120) - 8, 20), (found.before, found.after)
    places = (Place(with_times(each, path, full), True) for each in held)
    before, after = (inline(place, opened.loader, room=room)[0] for place in places)
    out.line(("before  ", "dim"), *(before if found.was_there else [("nothing", "dim")]))
    out.line(("after   ", "dim"), *after)
    out.hints((f"orchestra diff {reference}{option(store)}", "what else it changed"))


def _json(opened: Archive, found: blaming.Blame, path: Path) -> dict[str, Any]:
    return {
        "path": format_path(path),
        "who": found.who,
        "event": event_json(found.event) if found.event else None,
        "snapshot": described_json(Describer(opened).describe(found.row)),
        "exact": found.exact,
        "was_there": found.was_there,
        "before": to_json(with_times(found.before, path)),
        "after": to_json(with_times(found.after, path)),
    }
