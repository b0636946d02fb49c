"""States as JSON: one path of one, what differs between two, who set a value, and what a search finds."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from operator import eq
from typing import Any

from orchestra.errors import UnknownPath
from orchestra.history.archive import Archive
from orchestra.history.blame import blame
from orchestra.history.compare import Change, Diff, diff_documents
from orchestra.history.paths import MISSING, Path, format_path, open_data, walk
from orchestra.history.places import Place, in_reading_order, look
from orchestra.history.search import Hit, TextSearch, condition, documents, matching_snapshots
from orchestra.history.variables import readable_document
from orchestra.limits import WEB_CHANGE_BYTES, WEB_EXCERPT_CHARS, WEB_TEXT_CHARS, WEB_WHOLE_TEXT_CHARS
from orchestra.ports.store import Row, RunRow
from orchestra.web.views.common import CheckWanted, Json
from orchestra.web.views.forms import Former, cut, data_form, kind_of
from orchestra.web.views.snapshots import builds_on, event_with_sentence, reference_json


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
        **_path_json(path),
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
        every = diff_documents(before, after, archive.loader).changes
        changes = [each for each in every if all(map(eq, each.path, path))]
        found = Diff(changes=tuple(changes[:limit]), truncated=len(changes) > limit)
    else:
        before, after = archive.documents_of(old, new)
        found = diff_documents(before, after, archive.loader, limit=limit)
    return _diff_json(archive, old, new, found)


def _diff_json(archive: Archive, old: Row | None, new: Row, found: Diff) -> Json:
    counts = Counter(change.kind for change in found.changes)
    return {
        "from": None if old is None else reference_json(old),
        "to": reference_json(new),
        "changes": [_change(archive, each) for each in found.changes],
        "counts": {kind: counts[kind] for kind in ("added", "removed", "changed")},
        "truncated": found.truncated,
    }


def _change(archive: Archive, change: Change) -> Json:
    before, after = (_form(archive, held, change.path) for held in (change.before, change.after))
    return {**_path_json(change.path), "kind": change.kind, "before": before, "after": after}


def _path_json(path: Path) -> Json:
    return {"path": list(path), "text": format_path(path)}


def _form(archive: Archive, value: Any, path: Path) -> Any:
    return data_form(value, path, archive.loader, WEB_CHANGE_BYTES)


def blame_json(archive: Archive, row: Row, path: Path, check_wanted: CheckWanted) -> Json:
    """Who last set the value at a path."""
    found = blame(archive, row, path, progress=lambda _: check_wanted())
    return {
        "run": found.row.run,
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


# --- searching: where a text came from, where a condition holds, which snapshots changed a value


def hits(archive: Archive, run: RunRow, text: str, limit: int) -> Iterator[Json | None]:
    """Every hit, and None after each snapshot that was scanned; at the end what came of it."""
    scanned, found = 0, 0
    for each in TextSearch(archive, text).run(run):
        if not isinstance(each, Hit):
            scanned += 1
            yield None
            continue
        if found >= limit:
            yield {"done": True, "scanned": scanned, "truncated": True}
            return
        found += 1
        yield _hit(each, len(text))
    yield {"done": True, "scanned": scanned, "truncated": False}


def _hit(hit: Hit, length: int) -> Json:
    start = max(hit.at - WEB_EXCERPT_CHARS, 0)
    end = hit.at + length + WEB_EXCERPT_CHARS
    excerpt = ("…" if start else "") + hit.text[start:end] + ("…" if end < len(hit.text) else "")
    where = "decision" if hit.path[:1] == ("decisions",) else "state"
    return {"seq": hit.seq, **_path_json(hit.path), "excerpt": excerpt, "where": where}


def first(archive: Archive, run: RunRow, expression: str, check_wanted: CheckWanted) -> Json:
    """The first snapshot where a condition holds."""
    row = next(_where(archive, run, expression, check_wanted), None)
    return {"seq": row and row.seq, "reference": row and reference(row)}


def matches(archive: Archive, run: RunRow, expression: str, limit: int, check_wanted: CheckWanted) -> Json:
    """Every snapshot where a condition holds."""
    seqs = [row.seq for row in islice(_where(archive, run, expression, check_wanted), limit + 1)]
    return {"seqs": seqs[:limit], "truncated": len(seqs) > limit}


def _where(archive: Archive, run: RunRow, expression: str, check_wanted: CheckWanted) -> Iterator[Row]:
    wanted = condition(expression)
    return matching_snapshots(archive, run.run, wanted, progress=lambda _at, _of: check_wanted())


def touches(archive: Archive, run: RunRow, path: Path, check_wanted: CheckWanted) -> Json:
    """The snapshots that changed the value at a path."""
    seqs: list[int] = []
    before: Any = MISSING
    names = None if not path else (str(path[0]),)
    for row, document in documents(archive, run.run, skip_damaged=True, names=names):
        check_wanted()
        held = walk(readable_document(document), path, archive.loader)
        if held is not before and not _same(held, before, archive):
            seqs.append(row.seq)
        before = held
    if not seqs:
        reason = "no snapshot of the run has anything there"
        raise UnknownPath(reference=run.run, path=format_path(path), reason=reason)
    return {"seqs": seqs}


def _same(one: Any, other: Any, archive: Archive) -> bool:
    if (one is MISSING) != (other is MISSING):
        return False
    mine, theirs = open_data(one, archive.loader), open_data(other, archive.loader)
    return type(mine) is type(theirs) and bool(mine == theirs)
