"""Differences between two states as people read them: grouped by field, long text as a small diff."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from itertools import groupby
from typing import Any, Final

import attrs

from orchestra.cli.render.screen import Line, Span, Style
from orchestra.cli.render.text import count, cut, width
from orchestra.cli.render.times import short
from orchestra.cli.render.values import inline, parts_of
from orchestra.codec.json_values import to_json
from orchestra.codec.loader import Loader
from orchestra.history.compare import Change
from orchestra.history.paths import Path, format_path
from orchestra.history.places import Place
from orchestra.history.variables import type_at
from orchestra.ids import Instant, iso

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
    return {"added": 0, "removed": 0, "changed": 0} | Counter(change.kind for change in changes)


def by_meaning(changes: Iterable[Change]) -> tuple[list[Change], list[Change]]:
    """What means something, the fields that tell most first, and the times, keys, ids and counters."""
    sides: tuple[list[Change], list[Change]] = [], []
    for change in sorted(changes, key=_rank):
        sides[_is_detail(change.path)].append(change)
    return sides


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
        said["before"] = to_json(with_times(change.before, change.path))
    if change.kind != "removed":
        said["after"] = to_json(with_times(change.after, change.path))
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


def _time_of_day(at: Instant) -> str:
    return short(at, with_date=False)


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
        before, after = _both(change, _time_of_day)
        if before == after:  # both within one second
            before, after = _both(change, lambda at: f"{_time_of_day(at)}.{at // 1000 % 1000:03}")
        if change.kind != "changed":
            yield [*start, *self._value(before if change.kind == "removed" else after, room)]
        elif _long(before, after):
            yield start
            yield from self._texts(before, after)
        else:
            old, new = (self._value(each, room // 2 - 2) for each in (before, after))
            yield [*start, *((text, "dim") for text, _ in old), (" → ", "dim"), *new]

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
    return with_times(change.before, change.path, form), with_times(change.after, change.path, form)


def _long(before: Any, after: Any) -> bool:
    texts = isinstance(before, str) and isinstance(after, str)
    return texts and ("\n" in before + after or max(len(before), len(after)) > _LONG_CHARS)


def _text_diff(before: str, after: str) -> Iterator[tuple[str, str]]:
    if "\n" in before or "\n" in after:
        for line in list(unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))[2:]:
            if not line.startswith("@@"):
                yield {"+": "+", "-": "−"}.get(line[0], " "), line[1:]
        return
    pairs = enumerate(zip(before, after, strict=False))
    start = next((at for at, (one, other) in pairs if one != other), min(len(before), len(after)))
    begin = max(start - 20, 0)
    lead = "…" if begin else ""
    if start < len(before):
        yield "−", lead + before[begin:]
    yield "+", lead + after[begin:]
