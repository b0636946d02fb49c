"""Values as people read them: in one line, cut where they are long, with their size; states as trees."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from orchestra.cli.render.screen import Line, Span, fit, length
from orchestra.cli.render.text import count, safe, size, width
from orchestra.cli.render.times import duration, full, short
from orchestra.codec.json_values import LargeValue
from orchestra.codec.loader import Loader
from orchestra.history.paths import format_path
from orchestra.history.places import Place
from orchestra.model.tree import Table, Vec

LONG_CHARS: Final = 200
"""A text longer than this is cut, unless everything is asked for."""
_FIRST = ("status", "description", "reason", "message", "kind", "role", "phase", "agent", "value", "task")
_LAST: Final = ("failure", "result", "private", "details", "history")
_INDENT: Final = 2
_WIDE: Final = 120
_NAME_COLUMNS: Final = 28
_LEAST: Final = 12
_DEEP: Final = 40
"""How many levels are drawn as branches, unless everything is asked for."""


def is_collection(held: Any) -> bool:
    """Whether something has parts that a path leads to."""
    return isinstance(held, dict | list | tuple | Vec | Table)


def parts_of(place: Place) -> Iterator[Place]:
    """The parts of an opened place; the fields of our own in the order in which people ask for them."""
    ours = isinstance(place.held, dict) and not place.theirs
    yield from sorted(place.below(), key=_weight) if ours else place.below()


def _weight(part: Place) -> tuple[int, int]:
    if part.name in _FIRST:
        return 0, _FIRST.index(str(part.name))
    if part.instant is not None:
        return 3, 0
    return (2, _LAST.index(str(part.name))) if part.name in _LAST else (1, 0)


def atom(place: Place, *, whole: bool = False, brief: bool = False) -> Span:
    """An opened place without parts, in one span."""
    held = place.held
    if place.instant is not None:
        return (short(place.instant, with_date=False), "dim") if brief else (full(place.instant), "")
    match held:
        case None:
            return "none", "dim"
        case bool():
            return str(held).lower(), "accent"
        case float():
            return repr(held) if whole else f"{held:.6g}", "accent"
        case int():
            return f"{held}{_meaning(place)}", "accent"
        case str():
            return _text(held, whole), ""
        case bytes():
            return f"{held[:16].hex(' ')}{'…' if len(held) > 16 else ''} ({size(len(held))})", "dim"
        case datetime():
            return held.isoformat(" "), ""
        case LargeValue():
            return f"a value of {size(held.size)}", "dim"
        case set() | frozenset():
            members = sorted(each if isinstance(each, str) else repr(each) for each in held)
            return "{" + ", ".join(members) + "}", ""
        case _:
            return str(held), ""


def _meaning(place: Place) -> str:
    """A figure of our own in a unit that people use, behind the exact one."""
    name = "" if place.theirs else str(place.name)
    if name.endswith("_us"):
        return f" ({duration(place.held)})"
    if name.endswith("_bytes"):
        return f" ({size(place.held)})"
    return f" ({place.held / 1_000_000:.2f})" if name.endswith("_micros") else ""


def _text(text: str, whole: bool) -> str:
    body = text.strip("\n")
    if not body:
        return repr(text)
    if whole or (len(body) <= LONG_CHARS and "\n" not in body):
        return body
    first = body.split("\n", 1)[0][:LONG_CHARS]
    lines = body.count("\n") + 1
    return f"{first}… ({count(lines, 'line') if lines > 1 else count(len(text), 'character')})"


def inline(place: Place, loader: Loader, *, room: int, bare: bool = False) -> tuple[list[Span], bool]:
    """A place in one line of at most `room` columns, and whether it is all there."""
    spans: list[Span] = []
    left = room
    for text, style in _spans(place.open(loader, large=False), loader, bare):
        spans.append((text, style))
        left -= len(safe(text))
        if left < 0:
            return fit(spans, room), length(spans) <= room
    return spans, True


def is_abridged(place: Place, loader: Loader) -> bool:
    """Whether one line about a place leaves out some of its text."""
    place = place.open(loader)
    if isinstance(place.held, str):
        return _text(place.held, whole=False) != _text(place.held, whole=True)
    return is_collection(place.held) and any(is_abridged(part, loader) for part in place.below())


def _spans(place: Place, loader: Loader, bare: bool) -> Iterator[Span]:
    if not is_collection(place.held):
        yield atom(place, brief=True)
        return
    named = isinstance(place.held, dict | Table)
    begin, end = ("", "") if bare and named else "{}" if named else "[]"
    yield begin, "dim"
    for at, part in enumerate(parts_of(place)):
        yield ", " if at else "", "dim"
        yield f"{part.name}: " if named else "", "dim"
        yield from _spans(part.open(loader, large=False), loader, False)
    yield end, "dim"


class _Drawing:
    """Draws the parts of places, of long lists only the newest unless everything is wanted."""

    newest: int

    def __init__(self, loader: Loader, *, columns: int | None, whole: bool) -> None:
        self._loader = loader
        self._columns = columns or _WIDE
        self._whole = whole

    def _parts(self, place: Place) -> tuple[list[Place], str]:
        """The parts that are drawn, and what is said of the others."""
        place = place.open(self._loader, large=self._whole)
        everything = self._whole or isinstance(place.held, dict)
        parts = list(parts_of(place) if everything else place.newest(self.newest))
        hidden = len(place.held) - len(parts)
        return parts, f"… {count(hidden, 'older entry', 'older entries')}" if hidden else ""


class StateTree(_Drawing):
    """Prints places below one another."""

    newest = 8

    def lines(self, place: Place, depth: int = 0) -> Iterator[Line]:
        """The parts of a place, each with its name."""
        parts, hidden = self._parts(place)
        if hidden:
            yield [(_margin(depth), ""), (hidden, "dim")]
        names = [format_path([part.name]) for part in parts]
        column = min(max(map(width, names), default=0), _NAME_COLUMNS)
        for name, part in zip(names, parts, strict=True):
            yield from self._part(name, part, depth, column)

    def _part(self, name: str, part: Place, depth: int, column: int) -> Iterator[Line]:
        part = part.open(self._loader, large=self._whole)
        start: list[Span] = [(_margin(depth), ""), (name, "accent" if depth == 0 else "")]
        gap = " " * (max(column - width(name), 0) + 2)
        room = max(self._columns - depth * _INDENT - width(name) - len(gap), 20)
        line, fits = inline(part, self._loader, room=room, bare=depth > 0)
        fits = fits and not (self._whole and is_abridged(part, self._loader))
        if is_collection(part.held) and not fits and (self._whole or depth == 0):
            amount = "" if isinstance(part.held, dict) else count(len(part.held), "entry", "entries")
            yield [*start, (gap, ""), (amount, "dim")]
            yield from self.lines(part, depth + 1)
        elif is_collection(part.held):
            yield [*start, (gap, ""), *line]
        else:
            yield from self._atom(part, [*start, (gap, "")], depth, room)

    def _atom(self, part: Place, start: list[Span], depth: int, room: int) -> Iterator[Line]:
        text, style = atom(part, whole=self._whole)
        short = "\n" not in text and width(text) <= room
        if short or not (self._whole and isinstance(part.held, str)):
            yield [*start, *fit([(text, style)], room)]
            return
        yield [*start, (count(len(part.held), "character"), "dim")]
        for each in part.held.splitlines():
            yield [(_margin(depth + 1), ""), ("│ ", "dim"), (each, "")]


def _margin(depth: int) -> str:
    return " " * (depth * _INDENT)


class Branches(_Drawing):
    """Draws places below one another, each with a line that leads to it."""

    newest = 12

    def lines(self, place: Place, lead: str = "") -> Iterator[Line]:
        """What is below a place."""
        parts, hidden = self._parts(place)
        if hidden:
            yield [(f"{lead}├─ ", "dim"), (hidden, "dim")]
        for at, part in enumerate(parts):
            yield from self._part(part, lead, last=at == len(parts) - 1)

    def _part(self, part: Place, lead: str, *, last: bool) -> Iterator[Line]:
        part = part.open(self._loader, large=self._whole)
        name = format_path([part.name])
        start: list[Span] = [(f"{lead}{'╰' if last else '├'}─ ", "dim"), (name, "accent" if not lead else "")]
        below = lead + ("   " if last else "│  ")
        if not is_collection(part.held):
            yield from self._atom(part, start, below)
            return
        amount = count(len(part.held), "entry", "entries")
        if isinstance(part.held, dict):
            amount = "" if part.held else "empty"
        yield [*start, (f"  {amount}", "dim")]
        if self._whole or len(lead) < _DEEP * 3:
            yield from self.lines(part, below)
        elif len(part.held):
            yield [(f"{below}╰─ … (--full draws what is deeper)", "dim")]

    def _atom(self, part: Place, start: list[Span], below: str) -> Iterator[Line]:
        text, style = atom(part, whole=self._whole)
        if self._whole and "\n" in text:
            yield [*start, (f"  {count(len(part.held), 'character')}", "dim")]
            for each in text.splitlines():
                yield [(f"{below}┊ ", "dim"), (each, "")]
            return
        line: list[Span] = [*start, ("  ", ""), (text, style)]
        yield line if self._whole else fit(line, max(self._columns, len(below) + _LEAST))
