"""Faults planted in a small project are found, and the same code without them gives no finding."""

import tomllib
from collections import Counter
from typing import Any

import pytest

from tests.unit.shipped_agents.review import AGENTS, KINDS, PLANTED, Finding, findings

FIRST = 30
FOUND_AT_LEAST = 27


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    return findings(PLANTED / "project")


def planted() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = tomllib.loads((PLANTED / "planted.toml").read_text())["planted"]
    return listed


def place(each: dict[str, Any]) -> tuple[str, int, str]:
    return each["file"], each["line"], each["rule"]


def test_the_first_thirty_are_found(found: list[Finding]) -> None:
    places = {place(each) for each in found}
    hits = [each for each in planted()[:FIRST] if place(each) in places]
    assert len(hits) >= FOUND_AT_LEAST


def test_all_are_found(found: list[Finding]) -> None:
    places = {place(each) for each in found}
    assert [place(each) for each in planted() if place(each) not in places] == []


def test_there_are_enough_of_each_kind() -> None:
    first = Counter(each["kind"] for each in planted()[:FIRST])
    assert {kind: first[kind] >= 5 for kind in KINDS} == dict.fromkeys(KINDS, True)


def test_little_else_is_found(found: list[Finding]) -> None:
    """What is found beside the planted is true as well: it follows from a planted fault."""
    places = {place(each) for each in planted()}
    extra = {each["rule"] for each in found if place(each) not in places}
    assert extra <= {"unused-dependency", "shadowed-builtin"}


def test_nothing_is_found_in_the_clean_twin() -> None:
    assert findings(PLANTED / "clean") == []


def test_a_finding_is_plain_and_complete(found: list[Finding]) -> None:
    keys = {"rule", "severity", "kind", "file", "line", "message", "advice", "excerpt"}
    for each in found:
        assert keys <= set(each) <= keys | {"column", "code"}
        assert each["severity"] in ("low", "medium", "high")
        assert each["message"].endswith(".")
        assert each["advice"]


def test_every_rule_that_can_be_planted_is(found: list[Finding]) -> None:
    """Rules about size and damage need sources that would break the checks of this project itself."""
    damage = "syntax-error wrong-encoding unreadable-file invalid-escape newer-syntax broken-manifest"
    size = "long-file long-function complex-function no-tests no-manifest readme-missing barely-tested"
    others = (
        "star-import assert-tuple unclosed-file missing-encoding none-comparison newer-module unescaped-html "
        "classifier-mismatch unknown-host-key timing-comparison weak-cryptography debugger-left wrong-format "
        "certain-mistake"
    )
    tables = tomllib.loads((AGENTS / "mercury" / "rules.toml").read_text())
    known = {rule for kind in KINDS for rule in tables[kind]}
    assert known - {each["rule"] for each in found} == set(f"{damage} {size} {others}".split())


def test_secrets_are_masked(found: list[Finding]) -> None:
    secret = next(each for each in found if each["rule"] == "hard-coded-secret")
    assert "q8…" in secret["excerpt"]
    assert "41xkPw" not in secret["excerpt"] + secret["message"]
