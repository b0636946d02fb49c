"""A static look at expressions and templates: what they name, before anything is evaluated.

`orchestra.checkpoint.expression` evaluates them; here it is only asked what they would need. minijinja
tells the dotted paths that are used (`inputs.path`), as long as they are written with dots.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import minijinja

from orchestra.checkpoint.expression import Expression
from orchestra.errors import BadExpression
from orchestra.limits import EXPRESSION_CACHE, EXPRESSION_CHARS, TEMPLATE_BLOCKS

UNKNOWN: Final = object()
"""The value of an expression that is not constant."""

_STRINGS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_OPEN: Final = re.compile(r"\{[{%]")
_END: Final = re.compile(rf"{_STRINGS.pattern}|\}}\}}|%\}}", re.DOTALL)
_FILTER: Final = re.compile(r"\|\s*([A-Za-z_]\w*)")
_TEST: Final = re.compile(r"\bis\s+(?:not\s+)?([A-Za-z_]\w*)")
_PLACE: Final = re.compile(r"\s*\(in <[^>]*>:\d+\)")


@lru_cache(maxsize=EXPRESSION_CACHE)
def expression_paths(text: str) -> frozenset[str]:
    """The dotted paths that an expression uses; raises `BadExpression` when it cannot be read."""
    _check_length(text, text)
    paths = _paths("{{ " + text + " }}", text)
    Expression(text, {path.partition(".")[0] for path in paths})
    _check_words(text, text)
    return paths


@lru_cache(maxsize=EXPRESSION_CACHE)
def template_paths(text: str) -> frozenset[str]:
    """The dotted paths that a template uses; raises `BadExpression` when it cannot be read."""
    if "{" not in text:
        return frozenset()
    code = list(_code(text))
    for each in code:
        _check_length(each, text)
    if text.count("{%") > TEMPLATE_BLOCKS:
        raise BadExpression(expression=text, reason=f"it has more than {TEMPLATE_BLOCKS} blocks `{{% … %}}`")
    paths = _paths(text, text)
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
    return _PLACE.sub("", str(error.data["reason"])).removeprefix("syntax error: ")


def _code(text: str) -> Iterator[str]:
    """The parts of a template between braces, each to its end or to the end of the text."""
    at = 0
    while (opened := _OPEN.search(text, at)) is not None:
        ends = (found.end() for found in _END.finditer(text, opened.end()) if found[0] in ("}}", "%}"))
        at = next(ends, len(text))
        yield text[opened.start() : at]


def _check_length(code: str, text: str) -> None:
    """What is too long is refused before minijinja sees it: it would take the whole process down."""
    if len(code) > EXPRESSION_CHARS:
        reason = f"an expression has {len(code)} characters, and the limit is {EXPRESSION_CHARS}"
        raise BadExpression(expression=text, reason=reason)


def _paths(source: str, text: str) -> frozenset[str]:
    try:
        return frozenset(_ENVIRONMENT.undeclared_variables_in_str(source, nested=True))
    except minijinja.TemplateError as error:
        raise BadExpression(expression=text, reason=_line(error)) from None


def _check_words(code: str, text: str) -> None:
    """Filters and tests are looked up when they are used, which is too late."""
    bare = _STRINGS.sub("''", code)
    for pattern, form, what in ((_FILTER, "1|{}", "filter"), (_TEST, "1 is {}", "test")):
        for word in pattern.findall(bare):
            if _unknown(form.format(word)):
                raise BadExpression(expression=text, reason=f"there is no {what} `{word}`")


@lru_cache(maxsize=EXPRESSION_CACHE)
def _unknown(probe: str) -> bool:
    try:
        _ENVIRONMENT.eval_expr(probe)
    except minijinja.TemplateError as error:
        return error.kind in ("UnknownFilter", "UnknownTest")
    return False


def _line(error: Exception) -> str:
    return (str(error).splitlines() or ["it cannot be read"])[0]


_ENVIRONMENT: Final = minijinja.Environment()
