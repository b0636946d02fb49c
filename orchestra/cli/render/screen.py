"""The screen: lines of styled text, printed with or without colour, as wide as there is room.

A line is a sequence of spans, a span is a text and the name of a style. What a span says is made safe here,
on its way out, so that text from a run can never be taken for anything but text.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TextIO, TypeAlias

from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.text import cut, safe, width

Style: TypeAlias = Literal["", "dim", "bold", "accent", "good", "bad", "warn"]
Span: TypeAlias = tuple[str, Style]
Line: TypeAlias = Sequence[Span]

_CODES: Final[dict[Style, str]] = {
    "": "",
    "dim": "\x1b[2m",
    "bold": "\x1b[1m",
    "accent": "\x1b[36m",
    "good": "\x1b[32m",
    "bad": "\x1b[31m",
    "warn": "\x1b[33m",
}
_RESET: Final = "\x1b[0m"
_ASCII: Final = str.maketrans(
    {"●": "*", "○": "o", "✔": "+", "✖": "x", "…": "~", "→": ">", "·": "-", "−": "-", "━": "=", "─": "-"}
    | {"◆": "#", "◌": ".", "‖": "=", "⊘": "/", "✎": "!", "│": "|", "µ": "u", "⑂": "Y", "◍": "?", "×": "x"}
    | {"┊": ":", "↻": "@", "╭": ".", "╮": ".", "╰": "`", "╯": "'", "├": "|", "▶": ">", "■": "#"}
    | {"↺": "<", "⚖": "%"}
)
DEFAULT_COLUMNS: Final = 80


class Screen:
    """Where lines are printed."""

    def __init__(self, out: TextIO, *, tty: bool, colour: bool, columns: int | None) -> None:
        self.out = out
        self.tty = tty
        self.colour = colour
        self.columns = columns
        self._plain = not _speaks_unicode(out)

    @property
    def lively(self) -> bool:
        """Whether what is shown can be changed in place."""
        return self.tty and not self._plain and os.environ.get("TERM") not in ("dumb", None, "")

    def line(self, *spans: Span | str) -> None:
        """Print one line."""
        self.out.write(self.render([_span(each) for each in spans]) + "\n")

    def lines(self, lines: Iterable[Line]) -> None:
        """Print several lines."""
        for line in lines:
            self.line(*line)

    def print_cut(self, line: Line, *, indent: int = 0) -> None:
        """Print one line, cut to the room there is."""
        room = None if self.columns is None else self.columns - indent
        self.line(" " * indent, *(line if room is None else fit(line, room)))

    def paragraph(self, line: Line, *, indent: int = 0) -> None:
        """Print text that may be long; on a terminal it is broken between words, and goes on indented."""
        if not self.tty or self.columns is None:
            self.line(*line)
            return
        rows: list[list[Span]] = [[]]
        for word, style in _words(line):
            bare = length([(word.rstrip(), style)])
            fits = 0 < bare <= self.columns - indent  # else another row would not help
            if rows[-1] and fits and length(rows[-1]) + bare > self.columns:
                rows.append([(" " * indent, "")] if indent else [])
            rows[-1].append((word, style))
        self.lines(rows)

    def hints(self, *hints: tuple[str, str]) -> None:
        """What to type next and what for, for a person who is looking."""
        if not self.tty or not hints:
            return
        self.line()
        for command, purpose in hints:
            room = (self.columns or DEFAULT_COLUMNS) - width(command) - width(purpose) - 5
            self.line(("→ ", "dim"), command, (f"   {purpose}" if purpose and room >= 0 else "", "dim"))

    def render(self, line: Line) -> str:
        """A line as characters for the terminal."""
        return "".join(self._paint(text, style) for text, style in line).rstrip()

    def _paint(self, text: str, style: Style) -> str:
        shown = safe(text)
        if self._plain:
            shown = shown.translate(_ASCII).encode("ascii", "backslashreplace").decode()
        code = _CODES[style] if self.colour else ""
        return f"{code}{shown}{_RESET}" if code and shown else shown


def screen(out: TextIO | None = None) -> Screen:
    """The screen of this process: its standard output, or the stream that is given."""
    out = out if out is not None else own_stdout()
    tty = out.isatty()
    return Screen(out, tty=tty, colour=_wants_colour(tty), columns=_columns(out, tty))


def _wants_colour(tty: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return (forced not in ("", "0")) or (tty and os.environ.get("TERM") != "dumb")


def _columns(out: TextIO, tty: bool) -> int | None:
    """How wide lines may be; a pipe takes any width."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return max(int(asked), 20)
    if not tty:
        return None
    try:
        columns = os.get_terminal_size(out.fileno()).columns
    except (OSError, ValueError):
        return DEFAULT_COLUMNS
    return max(columns, 20) if columns > 0 else DEFAULT_COLUMNS  # 0: a terminal that was never told its size


def _speaks_unicode(out: TextIO) -> bool:
    encoding = getattr(out, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "").replace("_", "") in ("utf8", "utf16", "utf32", "utf8sig")


def _span(each: Span | str) -> Span:
    return (each, "") if isinstance(each, str) else each


def _words(line: Line) -> Iterator[Span]:
    """The words of a line, each with the space behind it."""
    for text, style in line:
        parts = text.split(" ")
        for at, word in enumerate(parts):
            yield word + (" " if at < len(parts) - 1 else ""), style


def length(line: Line) -> int:
    """How many columns a line takes."""
    return sum(width(safe(text)) for text, _ in line)


def fit(line: Line, columns: int) -> list[Span]:
    """A line cut to that many columns."""
    if length(line) <= columns:
        return [(safe(text), style) for text, style in line]
    shown: list[Span] = []
    room = columns - 1  # something is left out, and the last column says so
    for text, style in line:
        text = safe(text)
        if width(text) > room:
            return [*shown, (cut(text + "…", room + 1), style)]  # also where only the mark has no room
        shown.append((text, style))
        room -= width(text)
    return shown
