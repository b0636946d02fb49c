"""`orchestra show`: a snapshot and its state, or one value of it."""

import sys
from typing import Annotated

from cyclopts import Parameter

from orchestra.cli.options import AsJson, Full, PathArgument, Reference, StoreUrl
from orchestra.cli.render.run_list import status_cell
from orchestra.cli.render.screen import Line, Screen, print_json, screen
from orchestra.cli.render.text import safe, size
from orchestra.cli.render.times import age, full
from orchestra.cli.render.triggers import trigger_spans
from orchestra.cli.render.values import Branches, StateTree, is_collection
from orchestra.cli.store import archive, option
from orchestra.errors import BadSetting
from orchestra.history.archive import Archive
from orchestra.history.describe import Described, Describer, described_json, sentence
from orchestra.history.paths import Path
from orchestra.history.places import Place, in_reading_order, look, place_json, read_path
from orchestra.history.references import resolve
from orchestra.history.variables import type_at
from orchestra.ids import uuid_of
from orchestra.model.state import State
from orchestra.ports.store import Row

_LABEL = 11


def show(
    ref: Reference,
    path: PathArgument | None = None,
    /,
    *,
    full: Full = False,
    tree: Annotated[bool, Parameter(help="Draw every level of it as a tree.")] = False,
    raw: Annotated[bool, Parameter(help="With PATH: write text or bytes exactly as they are.")] = False,
    store: StoreUrl = None,
    json: AsJson = False,
) -> None:
    """Show a snapshot and its state, or the value at a path in it.

    Long values are cut, and of long lists the newest entries are shown, unless --full is given.
    """
    if tree and (raw or json):
        raise BadSetting(setting="--tree", value=True, reason="--raw and --json write something else")
    with archive(store) as opened:
        row = resolve(opened, ref)
        if path is None:
            _snapshot(opened, row, store, as_json=json, whole=full, tree=tree)
            return
        wanted = read_path(path, f"{row.run}@{row.seq}")
        place = look(opened, row, wanted)
        if tree and is_collection(place.open(opened.loader).held):
            _draw(screen(), opened, path, place, whole=full)
        else:
            _value(opened, place, wanted, as_json=json, raw=raw, whole=full)


def _draw(out: Screen, opened: Archive, name: str, place: Place, *, whole: bool) -> None:
    out.line((name, "bold"))
    out.lines(Branches(opened.loader, columns=out.columns, whole=whole).lines(place.open(opened.loader)))


def _snapshot(
    opened: Archive, row: Row, store: str | None, *, as_json: bool, whole: bool, tree: bool
) -> None:
    found = Describer(opened).describe(row)
    if found.header is None:
        opened.header(row)  # raises what is wrong with it
    state: Place | None = None if row.pruned else Place(in_reading_order(opened.document_of(row)))
    if as_json:
        held = None if state is None else place_json(state, opened.loader, kind=State, large=whole)
        print_json({"snapshot": described_json(found), "state": held})
        return
    out = screen()
    out.lines(_header(found))
    out.line()
    if state is None:
        out.line(str(opened.pruned_error(row.run, row.seq)))
        return
    if tree:
        _draw(out, opened, found.reference, state, whole=whole)
    else:
        out.lines(StateTree(opened.loader, columns=out.columns, whole=whole).lines(state))
    change = (f"orchestra diff {found.reference}{option(store)}", "what it changed")
    part = (f"orchestra show {found.reference} tasks{option(store)}", "one part of it")
    out.hints(*[change] * (row.seq > 0), part)


def _header(found: Described) -> list[Line]:
    row, header = found.row, found.header
    lines: list[Line] = [
        [(found.reference, "bold"), ("  ", ""), *status_cell(row.status)],
        _labelled("time", [(full(row.at), ""), (f"  {age(row.at)} ago", "dim")]),
        _labelled("triggers", trigger_spans(row.triggers, short=False)),
        _labelled("phase", [(row.phase or "none", "" if row.phase else "dim")]),
    ]
    if header is not None and header.confidence is not None:
        lines.append(_labelled("confidence", [(f"{header.confidence:.2f}", "")]))
    for at, event in enumerate(header.events if header else ()):
        who: Line = [(f"{event.who}  ", "accent")] if event.who else []
        lines.append(_labelled("events" if at == 0 else "", [*who, (sentence(event), "")]))
    lines += [
        _labelled("digest", [(row.digest.hex(), "dim")]),
        _labelled("uuid", [(str(uuid_of(row.digest)), "dim")]),
        _labelled("parent", [(row.parent.hex() if row.parent else "none", "dim")]),
        _labelled("size", [(f"{size(row.size)} added", "dim")]),
    ]
    if found.pin is not None:
        said = f"  {found.pin.text}" if found.pin.text else ""
        lines.append(_labelled("pinned", [("◆", "warn"), (said, ""), (f"  {age(found.pin.at)} ago", "dim")]))
    if found.note is not None:
        first, *rest = found.note.text.splitlines() or [""]
        lines.append(_labelled("note", [("✎ ", "warn"), (first, "")]))
        lines += [_labelled("", [("  " + line, "")]) for line in rest]
    return lines


def _labelled(label: str, spans: Line) -> Line:
    return [(label.ljust(_LABEL), "dim"), *spans]


def _value(opened: Archive, place: Place, path: Path, *, as_json: bool, raw: bool, whole: bool) -> None:
    inner = place.open(opened.loader)
    out = screen()
    if raw and isinstance(inner.held, str | bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(inner.held.encode() if isinstance(inner.held, str) else inner.held)
        sys.stdout.buffer.flush()
    elif isinstance(inner.held, str) and not as_json:
        text = safe(inner.held, keep="\n\t")
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    elif is_collection(inner.held) and out.tty and not (whole or as_json or raw):
        out.lines(StateTree(opened.loader, columns=out.columns, whole=False).lines(inner))
    else:
        print_json(place_json(place, opened.loader, kind=type_at(path)))
