"""Short templates that would take all memory are refused before they do; others are as they were."""

import pytest

from orchestra.errors import BadExpression
from orchestra.expressions.expression import Expression, Template, template_paths
from orchestra.limits import TEMPLATE_CHARS

VALUES = {"a": "x" * 200, "n": 1_000_000_000, "many": list(range(20_000))}


@pytest.mark.parametrize(
    "text",
    [
        "'x' * 10001",
        "'x' * 10**9",
        "10**9 * 'x'",
        '100000000 * "x"',
        "'x' * n",
        "n * 'x'",
        "'x' * 9999 * 9999",
        "9999 * 9999 * 'x'",
        "a ~ 'x'*1e8",
        "a|tojson(indent=2000000000)",
        "a|tojson(n)",
    ],
)
def test_a_text_is_not_repeated_by_much_or_by_anything(text: str) -> None:
    for made in (Expression, lambda text, known: Template(f"{{{{ {text} }}}}", known)):
        with pytest.raises(BadExpression, match=r"up to 10,000, and by nothing else|one or two digits"):
            made(text, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "{% set b = a %}" + "{% set b = b ~ b %}" * 40 + "{{ b|length }}",
        "{% set b = a %}" + "{% set b = [b, b] %}" * 40 + "{{ b }}",
        "{% set b = a %}" + "{%- set b = [b, b]|join -%}" * 40 + "{{ b|length }}",
        "{% set b = a * 10000 %}{% set b = b * 10000 %}{{ b|length }}",
        "{% for b in [a ~ a] %}" * 40 + "{{ b|length }}" + "{% endfor %}" * 40,
        "{% with b = a + a %}" * 40 + "{{ b|length }}" + "{% endwith %}" * 40,
        "{% macro f(b) %}{{ f(b ~ b) }}{% endmacro %}{{ f(a) }}",
        "{% for b in [a] recursive %}{{ loop([b ~ b]) }}{% endfor %}",
    ],
)
def test_what_grows_from_block_to_block_is_refused(text: str) -> None:
    with pytest.raises(BadExpression, match=r"too often|is not taken"):
        Template(text, VALUES)
    with pytest.raises(BadExpression):
        template_paths(text)


@pytest.mark.parametrize(
    "text",
    [
        "{% for _ in many %}{{ a }}{% endfor %}",
        "{% for _ in many %}{{ [a, a] }}{% endfor %}",
        "{% set b %}{% for _ in many %}{{ a }}{% endfor %}{% endset %}{{ b|length }}",
    ],
)
def test_what_is_printed_is_metered_while_it_is_printed(text: str) -> None:
    made = Template(text, VALUES)
    for _ in range(2):
        with pytest.raises(BadExpression, match=f"prints more than {10 * TEMPLATE_CHARS}"):
            made.render(VALUES)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{{ '=' * 20 }}", "=" * 20),
        ("{{ 3 * 'ab' ~ a[:1] }}", "abababx"),
        ("{{ n * 2 }} {{ 2 ** 3 }} {{ many[2] * many[3] }}", "2000000000 8 6"),
        ("{{ '2 * x' }} {{ 'a' ~ 'b' ~ 'c' }}", "2 * x abc"),
        ("{{ {'k': 1}|tojson(indent=2) }}{{ [1]|tojson }}", '{\n  "k": 1\n}[1]'),
        ("{% set b = n * 1000 %}{{ b }}", "1000000000000"),
        ("{% for k, v in {'x': 1, 'y': 2}|items %}{{ k }}={{ v }};{% endfor %}", "x=1;y=2;"),
        ("{% set b = 'macro' %}{{ b }} {{ 1.0 }}{{ a[:1] if false }}{{ none }}", "macro 1.0None"),
        ("{% set b = 0 %}" + "{% set b = b + n %}" * 40 + "{{ b }}", "40000000000"),
        ("{% set b %}{{ a[:2] }}{% endset %}{{ b ~ b }}", "xxxx"),
    ],
)
def test_what_is_ordinary_goes_on_as_before(text: str, wanted: str) -> None:
    made = Template(text, VALUES)
    assert [made.render(VALUES), made.render(VALUES)] == [wanted, wanted]
