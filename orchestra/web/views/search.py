"""Searching as JSON: where a text came from, where a condition holds, which snapshots changed a value."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from orchestra.errors import UnknownPath
from orchestra.history.archive import Archive
from orchestra.history.paths import MISSING, Inside, Path, format_path, open_value, walk
from orchestra.history.search import condition, documents, first_where, matching_snapshots
from orchestra.history.text_search import Hit, TextSearch
from orchestra.history.variables import readable_document
from orchestra.limits import WEB_EXCERPT_CHARS
from orchestra.ports.store import RunRow
from orchestra.web.views.cancel import CheckWanted
from orchestra.web.views.fields import Json


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
    return {
        "seq": hit.seq,
        "path": list(hit.path),
        "text": format_path(hit.path),
        "excerpt": excerpt,
        "where": "decision" if hit.path[:1] == ("decisions",) else "state",
    }


def first(archive: Archive, run: RunRow, expression: str, check_wanted: CheckWanted) -> Json:
    """The first snapshot where a condition holds."""
    row = first_where(
        archive, run.run, condition(expression), progress=lambda _at, _of: check_wanted(), skip_damaged=True
    )
    if row is None:
        return {"seq": None, "reference": None}
    return {"seq": row.seq, "reference": f"{row.run}@{row.seq}"}


def matches(archive: Archive, run: RunRow, expression: str, limit: int, check_wanted: CheckWanted) -> Json:
    """Every snapshot where a condition holds."""
    rows = matching_snapshots(
        archive, run.run, condition(expression), progress=lambda _at, _of: check_wanted()
    )
    seqs = [row.seq for row in islice(rows, limit + 1)]
    return {"seqs": seqs[:limit], "truncated": len(seqs) > limit}


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
    mine, theirs = _plain(one, archive), _plain(other, archive)
    return type(mine) is type(theirs) and bool(mine == theirs)


def _plain(held: Any, archive: Archive) -> Any:
    found = open_value(held, archive.loader)
    return found.data if isinstance(found, Inside) else found
