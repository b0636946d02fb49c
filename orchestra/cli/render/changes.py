"""Differences between two states as people read them: grouped by field, long text as a small diff."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from itertools import groupby
from typing import Any, Final

import attrs

from orchestra.cli.render.json_text import print_json
from orchestra.cli.render.screen import Line, Screen, Span, Style, screen
from orchestra.cli.render.table import Column, print_table
from orchestra.cli.render.text import count, cut, width
from orchestra.cli.render.times import duration, short
from orchestra.cli.render.values import inline, parts_of
from orchestra.cli.store import option
from orchestra.codec.loader import Loader
from orchestra.history.archive import Archive
from orchestra.history.compare import Change, Diff, diff_documents
from orchestra.history.paths import Path, format_path
from orchestra.history.places import Place, plain_json, read_path
from orchestra.history.variables import type_at
from orchestra.ids import Instant, iso
from orchestra.ports.store import Row

_STAT: Final = (
    Column("field"),
    Column("added", align="right"),
    Column("changed", align="right"),
    Column("removed", align="right"),
)
_SIGNS: Final[dict[str, Span]] = {
    "added": ("+ ", "good"),
    "removed": ("− ", "bad"),
    "changed": ("~ ", "warn"),
}
_THEIRS: Final = frozenset(
    {"result", "private", "inputs", "details", "context", "answer", "intent", "outcome", "data"}
)
_DETAILS: Final = frozenset(
    {"at", "until", "run", "family", "origin", "digest", "key", "effect_key", "seq", "generation", "ordinal"}
    | {"visits", "history", "completed_tasks", "open_failures", "memory_peak_bytes", "elapsed_us"}
)
"""Fields that differ between any two runs and say little: times, keys, ids, digests and counters."""
_ORDER: Final = ("status", "failure", "inputs", "context", "outputs", "decisions", "evaluations", "tasks")
"""What tells most comes first, the other fields in their own order."""
_PER_FIELD: Final = 20
_TEXT_LINES: Final = 8
_LONG_CHARS: Final = 40
_WIDE: Final = 120


def counts(changes: Iterable[Change]) -> dict[str, int]:
    """How many changes there are of each kind."""
    found = {"added": 0, "removed": 0, "changed": 0}
    for change in changes:
        found[change.kind] += 1
    return found


def by_meaning(changes: Iterable[Change]) -> tuple[list[Change], list[Change]]:
    """What means something, the fields that tell most first, and the times, keys, ids and counters."""
    telling: list[Change] = []
    details: list[Change] = []
    for change in sorted(changes, key=_rank):
        (details if _is_detail(change.path) else telling).append(change)
    return telling, details


def _rank(change: Change) -> int:
    field = change.path[0] if change.path else "status"
    return _ORDER.index(str(field)) if field in _ORDER else len(_ORDER)


def _is_detail(path: Path) -> bool:
    """Whether a field of ours on the way there is one that says little; names that people gave are not."""
    fields = [str(step) for at, step in enumerate(path) if (kind := type_at(path[:at])) and attrs.has(kind)]
    return any(name in _DETAILS or name.endswith("_at") for name in fields)


def change_json(change: Change) -> dict[str, Any]:
    """A change as JSON."""
    said: dict[str, Any] = {"path": format_path(change.path), "kind": change.kind}
    if change.kind != "added":
        said["before"] = plain_json(with_times(change.before, change.path))
    if change.kind != "removed":
        said["after"] = plain_json(with_times(change.after, change.path))
    return said


def with_times(held: Any, path: Path, form: Callable[[Instant], str] = iso) -> Any:
    """Data with the instants of our own as text; what people handed in stays as it is."""
    if any(step in _THEIRS for step in path):
        return held
    if isinstance(held, dict):
        return {part.name: with_times(part.held, (*path, part.name), form) for part in parts_of(Place(held))}
    if isinstance(held, list):
        return [with_times(each, (*path, at), form) for at, each in enumerate(held)]
    instant = Place(held, False, path[-1] if path else "").instant
    return held if instant is None else form(instant)


def time_of_day(at: Instant) -> str:
    """An instant as a list of changes shows it."""
    return short(at, with_date=False)


def time_to_the_millisecond(at: Instant) -> str:
    """An instant where its seconds do not tell it from another."""
    return f"{short(at, with_date=False)}.{at // 1000 % 1000:03}"


class ChangeList:
    """Prints changes."""

    def __init__(self, loader: Loader, *, columns: int | None, whole: bool) -> None:
        self._loader = loader
        self._columns = columns or _WIDE
        self._whole = whole

    def lines(self, changes: Sequence[Change]) -> Iterator[Line]:
        """All changes, by the field of the state that they are in."""
        for field, group in groupby(changes, key=lambda change: change.path[0] if change.path else "."):
            listed = list(group)
            if len(listed) == 1 and len(listed[0].path) == 1:
                yield from self._change(listed[0], str(field), "")
                continue
            yield [(str(field), "bold")]
            shown = listed if self._whole else listed[:_PER_FIELD]
            for change in shown:
                yield from self._change(change, format_path(change.path[1:]), "  ")
            if len(listed) > len(shown):
                yield [(f"  … {count(len(listed) - len(shown), 'more change')} (--full shows all)", "dim")]

    def _change(self, change: Change, name: str, margin: str) -> Iterator[Line]:
        start: list[Span] = [(margin, ""), _SIGNS[change.kind], (name + "  ", "" if margin else "bold")]
        room = max(self._columns - sum(width(text) for text, _ in start), 20)
        before, after = _both(change, time_of_day)
        if before == after:  # both within one second
            before, after = _both(change, time_to_the_millisecond)
        if change.kind == "changed" and _long(before, after):
            yield start
            yield from self._texts(before, after)
        elif change.kind == "changed":
            yield [*start, *self._pair(before, after, room)]
        else:
            yield [*start, *self._value(before if change.kind == "removed" else after, room)]

    def _pair(self, before: Any, after: Any, room: int) -> list[Span]:
        old = self._value(before, room // 2 - 2)
        return [*_paint(old, "dim"), (" → ", "dim"), *self._value(after, room // 2 - 2)]

    def _value(self, held: Any, room: int) -> list[Span]:
        wide = 1 << 20 if self._whole else max(room, 8)
        return inline(Place(held, True), self._loader, room=wide)[0]

    def _texts(self, before: str, after: str) -> Iterator[Line]:
        lines = list(_text_diff(before, after))
        shown = lines if self._whole else lines[:_TEXT_LINES]
        for sign, text in shown:
            style: Style = "good" if sign == "+" else "bad" if sign == "−" else "dim"
            room = self._columns - 8
            yield [("      ", ""), (sign + " ", style), (text if self._whole else cut(text, room), style)]
        if len(lines) > len(shown):
            yield [("      ", ""), (f"… {count(len(lines) - len(shown), 'more line')}", "dim")]


def _both(change: Change, form: Callable[[Instant], str]) -> tuple[Any, Any]:
    """What was there before and after, with instants in one form."""
    return with_times(change.before, change.path, form), with_times(change.after, change.path, form)


def _long(before: Any, after: Any) -> bool:
    texts = isinstance(before, str) and isinstance(after, str)
    return texts and ("\n" in before + after or max(len(before), len(after)) > _LONG_CHARS)


def _text_diff(before: str, after: str) -> Iterator[tuple[str, str]]:
    if "\n" in before or "\n" in after:
        for line in list(unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))[2:]:
            if line.startswith("@@"):
                continue
            yield {"+": "+", "-": "−"}.get(line[0], " "), line[1:]
        return
    start = _shared_length(before, after)
    begin = max(start - 20, 0)
    lead = "…" if begin else ""
    if start < len(before):
        yield "−", lead + before[begin:]
    yield "+", lead + after[begin:]


def _shared_length(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return at
    return min(len(one), len(other))


def _paint(spans: Iterable[Span], style: Style) -> list[Span]:
    return [(text, style) for text, _ in spans]


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
        print_json(_json(old, new, found))
        return
    out = screen()
    out.print_cut(_title(old, new))
    out.line()
    _body(out, opened, found, stat=stat, every=every or path is not None, whole=whole)
    if found.changes:
        out.hints((f"orchestra blame {new.run}@{new.seq} PATH{option(store)}", "who set a value"))


def _body(out: Screen, opened: Archive, found: Diff, *, stat: bool, every: bool, whole: bool) -> None:
    if not found.changes:
        out.line("No difference.")
        return
    if stat:
        print_table(out, _STAT, _stat_rows(found.changes))
    else:
        telling, details = by_meaning(found.changes)
        shown = ChangeList(opened.loader, columns=out.columns, whole=whole)
        out.lines(shown.lines(telling))
        if every:
            out.lines(shown.lines(details))
        elif details:
            more = f"… {len(details)} more" if telling else f"Only {len(details)} of little meaning"
            out.line((f"{more}: times, keys, ids and counters (--all shows them)", "dim"))
    out.line()
    more = " (and more: only the first were looked at)" if found.truncated else ""
    numbers = counts(found.changes)
    spans: Line = [
        (f"{numbers['changed']:,} changed", "warn"),
        (", ", "dim"),
        (f"{numbers['added']:,} added", "good"),
        (", ", "dim"),
        (f"{numbers['removed']:,} removed", "bad"),
    ]
    out.line(*spans, (more, "dim"))


def _stat_rows(changes: tuple[Change, ...]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for field, group in groupby(changes, key=lambda change: str(change.path[0]) if change.path else "."):
        numbers = counts(group)
        cells: list[Line] = [
            [(f"{numbers[kind]:,}" if numbers[kind] else "", "")] for kind in ("added", "changed", "removed")
        ]
        rows.append([[(field, "bold")], *cells])
    return rows


def _title(old: Row, new: Row) -> Line:
    later = f"@{new.seq}" if old.run == new.run else f"{new.run}@{new.seq}"
    between = f"{count(abs(new.seq - old.seq), 'snapshot')}, " if old.run == new.run else ""
    apart = f"  {between}{duration(abs(new.at - old.at))} apart"
    return [(f"{old.run}@{old.seq}", "bold"), (" → ", "dim"), (later, "bold"), (apart, "dim")]


def _json(old: Row, new: Row, found: Diff) -> dict[str, Any]:
    return {
        "from": _end_json(old),
        "to": _end_json(new),
        "counts": counts(found.changes),
        "truncated": found.truncated,
        "changes": [change_json(change) for change in found.changes],
    }


def _end_json(row: Row) -> dict[str, Any]:
    return {"reference": f"{row.run}@{row.seq}", "digest": row.digest.hex(), "at": iso(row.at)}
