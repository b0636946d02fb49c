"""Bounds for templates that make much of little: fuel bounds steps, not sizes.

minijinja repeats a text up to 100 MB, and values grow from block to block (`set`, `for`, `with`). So the
product of repetitions is bounded, and blocks that call themselves are refused, before anything is rendered.
Filters that can make much look at what they would make first.
"""

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from orchestra.limits import TEMPLATE_CHARS, TEMPLATE_GROWTH, TEXT_REPEATS

STRINGS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_TEXT: Final = '""'
_TOKEN: Final = re.compile(r'""|\d[\w.]*|(?:[.|]\s*)?[^\W\d]\w*|\*\*|[^\s\w]')
_INDENT: Final = re.compile(
    r"\|\s*tojson\s*\((?!\s*(?:(?:indent\s*=\s*)?(?:\d{1,2}|[Tt]rue|[Ff]alse|[Nn]one))?\s*\))"
)
_ENDLESS: Final = re.compile(r"\{%[-+]?\s*(macro|call)\b|\b(recursive)\s*[-+]?%\}")
_HANDED_ON: Final = re.compile(r"\{%[-+]?\s*(?:set|for|with)\b")
_WORDS: Final = frozenset({"set", "for", "with", "in", "if", "else", "and", "or", "not", "is"})
_PRINTED_CHARS: Final = 10 * TEMPLATE_CHARS
"""Of what is printed, not all may stand in the text: `set` can catch it."""
_WIDTH: Final = re.compile(r"%(?:\([^)]*\))?[^a-zA-Z%]*?(?:\*|\d{5,})")


def too_much(code: str) -> str | None:
    """Why an expression or a block could make too much, if it repeats something too often or calls itself."""
    bare = STRINGS.sub(_TEXT, code)
    if "*" in bare and _repeats(_TOKEN.findall(bare)):
        return f"a text can be repeated with `*` by a number up to {TEXT_REPEATS:,}, and by nothing else"
    if _INDENT.search(bare):
        return "`tojson` is indented by a number of one or two digits"
    endless = _ENDLESS.search(bare)
    return None if endless is None else f"`{endless[1] or endless[2]}` is not taken in templates"


def grows(blocks: Iterable[str]) -> bool:
    """Whether values that are handed on from block to block could become very much larger."""
    return math.prod(_factor(each) for each in blocks if _HANDED_ON.match(each)) > TEMPLATE_GROWTH


def _factor(block: str) -> int:
    """How often a block may repeat a value."""
    tokens = _TOKEN.findall(STRINGS.sub(_TEXT, block))
    given = next((at for at, each in enumerate(tokens) if each in ("=", "in")), 0)  # after the new name
    names = Counter(each for each in tokens[given:] if each.isidentifier() and each not in _WORDS)
    times = [_number(tokens[at + 1]) or TEXT_REPEATS for at, each in enumerate(tokens[:-1]) if each == "*"]
    return max(names.values(), default=1) * math.prod(times)


def _repeats(tokens: list[str]) -> bool:
    """Whether a text is repeated by something else than a small number."""
    padded = ["", "", *tokens, "", ""]
    for at in range(2, len(padded) - 2):
        before, after = padded[at - 1], padded[at + 1]
        if padded[at] == "*" and _TEXT in (before, after):
            number = _number(after if before == _TEXT else before)
            chained = {"*", "**"} & {padded[at - 2], padded[at + 2]}
            if number is None or number > TEXT_REPEATS or chained:
                return True
    return False


def _number(token: str) -> int | None:
    digits = token.replace("_", "")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None


# --- minijinja's filters that can make much of little, with a bound checked before anything is made


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
