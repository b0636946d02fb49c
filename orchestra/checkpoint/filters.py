"""Filters that can make much of little, with a bound: a short template must not take all memory.

They do what minijinja's filters of the same names do. What would be too long is refused before it is made.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from orchestra.limits import TEMPLATE_CHARS

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


def _check(length: int) -> None:
    if length > TEMPLATE_CHARS:
        raise ValueError(f"it would give {length} characters, more than {TEMPLATE_CHARS}")


BOUNDED: Final[Mapping[str, Callable[..., str]]] = {
    "replace": _replace,
    "indent": _indent,
    "format": _format,
}
"""The filters by their names."""
