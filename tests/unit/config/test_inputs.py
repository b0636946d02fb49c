"""Inputs of a run: from text to what is declared."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.config.inputs import accept_inputs
from orchestra.errors import BadInput
from tests.unit.config.support import workflow


def _accept(inputs: str, given: dict[str, Any], path: Path) -> dict[str, Any]:
    made = workflow(f"name: sample\ninputs: {inputs}\nphases: {{p: {{}}}}\n", path)
    return accept_inputs(made, given, base=path)


@pytest.mark.parametrize(
    ("declared", "given", "value"),
    [
        ("text", "12", "12"),
        ("integer", "12", 12),
        ("integer", 13, 13),
        ("number", "1.5", 1.5),
        ("number", "2", 2),
        ("number", 3, 3),
        ("boolean", "yes", True),
        ("boolean", "False", False),
        ("boolean", True, True),
        ("list", "a, b", ["a", "b"]),
        ("list", "[1, x]", [1, "x"]),
        ("list", '["a"]', ["a"]),
        ("list", "", []),
        ("map", "{a: 1}", {"a": 1}),
        ("map", '{"a": [1]}', {"a": [1]}),
        ("any", "12", "12"),
        ("any", {"a": 1}, {"a": 1}),
        ("path", ".", "."),
        ("path", "one.py", "one.py"),
    ],
)
def test_text_becomes_what_is_declared(declared: str, given: Any, value: Any, tmp_path: Path) -> None:
    assert _accept(f"{{x: {{type: {declared}}}}}", {"x": given}, tmp_path) == {"x": value}


@pytest.mark.parametrize(
    ("declared", "given", "reason"),
    [
        ("text", 3, "a text is needed, not the number 3"),
        ("integer", "1.5", "a whole number is needed, not the number 1.5"),
        ("integer", "many", "a whole number is needed, not 'many'"),
        ("integer", True, "a whole number is needed, not `true`"),
        ("integer", "9" * 5000, "is too long"),
        ("boolean", "maybe", "true or false is needed, not 'maybe'"),
        ("map", "[1]", "a mapping is needed, not a list"),
        ("map", "{a: *b}", "cannot be read as YAML or JSON"),
        ("list", "[1", "cannot be read as YAML or JSON"),
        ("path", "gone", "there is nothing at"),
        ("path", "a\0b", "there is nothing at"),
    ],
)
def test_what_does_not_fit_is_refused(declared: str, given: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'x' of sample") as caught:
        _accept(f"{{x: {{type: {declared}}}}}", {"x": given}, tmp_path)
    assert reason in str(caught.value.data["reason"])


def test_defaults_and_what_is_optional(tmp_path: Path) -> None:
    text = "{a: 3, b: {type: text, required: false}, c: {default: null}}"
    assert _accept(text, {}, tmp_path) == {"a": 3, "b": None, "c": None}


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = "{path: {type: path}, depth: {type: integer}, mode: {choices: [fast, slow]}}"
    with pytest.raises(BadInput) as caught:
        _accept(text, {"pth": "x", "depth": "deep", "mode": "odd"}, tmp_path)
    assert caught.value.data["problems"] == (
        ("pth", "there is no such input; did you mean `path`?"),
        ("path", "it is required and was not given"),
        ("depth", "a whole number is needed, not 'deep'"),
        ("mode", "it is one of 'fast', 'slow', not 'odd'"),
    )
    assert "and 'depth': a whole number" in str(caught.value)


@pytest.mark.parametrize("kind", ["integer", "number", "boolean", "map", "list", "path"])
def test_a_secret_of_the_wrong_type_is_not_repeated(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadInput, match="what was given") as caught:
        _accept(f"{{key: {{type: {kind}, secret: true}}}}", {"key": "[hunter2: {"}, tmp_path)
    assert "hunter2" not in str(caught.value)


def test_a_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        _accept("{key: {choices: [a, b], secret: true}}", {"key": "hunter2"}, tmp_path)
    assert "hunter2" not in str(caught.value)


def test_a_workflow_without_inputs_takes_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it takes none"):
        _accept("{}", {"x": 1}, tmp_path)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"folde": "x"}, "; did you mean `folder`? Give it with --input folder=VALUE."),
        ({"wholly": "x"}, "; there are `folder`, `mode`. Leave it out."),
        ({"mode": "odd"}, "not 'odd'. Give it with --input mode=VALUE."),
    ],
)
def test_advice_never_repeats_a_name_that_is_wrong(given: Any, advice: str, tmp_path: Path) -> None:
    text = "{folder: {type: text, required: false}, mode: {choices: [fast, slow], default: fast}}"
    with pytest.raises(BadInput) as caught:
        _accept(text, given, tmp_path)
    assert str(caught.value).endswith(advice)
