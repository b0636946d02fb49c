"""Find templates that make much of little before they are rendered: fuel bounds steps, not sizes.

minijinja repeats a text up to 100 MB, and values grow from block to block (`set`, `for`, `with`). So the
product of repetitions is bounded, and blocks that call themselves are refused.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from orchestra.limits import TEMPLATE_GROWTH, TEXT_REPEATS

STRINGS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_TEXT: Final = '""'
_TOKEN: Final = re.compile(r'""|\d[\w.]*|(?:[.|]\s*)?[^\W\d]\w*|\*\*|[^\s\w]')
_INDENT: Final = re.compile(
    r"\|\s*tojson\s*\((?!\s*(?:(?:indent\s*=\s*)?(?:\d{1,2}|[Tt]rue|[Ff]alse|[Nn]one))?\s*\))"
)
_ENDLESS: Final = re.compile(r"\{%[-+]?\s*(macro|call)\b|\b(recursive)\s*[-+]?%\}")
_HANDED_ON: Final = re.compile(r"\{%[-+]?\s*(?:set|for|with)\b")
_WORDS: Final = frozenset({"set", "for", "with", "in", "if", "else", "and", "or", "not", "is"})


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
