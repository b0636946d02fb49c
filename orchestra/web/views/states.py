"""States as JSON: one path of one, what differs between two, and who set a value."""

from collections import Counter
from operator import eq
from typing import Any

from orchestra.history.archive import Archive
from orchestra.history.blame import blame
from orchestra.history.compare import Change, Diff, diff_documents
from orchestra.history.paths import Path, format_path
from orchestra.history.places import Place, in_reading_order, look
from orchestra.ids import RunId
from orchestra.limits import WEB_CHANGE_BYTES, WEB_TEXT_CHARS, WEB_WHOLE_TEXT_CHARS
from orchestra.ports.store import Row
from orchestra.web.views.cancel import CheckWanted
from orchestra.web.views.events import event_with_sentence
from orchestra.web.views.fields import Json
from orchestra.web.views.forms import Former, cut, data_form, kind_of
from orchestra.web.views.snapshots import builds_on


def reference(row: Row) -> str:
    """How people write a snapshot."""
    return f"{row.run}@{row.seq}"


def place_at(archive: Archive, row: Row, path: Path) -> Place:
    """What stands at a path, opened; the whole state without one."""
    if not path:
        return Place(in_reading_order(archive.document_of(row)))
    return look(archive, row, path).open(archive.loader)


def state_json(archive: Archive, row: Row, path: Path, *, budget: int, offset: int, limit: int) -> Json:
    """What stands at a path, as much of it as the budget allows."""
    place = place_at(archive, row, path)
    held, former = place.held, Former(archive.loader, budget)
    is_long = isinstance(held, str | bytes) and len(held) > WEB_WHOLE_TEXT_CHARS
    value = cut(held, WEB_TEXT_CHARS) if is_long else former.form(place, offset, limit)
    return {
        "reference": reference(row),
        "path": list(path),
        "text": format_path(path),
        "kind": kind_of(place),
        "count": len(held) if hasattr(held, "__len__") else None,
        "value": value,
        "whole": former.whole and not is_long,
    }


def changes_json(archive: Archive, row: Row, limit: int) -> Json:
    """What a snapshot changed, against what it builds on."""
    base = builds_on(archive, row)
    if base is not None:
        return diff_json(archive, archive.row(*base), row, (), limit)
    found = diff_documents({}, archive.document_of(row), archive.loader, limit=limit)
    return _diff_json(archive, None, row, found)


def diff_json(archive: Archive, old: Row, new: Row, path: Path, limit: int) -> Json:
    """What differs between two snapshots, or between what stands at a path in them."""
    if path:
        before, after = (archive.part_of(row, (str(path[0]),)) for row in (old, new))
        every = diff_documents(before, after, archive.loader, stored=True).changes
        changes = [each for each in every if all(map(eq, each.path, path))]
        found = Diff(changes=tuple(changes[:limit]), truncated=len(changes) > limit)
    else:
        before, after = archive.documents_of(old, new)
        found = diff_documents(before, after, archive.loader, limit=limit, stored=True)
    return _diff_json(archive, old, new, found)


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


def blame_json(archive: Archive, row: Row, path: Path, check_wanted: CheckWanted) -> Json:
    """Who last set the value at a path."""
    found = blame(archive, row, path, progress=lambda _: check_wanted())
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
