"""minijinja's filters that can make much of little, with a bound checked before anything is made."""

import re
import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from orchestra.limits import TEMPLATE_CHARS, TEXT_REPEATS

_PRINTED_CHARS: Final = 10 * TEMPLATE_CHARS
"""Of what is printed, not all may stand in the text: `set` can catch it."""
_WIDTH: Final = re.compile(r"%(?:\([^)]*\))?[^a-zA-Z%]*?(?:\*|\d{5,})")


def _replace(text: str, old: str, new: str) -> str:
    """`text|replace(old, new)`."""
    text, old, new = str(text), str(old), str(new)
    _check(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _indent(text: str, width: int = 4, first: bool = False, blank: bool = False) -> str:
    """`text|indent(width)`: every line but the first, and blank ones, unless that is wanted."""
    text = str(text)
    lines = text.removesuffix("\n").split("\n")
    _check(len(text) + len(lines) * int(width))
    space = " " * int(width)
    told = [space + line if (at or first) and (line or blank) else line for at, line in enumerate(lines)]
    return "\n".join(told)


def _format(text: str, *values: Any, **named: Any) -> str:
    """`text|format(values)`, as `%` does it."""
    text = str(text)
    if _WIDTH.search(text):
        raise ValueError("a width of more than four digits is not taken")
    return text % (named or values)


def _batch(items: Any, count: int, fill: Any = None) -> list[list[Any]]:
    """`items|batch(count)`: lists of so many."""
    items, count = list(items), _portions(count)
    rows = [items[at : at + count] for at in range(0, len(items), count)]
    if rows and fill is not None:
        rows[-1] += [fill] * (count - len(rows[-1]))
    return rows


def _slice(items: Any, count: int, fill: Any = None) -> list[list[Any]]:
    """`items|slice(count)`: so many lists, of which the first are longer where they cannot be equal."""
    items, count = list(items), _portions(count)
    each, longer = divmod(len(items), count)
    ends = [at * each + min(at, longer) for at in range(count + 1)]
    rows = [items[first:last] for first, last in pairwise(ends)]
    if fill is not None:
        rows[longer:] = [[*row, fill] for row in rows[longer:]]
    return rows


def _portions(count: int) -> int:
    if type(count) is not int or not 0 < count <= TEXT_REPEATS:
        raise ValueError(f"it takes a number from 1 up, and no more than {TEXT_REPEATS}")
    return count


class Meter(threading.local):
    """Adds up what a template prints while it is rendered, and stops it when that is far too much."""

    left = 0

    def begin(self) -> None:
        """A template is rendered from its beginning."""
        self.left = _PRINTED_CHARS

    def __call__(self, value: Any) -> Any:
        """Look at a value that is about to be printed; raises `ValueError`."""
        self.left -= len(value) if isinstance(value, str) else len(str(value))
        if self.left < 0:
            raise ValueError(f"it prints more than {_PRINTED_CHARS} characters")
        return NotImplemented  # as it is


def _check(length: int) -> None:
    if length > TEMPLATE_CHARS:
        raise ValueError(f"it would give {length} characters, more than {TEMPLATE_CHARS}")


BOUNDED: Final[Mapping[str, Callable[..., Any]]] = {
    "batch": _batch,
    "slice": _slice,
    "replace": _replace,
    "indent": _indent,
    "format": _format,
}
"""The filters by their names."""
