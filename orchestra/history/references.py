"""References: how people name a snapshot.

`RUN` (its head), `RUN@12`, `RUN@-1` (one before the head), `RUN@head`, `RUN@last-good`, `RUN@phase:NAME`
(the newest start of that phase), a digest prefix of at least four characters, or the UUID derived from a
digest. A run may be named by any beginning of its id that fits no other run.
"""

import re
from itertools import count
from typing import Final
from uuid import UUID

from orchestra.errors import AmbiguousReference, BadName, BadReference, UnknownRun, UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_good
from orchestra.ids import RunId, matches_uuid, run_id
from orchestra.ports.store import Row, RowQuery, RunQuery

_DIGEST: Final = re.compile(r"[0-9a-f]{4,64}")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SHOWN: Final = 5
_PAGE_RUNS: Final = 1000


def resolve(archive: Archive, reference: str) -> Row:
    """The row that a reference names, with its content.

    Raises `BadReference`, `UnknownRun`, `UnknownSnapshot` or `AmbiguousReference`.
    """
    run, at, where = reference.partition("@")
    if at:
        return archive.row(*_in_run(archive, resolve_run(archive, run), where))
    if _UUID.fullmatch(reference.lower()):
        wanted = UUID(reference)
        low, high = wanted.bytes[:6].ljust(32, b"\0"), wanted.bytes[:6].ljust(32, b"\xff")
        rows = archive.store.find(low, high, 1000)
        return _only(archive, str(wanted), [row for row in rows if matches_uuid(row.digest, wanted)])
    try:
        found = resolve_run(archive, reference)
    except UnknownRun:
        prefix = reference.lower()
        if not _DIGEST.fullmatch(prefix):
            raise
        low, high = bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))
        return _only(archive, prefix, archive.store.find(low, high, _SHOWN + 1))
    return archive.row(found, archive.run(found).head)


def resolve_run(archive: Archive, text: str) -> RunId:
    """The run that a whole id, or the beginning of only one, names."""
    try:
        run = run_id(text)
    except BadName:
        raise BadReference(reference=text, reason="it names no run") from None
    if archive.store.run(run) is not None:
        return run
    near = _runs_beginning(archive, run)
    if len(near) > 1:
        examples = ", ".join(near[:_SHOWN])
        raise AmbiguousReference(prefix=text, count=_count(len(near)), what="runs", examples=examples)
    return near[0] if near else archive.run(run).run


def _runs_beginning(archive: Archive, run: RunId) -> list[RunId]:
    """Runs whose ids begin so, newest first, one more than is shown at most.

    A store finds ids that hold the text anywhere, so all of those are gone through: one that was left out
    could make the beginning of another look like the only one.
    """
    found: list[RunId] = []
    for offset in count(0, _PAGE_RUNS):
        rows = archive.store.runs(RunQuery(contains=run, limit=_PAGE_RUNS, offset=offset))
        found += [row.run for row in rows if row.run.startswith(run)]
        if len(rows) < _PAGE_RUNS or len(found) > _SHOWN:
            break
    return found[: _SHOWN + 1]


def _count(found: int) -> str:
    return f"more than {_SHOWN}" if found > _SHOWN else str(found)


def _in_run(archive: Archive, run: RunId, where: str) -> tuple[RunId, int]:
    head = archive.run(run).head
    if where in ("", "head"):
        return run, head
    if where == "last-good":
        return run, last_good(archive, run)
    if where.startswith("phase:"):
        return run, _phase(archive, run, where.removeprefix("phase:"))
    if re.fullmatch(r"-?\d{1,12}", where):
        number = int(where)
        if number < -head:  # not the first one: going back further than there is may be a mistake
            raise UnknownSnapshot(run=run, reference=where, reason=f"its snapshots are 0 to {head}")
        return run, number if number >= 0 else head + number
    raise BadReference(reference=f"{run}@{where}", reason=f"{where!r} is no place in a run")


def _phase(archive: Archive, run: RunId, phase: str) -> int:
    for triggers in (("phase_start",), ()):
        query = RowQuery(run=run, phase=phase, triggers=triggers, newest_first=True, limit=1, content=False)
        rows = archive.store.rows(query)
        if rows:
            return rows[0].seq
    seen = sorted({row.phase for row in archive.store.rows(RowQuery(run=run, content=False)) if row.phase})
    reason = f"its phases are {', '.join(seen)}" if seen else "it has no phases yet"
    raise UnknownSnapshot(run=run, reference=f"phase:{phase}", reason=reason)


def _only(archive: Archive, text: str, rows: list[Row]) -> Row:
    if not rows:
        reason = f"no run or snapshot in {archive.store.place} begins with it"
        raise BadReference(reference=text, reason=reason)
    if len(rows) > 1:
        examples = ", ".join(f"{row.digest.hex()[:16]} ({row.run}@{row.seq})" for row in rows[:_SHOWN])
        raise AmbiguousReference(prefix=text, count=_count(len(rows)), what="snapshots", examples=examples)
    return archive.row(rows[0].run, rows[0].seq)
