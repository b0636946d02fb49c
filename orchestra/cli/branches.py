"""A state drawn as branches: every level opened, lines lead from each part to what is below it.

Of a long list the newest entries are drawn and long text is cut, unless everything is asked for. Where this
differs from `tree`: nothing is folded into one line, so that the shape of a state can be seen.
"""

from collections.abc import Iterator
from typing import Final

from orchestra.checkpoint.paths import format_path
from orchestra.checkpoint.places import Place
from orchestra.cli.screen import Line, Span, fit
from orchestra.cli.text import count
from orchestra.cli.values import atom, is_collection, parts_of
from orchestra.codec.loader import Loader

_NEWEST: Final = 12
_WIDE: Final = 120
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
        place = place.opened(self._loader, large=self._whole)
        parts = self._parts(place)
        hidden = len(place.held) - len(parts)
        if hidden:
            yield [(f"{lead}├─ ", "dim"), (f"… {count(hidden, 'older entry', 'older entries')}", "dim")]
        for at, part in enumerate(parts):
            yield from self._part(part, lead, last=at == len(parts) - 1)

    def _parts(self, place: Place) -> list[Place]:
        everything = self._whole or isinstance(place.held, dict)
        return list(parts_of(place) if everything else place.newest(_NEWEST))

    def _part(self, part: Place, lead: str, *, last: bool) -> Iterator[Line]:
        part = part.opened(self._loader, large=self._whole)
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
