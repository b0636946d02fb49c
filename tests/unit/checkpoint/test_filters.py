"""Filters with a bound do what those do whose names they bear, and nothing larger."""

import minijinja
import pytest

from orchestra.checkpoint.expression import Expression, Template
from orchestra.checkpoint.filters import BOUNDED
from orchestra.errors import BadExpression

PLAIN = minijinja.Environment()


@pytest.mark.parametrize(
    "text",
    [
        "'a b'|replace(' ', '-')",
        "'abc'|replace('', '-')",
        "'abc'|replace('abc', '')",
        "3|replace('3', '4')",
        r"'a\nb\n\nc\n'|indent(2)",
        r"'a\nb\n\nc'|indent(2, true)",
        r"'a\nb\n\nc'|indent(2, true, true)",
        r"'a\r\nb'|indent(1)",
        r"'a\nb'|indent",
        "''|indent(2, true)",
        "'x'|indent(width=2, first=true)",
        "'%s is %d'|format('x', 3)",
        "'%.2f%%'|format(1.234)",
        "'%5d|'|format(3)",
        "'%(a)s'|format(a=3)",
    ],
)
def test_they_do_the_same(text: str) -> None:
    assert Expression(text, ()).value({}) == PLAIN.eval_expr(text)


@pytest.mark.parametrize(
    "text",
    [
        "x|replace('', x)|replace('', x)",
        "x|indent(9000000000, true)",
        "'%999999999d'|format(3)",
        "'%-*d'|format(999999999, 3)",
        "'%(a)999999999d'|format(a=3)",
    ],
)
def test_what_would_be_too_much_is_refused(text: str) -> None:
    values = {"x": "y" * 2000}
    with pytest.raises(BadExpression, match=r"more than|width"):
        Expression(text, values).value(values)
    with pytest.raises(BadExpression):
        Template(f"{{{{ {text}|length }}}}", values).render(values)


@pytest.mark.parametrize(
    "text",
    [
        "'%d'|format('x')",
        "'%s %s'|format(1)",
        "'x'|indent('y')",
        "'%(a)s'|format(b=1)",
        "'%c'|format(99999999)",
        "'%d'|format(1e308 * 10)",
        "'x'|indent(1e308 * 10)",
    ],
)
def test_what_makes_no_sense_is_a_bad_expression(text: str) -> None:
    with pytest.raises(BadExpression):
        Expression(text, ()).value({})


def test_all_of_them_are_tried_here() -> None:
    assert sorted(BOUNDED) == ["format", "indent", "replace"]
