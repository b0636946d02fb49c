"""Tables that fit the terminal: columns shrink first, then the least needed ones are left out.

In a pipe they fit a page; there names that people copy, such as those of runs, are never cut.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from orchestra.cli.render.screen import Line, Screen, Span, fit, length

GAP: Final = 2
PIPE_COLUMNS: Final = 120
_FLOOR: Final = 6
"""How narrow any column becomes in a terminal that is too narrow for everything else."""


class Column(NamedTuple):
    """One column. Without `least` it is never cut, without `drop` it is never left out."""

    title: str
    align: Literal["left", "right"] = "left"
    least: int = 0  # the fewest columns it may shrink to
    drop: int = 0  # the highest number is left out first
    name: bool = False  # whether people copy it, so that it is only cut where a terminal leaves no room


def print_table(screen: Screen, columns: Sequence[Column], rows: Sequence[Sequence[Line]]) -> None:
    """Print a table with its titles; columns that are empty everywhere are left out."""
    shown = [each for each in range(len(columns)) if any(length(row[each]) for row in rows)]
    widths = _widths(screen, columns, rows, shown)
    _print_row(screen, columns, widths, [[(column.title, "dim")] for column in columns])
    for row in rows:
        _print_row(screen, columns, widths, row)


def _widths(
    screen: Screen, columns: Sequence[Column], rows: Sequence[Sequence[Line]], shown: list[int]
) -> dict[int, int]:
    natural = {
        each: max(len(columns[each].title), *(length(row[each]) for row in rows)) if rows else 0
        for each in shown
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


def _shrunk(natural: dict[int, int], columns: Sequence[Column], room: int) -> dict[int, int]:
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


def _print_row(
    screen: Screen, columns: Sequence[Column], widths: dict[int, int], row: Sequence[Line]
) -> None:
    spans: list[Span] = []
    for each, wide in widths.items():
        cell = fit(row[each], wide)
        padding: Span = (" " * (wide - length(cell)), "")
        spans += [padding, *cell] if columns[each].align == "right" else [*cell, padding]
        spans.append((" " * GAP, ""))
    screen.line(*spans)
