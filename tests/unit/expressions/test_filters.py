"""Filters with a bound do what those do whose names they bear, and nothing larger."""

import minijinja
import pytest

from orchestra.errors import BadExpression
from orchestra.expressions.expression import Expression, Template
from orchestra.expressions.growth import BOUNDED

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
        "[1, 2, 3]|batch(2)",
        "[1, 2, 3]|batch(2, 'x')",
        "'abc'|slice(2)",
        "[1, 2, 3, 4]|slice(3, none)",
        "[[1, 2, 3]]|map('slice', 2)|list",
        "{'a': 1, 'b': 2}|batch(1)",
        *[
            f"{list(range(items))}|{name}({count}{fill})"
            for items in (0, 1, 4, 5)
            for name in ("batch", "slice")
            for count in (1, 2, 3, 7)
            for fill in ("", ", 'x'", ", none")
        ],
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
        "x|batch(2000000000, x)|list",
        "x|slice(2000000000)|list",
        "[x]|map('slice', 2000000000)|list",
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
        "[1]|batch('2')",
    ],
)
def test_what_makes_no_sense_is_a_bad_expression(text: str) -> None:
    with pytest.raises(BadExpression):
        Expression(text, ()).value({})


def test_all_of_them_are_tried_here() -> None:
    assert sorted(BOUNDED) == ["batch", "format", "indent", "replace", "slice"]
