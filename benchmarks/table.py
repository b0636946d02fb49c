"""Tables as plain text: aligned columns, each figure with how it compares to ours.

A ratio says how many times as much a contestant takes as our default store, so more than one favours us.
Colours are used on a terminal only, and never when `NO_COLOR` is set.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from benchmarks.figures import Figures

_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")

WRITING: Final = (
    ("save p50", "save_p50"),
    ("p95", "save_p95"),
    ("p99", "save_p99"),
    ("bytes/checkpoint", "bytes"),
    ("peak memory", "memory"),
    ("disk", "disk"),
)
READING: Final = (("resume", "resume"), ("load step N/2", "load"), ("list", "list"))
OURS_ONLY: Final = (
    ("resume + touch all", "resume_all"),
    ("opening alone", "open"),
    ("glance at head, opening included", "glance"),
    ("glance, store open already", "glance_open"),
    ("diff N/2..N", "diff"),
    ("diff last step", "diff_step"),
    ("save beside bare commits", "beside_p50"),
    ("bare commit p50", "bare_p50"),
    ("p95", "bare_p95"),
)
_SIZES: Final = frozenset({"bytes", "memory", "memory_before", "memory_saves", "reserve"})
_NO_RATIO: Final = frozenset({"memory", "disk"})


class Paint:
    """Text in colour, or as it is."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    @classmethod
    def for_stream(cls, stream: TextIO = sys.stdout) -> Paint:
        """Colour on a terminal, unless `NO_COLOR` is set."""
        return cls(stream.isatty() and not os.environ.get("NO_COLOR"))

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.enabled and text else text


def seconds(value: float) -> str:
    """A time with the unit that suits it."""
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s"


def size(value: float) -> str:
    """A size with the unit that suits it; a KB has 1,000 bytes here, as on a disk's label."""
    if value < 10_000:
        return f"{value / 1e3:.2f} KB"
    if value < 1e6:
        return f"{value / 1e3:.0f} KB"
    return f"{value / 1e6:.3g} MB"


def ratio(value: float) -> str:
    """How many times as much."""
    if value >= 100:
        return f"{value:,.0f}×"
    return f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"


def shown(metric: str, value: float) -> str:
    """A figure with its unit."""
    return size(value) if metric in _SIZES else seconds(value)


def table(
    columns: Sequence[tuple[str, str]], figures: Iterable[Figures], ours: Figures | None, paint: Paint
) -> str:
    """One row for each contestant, one column for each metric."""
    head = ["", *(title for title, _ in columns)]
    rows = [[_name(each, ours, paint), *_cells(columns, each, ours, paint)] for each in figures]
    return aligned([head, *rows], paint)


def ours_table(figures: Sequence[Figures], paint: Paint) -> str:
    """What only our own stores can do: one row for each metric, one column for each store."""
    head = ["", *(each.name.removeprefix("orchestra ") for each in figures)]
    rows = [
        [title, *(_plain(metric, each) for each in figures)]
        for title, metric in OURS_ONLY
        if any(metric in each.metrics for each in figures)
    ]
    return aligned([head, *rows], paint)


def aligned(rows: Sequence[Sequence[str]], paint: Paint) -> str:
    """Rows of cells under one another: the first column to the left, the others to the right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_padded(row, widths)).rstrip() for row in rows]
    return "\n".join([paint("dim", lines[0]), *lines[1:]])


def _padded(row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        space = " " * (width - _width(cell))
        yield space + cell if place else cell + space


def _name(each: Figures, ours: Figures | None, paint: Paint) -> str:
    return paint("bold", each.name) if each is ours else each.name


def _cells(
    columns: Sequence[tuple[str, str]], each: Figures, ours: Figures | None, paint: Paint
) -> list[str]:
    if each.missing is not None:
        return ["not measured", *("" for _ in columns[1:])]
    return [_cell(metric, each, ours, paint) for _, metric in columns]


def _cell(metric: str, each: Figures, ours: Figures | None, paint: Paint) -> str:
    plain = _plain(metric, each)
    if plain == "-" or metric in _NO_RATIO:
        return plain
    base = ours.metrics.get(metric) if ours is not None else None
    if not base:
        return f"{plain} {'':>7}"
    times = each.metrics[metric] / base
    style = "dim" if each is ours else "green" if times >= 1 else "red"
    return f"{plain} {paint(style, f'{ratio(times):>7}')}"


def _plain(metric: str, each: Figures) -> str:
    if metric not in each.metrics:
        return "-"
    mark = "~" if metric in each.estimated else ""
    return mark + shown(metric, each.metrics[metric])


def _width(cell: str) -> int:
    return len(_ESCAPE.sub("", cell))
