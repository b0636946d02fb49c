"""Reading YAML: plain data, the place of everything, and what is refused."""

from typing import Any

import pytest
import yaml

from orchestra.config.read.yaml_tree import LOADER, read_tree
from orchestra.limits import WORKFLOW_NODES

LOADERS = [pytest.param(yaml.SafeLoader, id="pure"), pytest.param(LOADER, id="fast")]


def test_the_fast_parser_is_used() -> None:
    assert LOADER is yaml.CSafeLoader


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("12:30:00", "12:30:00"),
        ("2026-11-15", "2026-11-15"),
        ("0777", 777),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1.2.3", "1.2.3"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'true'", "true"),
        ('"12"', "12"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 12", 12.0),
        ("! 12", "12"),
        ("=", "="),
        (".inf", float("inf")),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object, loader: Any) -> None:
    tree = read_tree(f"key: {text}\n", loader=loader)
    assert tree.problems == ()
    assert tree.data == {"key": value}
    assert type(tree.data["key"]) is type(value)


@pytest.mark.parametrize("loader", LOADERS)
def test_keys_are_text_whatever_they_look_like(loader: Any) -> None:
    tree = read_tree("on: 1\n12: 2\ntrue: 3\n~: 4\n", loader=loader)
    assert tree.data == {"on": 1, "12": 2, "true": 3, "~": 4}


@pytest.mark.parametrize("loader", LOADERS)
def test_every_key_and_value_has_a_place(loader: Any) -> None:
    places = read_tree("a: 1\nb:\n  - x\n  - {c: ü, d: 2}\n", loader=loader).places
    assert places.keys[("a",)] == (1, 1)
    assert places.values[("a",)] == (1, 4)
    assert places.values[("b",)] == (3, 3)
    assert places.values[("b", 0)] == (3, 5)
    assert places.keys[("b", 1, "d")] == (4, 12)
    assert places.value(("b", 1, "e", "f")) == (4, 5)
    assert places.key(("b", 1, "e")) == (4, 5)
    assert places.key(()) == (1, 1)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x 1", "1:4: the anchor `&x`"),
        ("a: *x", "1:4: the alias `*x`"),
        ("a: 1\nb: 2\na: 3", "3:1: `a` is given twice here; the first is on line 1"),
        ("<<: {a: 1}", "1:1: `<<` cannot be used to merge"),
        ("a: !!python/object/apply:os.system [ls]", "1:4: the tag `!!python/object/apply:os.system`"),
        ("a: !mine x", "1:4: the tag `!mine`"),
        ("a: !!binary aGk=", "1:4: the tag `!!binary`"),
        ("a: !!int x", "1:4: 'x' is not what its tag `!!int` says"),
        ("a: !!set {x}", "1:4: the tag `!!set`"),
        ("a:\n\tb: 1", "2:1: a tab; YAML is indented with spaces"),
        ("a:\n  - b\n \t- c", "3:2: a tab; YAML is indented with spaces"),
        ("a: b: c", "1:5: a colon too many"),
        ("task: {{ x }}", "1:8: a text that begins with `{{` must stand in quotes"),
        ("? [a]\n: b", "1:3: a key must be text"),
        ("a: 1\n---\nb: 2", "2:1: a second document begins here"),
        ("a: [1, 2", "1:9: a list that was opened"),
        ("a: {b: 1", "1:9: a mapping that was opened"),
        ("a: 'x", "1:6: a text in quotes is not closed"),
        ("a: - b", "1:4: a list cannot begin here"),
        ("*x : 1", "1:1: the alias `*x` cannot be used"),
        ("a: @x", "1:4: a value cannot begin with this character"),
        ("a: 1\n b: 2", "2:3: a colon too many"),
        ("a:\n  b: 1\n c: 2", "3:2: this line does not fit"),
        ("a: " + "9" * 2000, "1:4: a number of 2000 digits is too long"),
        ("a: " + "9" * 400, "1:4: a number of 400 digits is too long"),
        ("[" * 900, "1:65: this is nested deeper than 64 levels"),
        ("- " * 900, "1:129: this is nested deeper than 64 levels"),
    ],
)
def test_what_is_refused_is_named_with_its_place(text: str, expected: str, loader: Any) -> None:
    found = [f"{each.line}:{each.column}: {each.message}" for each in read_tree(text, loader=loader).problems]
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_reading_goes_on_after_something_was_refused() -> None:
    tree = read_tree("a: &x 1\nb: *x\nc: !y z\nd: 4\nd: 5\n")
    assert [each.line for each in tree.problems] == [1, 2, 3, 5]
    assert tree.data == {"a": 1, "b": None, "c": None, "d": 4}
    assert tree.left_out == {("b",), ("c",)}
    assert tree.whole


def test_more_nodes_than_anybody_writes_are_refused() -> None:
    tree = read_tree("a: [" + "1," * WORKFLOW_NODES + "]")
    assert [each.message[:18] for each in tree.problems] == ["the file has more "]
    assert not tree.whole


def test_a_bomb_of_aliases_stays_small() -> None:
    lines = ["a0: &a0 [lol]"] + [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 10)]
    tree = read_tree("\n".join(lines))
    assert tree.data["a9"] == [None] * 9
    assert len(tree.problems) == 10 + 9 * 9


def test_half_a_character_is_refused_by_both_parsers() -> None:
    for loader in (yaml.SafeLoader, LOADER):
        assert len(read_tree('a: "\\ud800"', loader=loader).problems) == 1
        assert len(read_tree('"\\ud800": 1', loader=loader).problems) == 1
        assert len(read_tree('a: "\\U00110000"', loader=loader).problems) == 1
