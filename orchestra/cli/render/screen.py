"""The screen: lines of styled text, tables, JSON and progress, with or without colour, in the room there is.

A line is a sequence of spans, a span is a text and the name of a style. What a span says is made safe here,
on its way out, so that text from a run can never be taken for anything but text. Nor can JSON: it is one
document in UTF-8 with nothing in it that a terminal would obey.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, Literal, NamedTuple, Self, TextIO, TypeAlias, TypeVar

from orchestra.cli.play.stdout import own_stdout
from orchestra.cli.render.text import cut, safe, safe_json, width

Style: TypeAlias = Literal["", "dim", "bold", "accent", "good", "bad", "warn"]
Span: TypeAlias = tuple[str, Style]
Line: TypeAlias = Sequence[Span]
Cell: TypeAlias = Line | Span | str
T = TypeVar("T")

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
PIPE_COLUMNS: Final = 120
"""How wide a table is in a pipe: a page."""
GAP: Final = 2
PAGE: Final = 50
"""How many entries a list shows unless it is told otherwise."""
_FLOOR: Final = 6
"""How narrow any column becomes in a terminal that is too narrow for everything else."""
_BAR: Final = 24
_SECONDS_BETWEEN = 0.1
_SECONDS_BEFORE = 0.4


class Screen:
    """Where lines are printed."""

    def __init__(self, out: TextIO, *, tty: bool, colour: bool, columns: int | None) -> None:
        self.out = out
        self.tty = tty
        self.colour = colour
        self.columns = columns
        encoding = (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "")
        self._plain = encoding not in ("utf8", "utf16", "utf32", "utf8sig")

    @property
    def lively(self) -> bool:
        """Whether what is shown can be changed in place."""
        return self.tty and not self._plain and os.environ.get("TERM") not in ("dumb", None, "")

    def line(self, *spans: Span | str) -> None:
        """Print one line."""
        self.out.write(self.render([(each, "") if isinstance(each, str) else each for each in spans]) + "\n")

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
    forced = os.environ.get("FORCE_COLOR", "") not in ("", "0")
    colour = not os.environ.get("NO_COLOR") and (forced or (tty and os.environ.get("TERM") != "dumb"))
    return Screen(out, tty=tty, colour=colour, columns=_columns(out, tty))


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


class Column(NamedTuple, Generic[T]):
    """One column of a table. Without `least` it is never cut, without `drop` it is never left out."""

    title: str
    cell: Callable[[T], Cell]  # what it shows of an entry
    align: Literal["left", "right"] = "left"
    least: int = 0  # the fewest columns it may shrink to
    drop: int = 0  # the highest number is left out first
    name: bool = False  # whether people copy it, so that it is only cut where a terminal leaves no room


def print_table(
    screen: Screen,
    columns: Sequence[Column[T]],
    entries: Iterable[T],
    *,
    dim: Callable[[T], bool] = lambda _: False,
) -> None:
    """Print a table with its titles; columns that are empty everywhere are left out, `dim` entries are grey.

    It fits the terminal: columns shrink first, then the least needed ones are left out. In a pipe it fits a
    page; there names that people copy, such as those of runs, are never cut.
    """
    rows = [[_line(column.cell(entry), dim=dim(entry)) for column in columns] for entry in entries]
    widths = _widths(screen, columns, rows)
    titles: list[Line] = [[(column.title, "dim")] for column in columns]
    for row in (titles, *rows):
        spans: list[Span] = []
        for each, wide in widths.items():
            cell = fit(row[each], wide)
            padding: Span = (" " * (wide - length(cell)), "")
            spans += [padding, *cell] if columns[each].align == "right" else [*cell, padding]
            spans.append((" " * GAP, ""))
        screen.line(*spans)


def _line(cell: Cell, *, dim: bool) -> Line:
    line: Line = [(cell, "")] if isinstance(cell, str) else [cell] if isinstance(cell, tuple) else cell
    return [(text, "dim") for text, _ in line] if dim else line


def _widths(screen: Screen, columns: Sequence[Column[T]], rows: Sequence[Sequence[Line]]) -> dict[int, int]:
    natural = {
        each: max(len(column.title), *(length(row[each]) for row in rows))
        for each, column in enumerate(columns)
        if any(length(row[each]) for row in rows)
    }
    piped = screen.columns is None
    room = screen.columns or PIPE_COLUMNS
    columns = [column._replace(least=0) if piped and column.name else column for column in columns]
    while True:
        fitted = _shrunk(natural, columns, room)
        droppable = [each for each in natural if columns[each].drop]
        if _total(fitted) <= room:
            return fitted
        if not droppable:
            floor = [column if piped and column.name else column._replace(least=_FLOOR) for column in columns]
            return _shrunk(fitted, floor, room)
        del natural[max(droppable, key=lambda each: columns[each].drop)]


def _shrunk(natural: dict[int, int], columns: Sequence[Column[T]], room: int) -> dict[int, int]:
    """The widths with the widest flexible columns made narrower, one step at a time."""
    widths = dict(natural)
    while (over := _total(widths) - room) > 0:
        flexible = [each for each in widths if 0 < columns[each].least < widths[each]]
        if not flexible:
            break
        widest = max(flexible, key=lambda each: widths[each])
        widths[widest] = max(columns[widest].least, widths[widest] - min(over, 4))
    return widths


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + GAP * max(len(widths) - 1, 0)


def print_json(document: Any, *, more: bool = False) -> None:
    """Print one JSON document; beside a page of `more` is said so, when nobody asked for that many."""
    sys.stdout.write(json_text(document, indent=2))
    if more and len(document) == PAGE:
        sys.stderr.write(f"these are the newest {PAGE}; --limit 0 gives all\n")


def json_text(document: Any, *, indent: int | None = None) -> str:
    """A JSON document with its end of line, without `indent` in one line."""
    import json

    return safe_json(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)) + "\n"


def pick(held: object, *names: str) -> dict[str, Any]:
    """Some fields of a record, for JSON."""
    return {name: getattr(held, name) for name in names}


class Progress:
    """A line on standard error that says how far long work has come; only on a terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._screen = screen(sys.stderr)
        self._due = time.monotonic() + _SECONDS_BEFORE
        self._shown = False

    def __call__(self, done: int, total: int, what: str | None = None) -> None:
        """Say how much is done."""
        if not self._screen.tty or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _SECONDS_BETWEEN
        filled = _BAR * done // max(total, 1)
        text = f"{what or self._what}  {'━' * filled}{'─' * (_BAR - filled)}  {done:,} of {total:,}"
        self._write("\r\x1b[2K" + self._screen.render([(cut(text, (self._screen.columns or 80) - 1), "dim")]))
        self._shown = True

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._write("\r\x1b[2K")
