"""Blame: which snapshot, and who, last set a place in a state.

The search goes back along what a snapshot builds on: through a rollback to its target, through a fork to its
origin. States are compared only where a patch can have touched the place.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import attrs

from orchestra.codec.patch import Operation
from orchestra.errors import UnknownPath
from orchestra.history.archive import Archive
from orchestra.history.lineage import ancestry_through_forks
from orchestra.history.paths import MISSING, Path, format_path, open_data, plain_data, walk
from orchestra.history.variables import readable_document, readable_path
from orchestra.model.snapshot import Header, Headline
from orchestra.model.tree import Vec
from orchestra.ports.store import Row

AUTHORS: Final[dict[str, tuple[str, ...]]] = {
    "decisions": ("decision_made",),
    "confidence": ("confidence_reported", "task_completed"),
    "metrics": ("spent", "run_resumed", "rolled_back", "forked"),
    "cursor": ("phase_started",),
    "path": ("phase_started", "phase_completed"),
    "status": ("run_ended", "run_paused", "run_resumed", "rolled_back", "forked", "run_started"),
    "failure": ("run_ended",),
    "messages": ("message_streamed", "message_posted"),
    "tool_calls": ("tool_call_changed",),
    "evaluations": ("evaluation_completed", "criterion_scored"),
    "waits": ("wait_closed", "wait_opened"),
    "effects": ("effect_settled", "effect_intended"),
    "rollbacks": ("rolled_back",),
    "origin": ("forked",),
}
"""Which events set which part of a state."""


@attrs.frozen(kw_only=True)
class Blame:
    """Who set a value: the snapshot that brought it, its header, and what stood there before."""

    row: Row
    header: Header
    after: Any  # ordinary data; None when it has its default again
    before: Any | None  # what stood there, None when nothing did
    was_there: bool  # whether anything stood there before
    exact: bool  # False: pruned snapshots lie between, so it was this one or one of them
    who: str | None  # the agent whose event set it, as far as the headlines tell
    event: Headline | None


def blame(archive: Archive, row: Row, path: Path, *, progress: Callable[[Row], None] | None = None) -> Blame:
    """Who last set the value at `path` in the snapshot `row`; raises `UnknownPath`."""
    wanted = _at(archive, row, path)
    path = _counted_from_start(archive, row, path)
    oldest = row
    kept = (each for each in ancestry_through_forks(archive, row) if not each.pruned)
    for newer, older in pairwise(kept):
        oldest = older
        if progress is not None:
            progress(older)
        follows = older.run == newer.run and older.seq == newer.seq - 1  # else there is no patch to ask
        if not follows or any(_touches(each, path) for each in archive.step(newer).operations):
            before = _at(archive, older, path)
            if type(before) is not type(wanted) or before != wanted:
                return _found(archive, newer, older, path, wanted, before)
    if wanted is MISSING:
        reason = "no such field, key or position, or it has had its default all along"
        raise UnknownPath(reference=f"{row.run}@{row.seq}", path=format_path(path), reason=reason)
    return _found(archive, oldest, None, path, wanted, MISSING)


def _found(archive: Archive, row: Row, older: Row | None, path: Path, after: Any, before: Any) -> Blame:
    header = archive.header(row)
    event = _author(header, path)
    exact = older is None or older.run != row.run or older.seq == row.seq - 1 or "rolled_back" in row.triggers
    return Blame(
        row=row,
        header=header,
        after=None if after is MISSING else after,
        before=None if before is MISSING else before,
        was_there=before is not MISSING,
        exact=exact,
        who=event.who if event else None,
        event=event,
    )


def _author(header: Header, path: Path) -> Headline | None:
    """The event that most likely set a place: the one that names it, one of its kind, or the only one."""
    lines = header.events
    kinds = AUTHORS.get(str(path[0]), ()) if path else ()
    named = [line for line in lines if path[1:] and path[1] in (line.what, line.who)]
    fitting = [line for line in lines if line.kind in kinds]
    if named or fitting:
        return named[0] if named else fitting[-1]
    return lines[0] if len(lines) == 1 else None


def _touches(operation: Operation, path: Path) -> bool:
    """Whether a change can have touched `path`."""
    if operation[0] == "reset":
        return True
    steps = readable_path(operation[1])
    shared = min(len(steps), len(path))
    if list(steps[:shared]) != list(path[:shared]):
        return False
    if operation[0] == "put" and len(path) > len(steps):
        return any(key == path[len(steps)] for key, _ in operation[2])
    return True


def _at(archive: Archive, row: Row, path: Path) -> Any:
    part = archive.part_of(row, (str(path[0]),)) if path else archive.document_of(row)
    held = walk(readable_document(part), path, archive.loader)
    return MISSING if held is MISSING else plain_data(held, archive.loader, large=False)


def _counted_from_start(archive: Archive, row: Row, path: Path) -> Path:
    """The path with positions counted from the start, so that they mean the same in older snapshots."""
    held: Any = readable_document(archive.document_of(row))
    steps: list[str | int] = []
    for step in path:
        if isinstance(step, int) and step < 0:
            inside = open_data(held, archive.loader)
            step += len(inside) if isinstance(inside, Vec | list | tuple) else 0
        held = walk(held, (step,), archive.loader)
        steps.append(step)
    return tuple(steps)
