"""Expressions and templates: bounded, checked, and strict about what is not there."""

import pytest

from orchestra.errors import BadExpression
from orchestra.expressions.expression import Condition, Expression, Template
from orchestra.limits import EXPRESSION_CHARS, TEMPLATE_BLOCKS, TEMPLATE_CHARS


def test_a_template_is_rendered_as_text_without_escaping() -> None:
    wanted = Template("Look at {{ item }} & {{ inputs.path }}", {"item", "inputs"})
    assert wanted.names == {"item", "inputs"}
    assert wanted.render({"item": "<b>", "inputs": {"path": "src"}}) == "Look at <b> & src"


def test_a_template_refuses_what_is_not_there() -> None:
    with pytest.raises(BadExpression, match="undefined"):
        Template("{{ inputs.path }}", {"inputs"}).render({"inputs": {}})


def test_a_name_that_nobody_knows_is_refused_before_it_is_used() -> None:
    with pytest.raises(BadExpression, match="it names 'input'"):
        Template("{{ input.path }}", {"inputs"})
    with pytest.raises(BadExpression, match="it names 'x'"):
        Expression("x + 1", {"y"})


def test_an_expression_gives_a_value_or_says_that_something_is_missing() -> None:
    assert Expression("context.items", {"context"}).value({"context": {"items": [1, 2]}}) == [1, 2]
    with pytest.raises(BadExpression, match="not there"):
        Expression("context.items[0].name", {"context"}).value({"context": {}})


def test_a_condition_that_looks_at_nothing_does_not_hold() -> None:
    assert not Condition("a.b == 1", {"a"}).holds({"a": {}})
    with pytest.raises(BadExpression, match="not true or false"):
        Condition("1 + 1", set()).holds({})


@pytest.mark.parametrize("text", ["-" * 20_000 + "1", "(" * (EXPRESSION_CHARS + 1)])
def test_what_would_end_the_parser_is_refused_by_its_length(text: str) -> None:
    with pytest.raises(BadExpression, match="characters"):
        Condition(text, set())
    with pytest.raises(BadExpression, match="characters"):
        Template("{{ " + text + " }}", set())


def test_a_template_of_too_many_blocks_is_refused() -> None:
    chain = "{% if a %}" + "{% elif a %}" * TEMPLATE_BLOCKS + "{% endif %}"
    with pytest.raises(BadExpression, match="blocks"):
        Template(chain, {"a"})


def test_braces_in_a_string_do_not_hide_how_long_an_expression_is() -> None:
    with pytest.raises(BadExpression, match="characters"):
        Template('{{ "}}" ~ ' + "-" * EXPRESSION_CHARS + "1 }}", ())


def test_a_text_without_blocks_may_be_long_and_a_rendered_one_is_bounded() -> None:
    assert Template("x" * 100_000, set()).render({}) == "x" * 100_000
    with pytest.raises(BadExpression, match="more than"):
        Template("{{ a }}", {"a"}).render({"a": "x" * (TEMPLATE_CHARS + 1)})


NAN = float("nan")


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ("a > 3", {"a": "5"}, "`a > 3` compares a text with a number"),
        ("3 <= a", {"a": "5"}, "`3 <= a` compares a number with a text"),
        ("b and not (a.x|lower < 0.5)", {"b": True, "a": {"x": "HIGH"}}, "compares a text with a number"),
        ("0 < a < b", {"a": 1, "b": "2"}, "`0 < a < b` compares a number with a text"),
        ("a >= 0.5", {"a": NAN}, "compares NaN, which is no number"),
        ("[a > 1][0]", {"a": [1]}, "compares a list with a number"),
        ("a > b", {"a": True, "b": False}, "compares true or false by order"),
        ("a < b", {"a": [1], "b": ["1"]}, "compares lists of different things"),
    ],
)
def test_what_has_no_order_is_not_compared(text: str, values: dict[str, object], told: str) -> None:
    with pytest.raises(BadExpression) as refused:
        Condition(text, {"a", "b"}).holds(values)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("a > 3", {"a": 3.5}, True),
        ("1 < a < 3", {"a": 2}, True),
        ("1 < a < 3", {"a": 3}, False),
        ("a > 'b > 1'", {"a": "c"}, True),
        ("not a > 1 and a|abs >= 1", {"a": -1}, True),
        ("a[0:2] < b", {"a": [1, 2, 3], "b": [1, 3]}, True),
        ("a.b > 3", {"a": {}}, False),
        ("a < 3", {"a": None}, False),
        ("b and a > 3", {"a": "text", "b": False}, False),
        ("(a > 1) == (b > 1)", {"a": 2, "b": 2}, True),
        ("a not in [1, 2] if b > 1 else false", {"a": 3, "b": 2}, True),
        ("{'x': a > 1}.x", {"a": 2}, True),
    ],
)
def test_what_has_an_order_is_compared(text: str, values: dict[str, object], holds: bool) -> None:
    assert Condition(text, {"a", "b"}).holds(values) is holds
