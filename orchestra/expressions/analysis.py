"""What expressions and templates name (`inputs.path`), found before they are evaluated."""

import re
from functools import lru_cache
from typing import Any, Final

from orchestra.errors import BadExpression
from orchestra.expressions.expression import Expression, bounded_code, check_code, is_unknown, paths_in
from orchestra.expressions.growth import STRINGS
from orchestra.limits import EXPRESSION_CACHE

UNKNOWN: Final = object()
"""The value of an expression that is not constant."""

_FILTER: Final = re.compile(r"\|\s*([A-Za-z_]\w*)")
_TEST: Final = re.compile(r"\bis\s+(?:not\s+)?([A-Za-z_]\w*)")
_PLACE: Final = re.compile(r"\s*\(in <[^>]*>:\d+\)")


@lru_cache(maxsize=EXPRESSION_CACHE)
def expression_paths(text: str) -> frozenset[str]:
    """The dotted paths that an expression uses; raises `BadExpression` when it cannot be read."""
    check_code(text, text)
    paths = paths_in("{{ " + text + " }}", text)
    Expression(text, {path.partition(".")[0] for path in paths})
    _check_words(text, text)
    return paths


@lru_cache(maxsize=EXPRESSION_CACHE)
def template_paths(text: str) -> frozenset[str]:
    """The dotted paths that a template uses; raises `BadExpression` when it cannot be read."""
    if "{" not in text:
        return frozenset()
    code = bounded_code(text)
    paths = paths_in(text, text)
    _check_words(" ".join(code), text)
    return paths


def constant(text: str) -> Any:
    """The value of an expression that uses no names, else `UNKNOWN`."""
    try:
        if expression_paths(text) or "|" in text:  # a filter may need more memory than anybody has
            return UNKNOWN
        return Expression(text, ()).value({})
    except BadExpression:
        return UNKNOWN


def reason(error: BadExpression) -> str:
    """What is wrong, without the parser's idea of where."""
    told = _PLACE.sub("", str(error.data["reason"])).removeprefix("syntax error: ")
    return "compare with `==`, not with `=`" if told.startswith("unexpected `=`") else told


def _check_words(code: str, text: str) -> None:
    """Filters and tests are looked up when they are used, which is too late."""
    bare = STRINGS.sub("''", code)
    for pattern, form, what in ((_FILTER, "1|{}", "filter"), (_TEST, "1 is {}", "test")):
        for word in pattern.findall(bare):
            if is_unknown(form.format(word)):
                raise BadExpression(expression=text, reason=f"there is no {what} `{word}`")


def least_chars(text: str) -> int:
    """How many characters a template gives at least; 0 when that depends on its blocks."""
    if "{%" in text or "{#" in text:
        return 0
    return len(text) - sum(map(len, bounded_code(text)))
