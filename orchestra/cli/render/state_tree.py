"""A state as text: a readable tree with a line for every part, or branches with every level opened."""

from collections.abc import Iterator
from typing import Final

from orchestra.cli.render.screen import Line, Span, fit
from orchestra.cli.render.text import count, width
from orchestra.cli.render.values import atom, inline, is_abridged, is_collection, parts_of
from orchestra.codec.loader import Loader
from orchestra.history.paths import format_path
from orchestra.history.places import Place

INDENT: Final = 2
_NEWEST: Final = 8
_WIDE: Final = 120
_NAME_COLUMNS: Final = 28


class StateTree:
    """Prints places below one another."""

    def __init__(self, loader: Loader, *, columns: int | None, whole: bool) -> None:
        self._loader = loader
        self._columns = columns or _WIDE
        self._whole = whole

    def lines(self, place: Place, depth: int = 0) -> Iterator[Line]:
        """The parts of a place, each with its name."""
        place = place.open(self._loader, large=self._whole)
        parts = self._parts(place)
        hidden = len(place.held) - len(parts)
        if hidden:
            yield [(_margin(depth), ""), (f"… {count(hidden, 'older entry', 'older entries')}", "dim")]
        names = [format_path([part.name]) for part in parts]
        column = min(max(map(width, names), default=0), _NAME_COLUMNS)
        for name, part in zip(names, parts, strict=True):
            yield from self._part(name, part, depth, column)

    def _parts(self, place: Place) -> list[Place]:
        everything = self._whole or isinstance(place.held, dict)
        return list(parts_of(place) if everything else place.newest(_NEWEST))

    def _part(self, name: str, part: Place, depth: int, column: int) -> Iterator[Line]:
        part = part.open(self._loader, large=self._whole)
        start: list[Span] = [(_margin(depth), ""), (name, "accent" if depth == 0 else "")]
        gap = " " * (max(column - width(name), 0) + 2)
        room = max(self._columns - depth * INDENT - width(name) - len(gap), 20)
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
    return " " * (depth * INDENT)


_NEWEST_ENTRIES: Final = 12
_LEAST: Final = 12
_DEEP: Final = 40
"""How many levels are drawn, unless everything is asked for."""


class Branches:
    """Draws places below one another."""

    def __init__(self, loader: Loader, *, columns: int | None, whole: bool) -> None:
        self._loader = loader
        self._columns = columns or _WIDE
        self._whole = whole

    def lines(self, place: Place, lead: str = "") -> Iterator[Line]:
        """What is below a place, each part with a line that leads to it."""
        place = place.open(self._loader, large=self._whole)
        parts = self._parts(place)
        hidden = len(place.held) - len(parts)
        if hidden:
            yield [(f"{lead}├─ ", "dim"), (f"… {count(hidden, 'older entry', 'older entries')}", "dim")]
        for at, part in enumerate(parts):
            yield from self._part(part, lead, last=at == len(parts) - 1)

    def _parts(self, place: Place) -> list[Place]:
        everything = self._whole or isinstance(place.held, dict)
        return list(parts_of(place) if everything else place.newest(_NEWEST_ENTRIES))

    def _part(self, part: Place, lead: str, *, last: bool) -> Iterator[Line]:
        part = part.open(self._loader, large=self._whole)
        name = format_path([part.name])
        start: list[Span] = [(f"{lead}{'╰' if last else '├'}─ ", "dim"), (name, "accent" if not lead else "")]
        below = lead + ("   " if last else "│  ")
        if not is_collection(part.held):
            yield from self._atom(part, start, below)
            return
        yield [*start, (f"  {_amount(part)}", "dim")]
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


def _amount(part: Place) -> str:
    if isinstance(part.held, dict):
        return "" if len(part.held) else "empty"
    return count(len(part.held), "entry", "entries")
