"""Mistakes in expressions and templates."""

from pathlib import Path

import pytest

from orchestra.limits import TEMPLATE_CHARS
from tests.unit.config.support import problems, workflow

HEAD = (
    "name: x\nagents: {one: one.py, two: two.py}\ninputs: {path: ., many: [a], my-name: x, deep: false}\n"
    "context: {found: append}\nphases:\n  p:\n"
)


def _text(key: str, text: str, more: str = "") -> str:
    quoted = text.replace("'", "''")
    return f"{HEAD}    specialists:\n      one: {{{more}{key}: '{quoted}'}}\n"


def _transition(text: str, evaluate: str = "") -> str:
    quoted = text.replace("'", "''")
    return f"{HEAD}{evaluate}    specialists: {{one: }}\n    next: [{{to: end, when: '{quoted}'}}, end]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ input.path }}", "`input` cannot be used here; did you mean `inputs`?"),
        ("{{ inputs.pth }}", "`inputs.pth`: no input `pth` is declared under `inputs`; did you mean `path`?"),
        (
            "{{ inputs.my-name }}",
            '`inputs.my`: no input `my` is declared under `inputs`; write `inputs["my-name"]`',
        ),
        ("{{ context.fund }}", "`context.fund`: no context name `fund` is declared under `context`; did you"),
        ("{{ needs.two }}", "`needs.two`: no specialist `two` is among `needs`"),
        ("{{ item }}", "`item` needs a `foreach`"),
        ("{{ visits.p }}", "`visits` cannot be used here; did you mean `visit`?"),
        ("{{ inputs.path", "`task`: unexpected end of"),
        ("{{ inputs.path | uper }}", "`task`: there is no filter `uper`"),
        ("{% if inputs.path is odder %}x{% endif %}", "`task`: there is no test `odder`"),
        ("{{ range(3) }}", "`range` cannot be used here"),
        ("{% include 'x' %}{{ ''.__class__ }}{{ open('x') }}", "`open` cannot be used here"),
    ],
)
def test_tasks(text: str, expected: str, tmp_path: Path) -> None:
    (found,) = problems(_text("task", text), tmp_path)
    assert found.startswith(f"8:19: {expected}"), found


@pytest.mark.parametrize(("before", "size"), [("", "200,001"), ("{{ inputs.path }} ", "200,002")])
def test_a_task_that_is_too_long_in_any_case(before: str, size: str, tmp_path: Path) -> None:
    (found,) = problems(_text("task", before + "x" * (TEMPLATE_CHARS + 1)), tmp_path)
    assert found.startswith(f"8:19: `task` has {size} characters, and the limit is 200,000;"), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 1", "`when` must be true or false, but `1 + 1` is always the number 2"),
        ("inputs.path > 3", "`when`: `inputs.path > 3` compares a text with a number"),
        ("true and (visit < '0.5')", "`when`: `visit < '0.5'` compares a number with a text"),
        (
            "visits.p >= inputs.path or visit > 1",
            "`when`: `visits.p >= inputs.path` compares a number with a",
        ),
        ("phase > 1", "`when`: `phase > 1` compares a text with a number"),
        ("inputs.path", "`when` must be true or false, and `inputs.path` is neither; compare it"),
        ("visits.p", "`when` must be true or false, and `visits.p` is neither; compare it"),
        ("visit", "`when` must be true or false, and `visit` is neither; compare it"),
        ("visits.q > 1", "`visits.q`: no phase is called `q`; there is `p`"),
        ("{{ visit > 1 }}", "`when` is an expression already; write it without `{{` and `}}`"),
        ("visit >", "`when`: unexpected end of"),
        ("visit > 1 }} {{ 1", "`when` is an expression already"),
        ("visit = 1", "`when`: compare with `==`, not with `=`"),
        ("", "`when`: "),
        ("item == 1", "`item` needs a `foreach`"),
    ],
)
def test_conditions_of_specialists(text: str, expected: str, tmp_path: Path) -> None:
    (found,) = problems(_text("when", text), tmp_path)
    assert found.startswith(f"8:19: {expected}"), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("context.fund", "`context.fund`: no context name `fund`"),
        ("3", "`foreach` must give a list, but `3` is always the number 3"),
        ("inputs.path", "`foreach` must give a list, and `inputs.path` is of type text"),
    ],
)
def test_lists(text: str, expected: str, tmp_path: Path) -> None:
    (found,) = problems(_text("foreach", text), tmp_path)
    assert found.startswith(f"8:22: {expected}"), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "evaluation.verdict == 'accept'",
            "`evaluation` cannot be used here, because this phase has no `evaluate`",
        ),
        ("results.two == 1", "`results.two`: no specialist of this phase is called `two`; there is `one`"),
        ("needs.one == 1", "`needs` cannot be used here"),
        ("confidence", "`when` must be true or false, and `confidence` is neither"),
    ],
)
def test_conditions_of_transitions(text: str, expected: str, tmp_path: Path) -> None:
    (found,) = problems(_transition(text), tmp_path)
    assert found.startswith(f"8:28: {expected}"), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("evaluation.verdict == 'acept'", "there is no verdict 'acept'; did you mean `accept`?"),
        (
            "evaluation.verdct == 'accept'",
            "`evaluation.verdct`: no part of an evaluation is called `verdct`; did",
        ),
    ],
)
def test_conditions_on_evaluations(text: str, expected: str, tmp_path: Path) -> None:
    (found,) = problems(_transition(text, "    evaluate: two\n"), tmp_path)
    assert found.startswith(f"9:28: {expected}"), found


def test_the_task_of_an_evaluation(tmp_path: Path) -> None:
    (found,) = problems(f"{HEAD}    evaluate: {{agent: one, task: 'Judge {{{{ needs.x }}}}'}}\n", tmp_path)
    assert found.startswith("7:34: `needs` cannot be used here")


@pytest.mark.parametrize(
    ("key", "text", "more"),
    [
        (
            "task",
            "{{ inputs.path }} {{ context.found | length }} {{ phase }} {{ visit }} {{ round }} {{ run }}",
            "",
        ),
        ("task", "{% for each in context.found %}{{ each.x }} {{ loop.index }}{% endfor %}", ""),
        ("task", "{{ item.name }} {{ index }} {{ feedback | join(', ') }}", "foreach: context.found, "),
        ("task", '{{ inputs["my-name"] | upper }} {{ inputs.get("x") }}', ""),
        ("task", "Not a { template } | nor } this", ""),
        ("when", "inputs.deep", ""),
        ("when", "inputs.deep and visits.p < 3", ""),
        ("when", "context.found is defined and 'a' in inputs.many", ""),
        ("when", "inputs.path == 'is odd | nothing'", ""),
        ("foreach", "inputs.many", ""),
        ("foreach", "context.found[:3]", ""),
        ("foreach", '["a", "b"]', ""),
    ],
)
def test_what_is_right_is_left_alone(key: str, text: str, more: str, tmp_path: Path) -> None:
    assert workflow(_text(key, text, more), tmp_path).phases


def test_what_is_needed_may_be_named(tmp_path: Path) -> None:
    text = "    specialists:\n      one: \n      b: {agent: two, needs: one, task: '{{ needs.one }}'}\n"
    assert workflow(HEAD + text, tmp_path).phases[0].specialists[1].needs == ("one",)


def test_what_follows_from_a_name_that_is_wrong_is_not_told_again(tmp_path: Path) -> None:
    collect = "      collect: {agent: one, task: Look around}\n"
    sort = "      two: {task: 'Sort {{ needs.collect }}', needs: [colect]}\n"
    (found,) = problems(f"{HEAD}    specialists:\n{collect}{sort}", tmp_path)
    assert found.endswith("there is no specialist `colect` in this phase; did you mean `collect`?")
