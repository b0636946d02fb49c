"""Comparisons by order (`<`, `<=`, `>`, `>=`), which raise when two values have no order.

minijinja orders everything: any text is more than any number. So comparisons become calls of `compare`.
"""

import math
import operator
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import attrs

from orchestra.expressions.growth import STRINGS

CALL: Final = "_compare"
_WORD: Final = re.compile(rf"{STRINGS.pattern}|[<>=!]=|\.\s*[^\W\d]\w*|[^\W\d]\w*|\d[\w.]*|\S", re.DOTALL)
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ENDS: Final = frozenset({"and", "or", "not", "if", "else", ",", ":", "="})
_WORDS: Final = {str: "a text", bool: "true or false", list: "a list", dict: "a mapping"}


class NoOrder(ValueError):
    """Two things that were compared have no order; the text says why."""


class NotThere(Exception):
    """Something that was compared is not there, or is nothing."""


@attrs.frozen
class Comparison:
    """Operands and, between them, operators: usually two and one."""

    operands: tuple[str, ...]
    operators: tuple[str, ...]

    def holds(self, *values: Any) -> bool:
        """Whether it holds for the operands' values; raises `NoOrder` or `NotThere`."""
        if any(value is None for value in values):
            raise NotThere
        return all(map(self._step, self.operators, pairwise(values)))

    def _step(self, sign: str, pair: tuple[Any, Any]) -> bool:
        reason = misfit(*map(kind_of, pair))
        if reason is None:
            try:
                return _ORDERS[sign](*pair)
            except TypeError:
                reason = "compares lists of different things"
        raise NoOrder(f"`{self.text}` {reason}")

    @property
    def text(self) -> str:
        """As it was written."""
        return " ".join(
            each for pair in zip(self.operands, (*self.operators, ""), strict=True) for each in pair
        ).strip()


def kind_of(value: Any) -> str:
    """The word for what a value is."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "NaN" if math.isnan(value) else "a number"
    return next((word for kind, word in _WORDS.items() if isinstance(value, kind)), type(value).__name__)


def misfit(one: str, other: str) -> str | None:
    """Why things of two kinds cannot be compared by order, if they cannot."""
    if "NaN" in (one, other):
        return "compares NaN, which is no number"
    if one != other:
        return f"compares {one} with {other}"
    return None if one in ("a number", "a text", "a list") else f"compares {one} by order"


def comparisons(text: str) -> tuple[str, tuple[Comparison, ...]]:
    """An expression in which comparisons are calls, and these by the number each call begins with."""
    words = [(found[0], found.start(), found.end()) for found in _WORD.finditer(text)]
    found: list[Comparison] = []
    changes: list[tuple[int, int, str]] = []
    levels: list[list[int]] = [[0]]  # where each open bracket's chain of operands begins, and its operators
    closed = [*words, (")", len(text), len(text))]
    for at, (word, _, _) in enumerate(closed):
        if word in _ORDERS or word in ("==", "!=", "in") or (word == "not" and closed[at + 1][0] == "in"):
            levels[-1].append(at)
        elif word in ("(", "[", "{"):
            levels.append([at + 1])
        elif word in (")", "]", "}") or word in _ENDS:
            _close(text, words, [*levels[-1], at], found, changes)
            if word in _ENDS:
                levels[-1] = [at + 1]
            elif len(levels) > 1:
                levels.pop()
    for first, last, instead in sorted(changes, key=lambda change: change[0], reverse=True):
        text = text[:first] + instead + text[last:]
    return text, tuple(found)


def _close(
    text: str,
    words: list[tuple[str, int, int]],
    chain: list[int],
    found: list[Comparison],
    changes: list[tuple[int, int, str]],
) -> None:
    """Take in a chain that ended: the place of its first operand, of its operators, and where it ends."""
    first, *signs, end = chain
    if not signs or any(words[at][0] not in _ORDERS for at in signs) or first == signs[0]:
        return
    begins = [first, *(at + 1 for at in signs)]
    ends = [*signs, end]
    if any(begin >= stop for begin, stop in zip(begins, ends, strict=True)):
        return  # an operand is missing; the parser says so
    operands = tuple(text[words[a][1] : words[b - 1][2]] for a, b in zip(begins, ends, strict=True))
    changes.append((words[first][1], words[first][1], f"{CALL}({len(found)}, "))
    changes += [(words[at][1], words[at][2], ",") for at in signs]
    changes.append((words[end - 1][2], words[end - 1][2], ")"))
    found.append(Comparison(operands, tuple(words[at][0] for at in signs)))
