"""The door to minijinja: conditions, expressions and templates over plain data.

Each may use only the names it is given and is checked and bounded before use: its length, because the parser
uses the stack; its steps, by fuel; what filters and operators can make (`growth`) and print.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import minijinja

from orchestra.errors import BadExpression
from orchestra.expressions.comparisons import CALL, NoOrder, NotThere, comparisons
from orchestra.expressions.growth import BOUNDED, STRINGS, Meter, grows, too_much
from orchestra.limits import (
    EXPRESSION_CACHE,
    EXPRESSION_CHARS,
    EXPRESSION_FUEL,
    TEMPLATE_BLOCKS,
    TEMPLATE_CHARS,
)

_OPEN: Final = re.compile(r"\{[{%]")
_END: Final = re.compile(rf"{STRINGS.pattern}|\}}\}}|%\}}", re.DOTALL)
_SHOWN_CHARS: Final = 40
_MISSING: Final = object()
UNKNOWN: Final = object()
"""The value of an expression that is not constant."""
_FILTER: Final = re.compile(r"\|\s*([A-Za-z_]\w*)")
_TEST: Final = re.compile(r"\bis\s+(?:not\s+)?([A-Za-z_]\w*)")
_PLACE: Final = re.compile(r"\s*\(in <[^>]*>:\d+\)")
_PLAIN: Final = minijinja.Environment()
_REFUSED: Final = (TypeError, ValueError, LookupError, ArithmeticError)
"""What filters of ours raise."""


class Expression:
    """An expression that gives a value."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        _check_code(text, text)
        self.text = text
        self._environment = _environment()
        self.names = self._names(known)
        self._code, found = comparisons(text)
        if found:
            self._environment.add_global(CALL, lambda which, *values: found[which].holds(*values))

    def value(self, values: Mapping[str, Any]) -> Any:
        """What it gives for these values; raises `BadExpression`, also where something is not there."""
        found = self._value(values)
        if found is _MISSING:
            raise BadExpression(expression=self.text, reason="it looks at something that is not there")
        return found

    def _value(self, values: Mapping[str, Any]) -> Any:
        try:
            return self._environment.eval_expr(self._code, **values)
        except NotThere:
            return _MISSING
        except NoOrder as error:
            raise BadExpression(expression=self.text, reason=str(error), compared=True) from None
        except (minijinja.TemplateError, *_REFUSED) as error:
            if isinstance(error, minijinja.TemplateError) and error.kind == "UndefinedError":
                return _MISSING
            raise BadExpression(expression=self.text, reason=_first_line(error)) from None

    def _names(self, known: Collection[str]) -> frozenset[str]:
        try:
            used = self._environment.undeclared_variables_in_str("{{ " + self.text + " }}")
            self._environment.eval_expr(f"false and ({self.text})")
        except minijinja.TemplateError as error:
            raise BadExpression(expression=self.text, reason=_first_line(error)) from None
        return _known(self.text, used, known)


class Condition(Expression):
    """An expression that says yes or no."""

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it holds for these values; raises `BadExpression`.

        Where it looks at something that is not there it does not hold; `is defined` asks for that.
        """
        outcome = self._value(values)
        if outcome is _MISSING:
            return False
        if not isinstance(outcome, bool):
            shown = type(outcome).__name__
            raise BadExpression(
                expression=self.text, reason=f"it gives {shown}, not true or false; compare it"
            )
        return outcome


class Template:
    """A text with `{{ … }}` in it."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        self._plain = "{" not in text
        self.text = text
        if not self._plain:
            _bounded_code(text)
        self._environment = _environment()
        self._meter = self._environment.finalizer = Meter()
        self.names = self._names(known)

    def render(self, values: Mapping[str, Any]) -> str:
        """The text for these values; raises `BadExpression`."""
        if self._plain:
            return self.text
        self._meter.begin()
        try:
            rendered = self._environment.render_str(self.text, **values)
        except (minijinja.TemplateError, *_REFUSED) as error:
            raise BadExpression(expression=_shown(self.text), reason=_first_line(error)) from None
        if len(rendered) > TEMPLATE_CHARS:
            reason = f"it gives {len(rendered)} characters, more than {TEMPLATE_CHARS}"
            raise BadExpression(expression=_shown(self.text), reason=reason)
        return rendered

    def _names(self, known: Collection[str]) -> frozenset[str]:
        if self._plain:
            return frozenset()
        try:
            used = self._environment.undeclared_variables_in_str(self.text)
        except minijinja.TemplateError as error:
            raise BadExpression(expression=_shown(self.text), reason=_first_line(error)) from None
        return _known(self.text, used, known)


_cached: Final = lru_cache(maxsize=EXPRESSION_CACHE)
condition, expression, template = _cached(Condition), _cached(Expression), _cached(Template)
"""The same by text and known names, each checked once."""


def with_place(error: BadExpression, place: str) -> BadExpression:
    """The same error with the place at which the expression stands or was tried."""
    return BadExpression(**{**error.data, "reason": f"{error.data['reason']}, at {place}"})


def paths_in(source: str, text: str) -> frozenset[str]:
    """The dotted paths that a template uses, of which the length was checked; raises `BadExpression`."""
    try:
        return frozenset(_PLAIN.undeclared_variables_in_str(source, nested=True))
    except minijinja.TemplateError as error:
        raise BadExpression(expression=text, reason=_first_line(error)) from None


@lru_cache(maxsize=EXPRESSION_CACHE)
def _is_unknown(probe: str) -> bool:
    """Whether a short expression uses a filter or a test that is not there."""
    try:
        _PLAIN.eval_expr(probe)
    except minijinja.TemplateError as error:
        return error.kind in ("UnknownFilter", "UnknownTest")
    return False


def _check_code(code: str, text: str) -> None:
    """Raise `BadExpression` when a piece of code of `text` is too long, or could make too much."""
    too_long = f"an expression has {len(code)} characters, and the limit is {EXPRESSION_CHARS}"
    reason = too_long if len(code) > EXPRESSION_CHARS else too_much(code)
    if reason is not None:
        raise BadExpression(expression=_shown(text), reason=reason)


def _bounded_code(text: str) -> list[str]:
    """The parts of a template between braces; raises `BadExpression` when they are, or make, too much."""
    blocks = len(_OPEN.findall(text))
    if blocks > TEMPLATE_BLOCKS:
        reason = f"it has more than {TEMPLATE_BLOCKS} blocks `{{% … %}}` and `{{{{ … }}}}`"
        raise BadExpression(expression=_shown(text), reason=reason)
    code = list(_code(text))
    for each in code:
        _check_code(each, text)
    if grows(code):
        reason = "its blocks repeat what they hand on too often"
        raise BadExpression(expression=_shown(text), reason=reason)
    return code


def _code(text: str) -> Iterator[str]:
    """The parts between braces, each to its end or to the end of the text; braces in strings end nothing."""
    at = 0
    while (opened := _OPEN.search(text, at)) is not None:
        ends = (found.end() for found in _END.finditer(text, opened.end()) if found[0] in ("}}", "%}"))
        at = next(ends, len(text))
        yield text[opened.start() : at]


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _environment() -> minijinja.Environment:
    # Tasks are text for agents, not pages: nothing is escaped.
    environment = minijinja.Environment(undefined_behavior="strict", auto_escape_callback=lambda _: False)
    environment.fuel = EXPRESSION_FUEL
    for name, bounded in BOUNDED.items():
        environment.add_filter(name, bounded)
    return environment


def _known(text: str, used: Collection[str], known: Collection[str]) -> frozenset[str]:
    unknown = sorted(set(used) - set(known))
    if unknown:
        names = ", ".join(sorted(known))
        raise BadExpression(expression=text, reason=f"it names {unknown[0]!r}; there are {names}")
    return frozenset(used)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it cannot be read"])[0]


# --- what they name (`inputs.path`), found before they are evaluated


@lru_cache(maxsize=EXPRESSION_CACHE)
def expression_paths(text: str) -> frozenset[str]:
    """The dotted paths that an expression uses; raises `BadExpression` when it cannot be read."""
    _check_code(text, text)
    paths = paths_in("{{ " + text + " }}", text)
    Expression(text, {path.partition(".")[0] for path in paths})
    _check_words(text, text)
    return paths


@lru_cache(maxsize=EXPRESSION_CACHE)
def template_paths(text: str) -> frozenset[str]:
    """The dotted paths that a template uses; raises `BadExpression` when it cannot be read."""
    if "{" not in text:
        return frozenset()
    code = _bounded_code(text)
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


def plain_reason(error: BadExpression) -> str:
    """What is wrong, without the parser's idea of where."""
    told = _PLACE.sub("", str(error.data["reason"])).removeprefix("syntax error: ")
    return "compare with `==`, not with `=`" if told.startswith("unexpected `=`") else told


def _check_words(code: str, text: str) -> None:
    """Filters and tests are looked up when they are used, which is too late."""
    bare = STRINGS.sub("''", code)
    for pattern, form, what in ((_FILTER, "1|{}", "filter"), (_TEST, "1 is {}", "test")):
        for word in pattern.findall(bare):
            if _is_unknown(form.format(word)):
                raise BadExpression(expression=text, reason=f"there is no {what} `{word}`")


def least_chars(text: str) -> int:
    """How many characters a template gives at least; 0 when that depends on its blocks."""
    if "{%" in text or "{#" in text:
        return 0
    return len(text) - sum(map(len, _bounded_code(text)))
