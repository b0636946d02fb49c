"""States as JSON: one path of one, what differs between two, and who set a value."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from orchestra.codec.document import Document
from orchestra.history.archive import Archive
from orchestra.history.blame import blame
from orchestra.history.compare import Change, Diff, diff_documents
from orchestra.history.paths import Path, format_path
from orchestra.history.places import Place, in_reading_order, look
from orchestra.ids import RunId
from orchestra.limits import WEB_CHANGE_BYTES, WEB_TEXT_CHARS, WEB_WHOLE_TEXT_CHARS
from orchestra.ports.store import Row
from orchestra.web.views.cancel import Wanted, always
from orchestra.web.views.events import event_with_sentence
from orchestra.web.views.forms import Former, cut, data_form, kind_of
from orchestra.web.views.runs import Json
from orchestra.web.views.snapshots import builds_on


def reference(row: Row) -> str:
    """How people write a snapshot."""
    return f"{row.run}@{row.seq}"


def place_at(archive: Archive, row: Row, path: Path) -> Place:
    """What stands at a path, opened; the whole state without one."""
    if not path:
        return Place(in_reading_order(archive.document_of(row)))
    return look(archive, row, path).open(archive.loader)


def state(archive: Archive, row: Row, path: Path, *, budget: int, offset: int, limit: int) -> Json:
    """What stands at a path, as much of it as the budget allows."""
    place = place_at(archive, row, path)
    former = Former(archive.loader, budget)
    value = _long_text(place)
    whole = value is None
    if value is None:
        value = former.form(place, offset, limit)
        whole = former.whole
    count = len(place.held) if hasattr(place.held, "__len__") else None
    return {
        "reference": reference(row),
        "path": list(path),
        "text": format_path(path),
        "kind": kind_of(place),
        "count": count,
        "value": value,
        "whole": whole,
    }


def _long_text(place: Place) -> Json | None:
    if isinstance(place.held, str | bytes) and len(place.held) > WEB_WHOLE_TEXT_CHARS:
        return cut(place.held, WEB_TEXT_CHARS)
    return None


def changes(archive: Archive, row: Row, limit: int) -> Json:
    """What a snapshot changed, against what it builds on."""
    base = builds_on(archive, row)
    if base is None:
        return _diff_json(
            archive, None, row, diff_documents({}, archive.document_of(row), archive.loader, limit=limit)
        )
    return diff_json(archive, archive.row(*base), row, (), limit)


def diff_json(archive: Archive, old: Row, new: Row, path: Path, limit: int) -> Json:
    """What differs between two snapshots, or between what stands at a path in them."""
    if path:
        names = (str(path[0]),)
        before, after = archive.part_of(old, names), archive.part_of(new, names)
        found = Diff(changes=tuple(_below(before, after, path, archive, limit + 1)), truncated=False)
        found = Diff(changes=found.changes[:limit], truncated=len(found.changes) > limit)
    else:
        before, after = archive.documents_of(old, new)
        found = diff_documents(before, after, archive.loader, limit=limit, stored=True)
    return _diff_json(archive, old, new, found)


def _below(before: Document, after: Document, path: Path, archive: Archive, limit: int) -> Iterator[Change]:
    for change in diff_documents(before, after, archive.loader, stored=True).changes:
        shared = min(len(path), len(change.path))
        if change.path[:shared] == path[:shared]:
            yield change
            limit -= 1
            if not limit:
                return


def _diff_json(archive: Archive, old: Row | None, new: Row, found: Diff) -> Json:
    counts = Counter(change.kind for change in found.changes)
    return {
        "from": None if old is None else {"reference": reference(old), "run": old.run, "seq": old.seq},
        "to": {"reference": reference(new), "run": new.run, "seq": new.seq},
        "changes": [_change(archive, each) for each in found.changes],
        "counts": {kind: counts[kind] for kind in ("added", "removed", "changed")},
        "truncated": found.truncated,
    }


def _change(archive: Archive, change: Change) -> Json:
    return {
        "path": list(change.path),
        "text": format_path(change.path),
        "kind": change.kind,
        "before": _form(archive, change.before, change.path),
        "after": _form(archive, change.after, change.path),
    }


def _form(archive: Archive, value: Any, path: Path) -> Any:
    return data_form(value, path, archive.loader, WEB_CHANGE_BYTES)


def blame_json(archive: Archive, row: Row, path: Path, wanted: Wanted = always) -> Json:
    """Who last set the value at a path."""
    found = blame(archive, row, path, progress=lambda _: wanted())
    return {
        "run": RunId(found.row.run),
        "seq": found.row.seq,
        "reference": reference(found.row),
        "at": found.row.at,
        "who": found.who,
        "event": None if found.event is None else event_with_sentence(found.event),
        "exact": found.exact,
        "before": _form(archive, found.before, path),
        "after": _form(archive, found.after, path),
        "was_there": found.was_there,
        "text": format_path(path),
    }
