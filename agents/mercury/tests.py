"""Tests: what they prove. Modules no test reaches, tests that cannot fail, tests that never run."""

import re
from typing import Any

from _finding import Hit, Rule
from _project import Source
from _specialist import review
from _test_checks import TEST_CHECKS

from orchestra import Result

KIND = "tests"


def _is_forgotten(source: Source, hit: Hit) -> bool:
    """A comparison in a test, not in a block where it stands for what it raises."""
    heads = [line for _, line in source.heads(hit.line)]
    raising = any(re.match(r"(async )?with\b|try\b", line) for line in heads)
    return not raising and any(re.match(r"(async )?def test", line) for line in heads)


def _is_unexplained(source: Source, hit: Hit) -> bool:
    return not source.has_comment(hit.line - 1, hit.line) and " as " not in source.line(hit.line)


def _is_alone(source: Source, hit: Hit) -> bool:
    """Whether nothing else in the test can fail: then it passes when nothing is raised."""
    head, name = source.function(hit.line)
    handler = next(at for at, line in source.heads(hit.line) if line.startswith("except"))
    rest = source.block(head).replace(source.block(handler), "")
    return name.startswith("test") and not re.search(r"\bassert|raise|fail\(|\belse\s*:|\bdef\b(?s:.*)\bdef\b|/ 0\b", rest)


RULES = {
    "test-without-assertion": Rule("medium", "Assert what the value should be, or remove the test."),
    "assertion-cannot-fail": Rule("high", "Assert something that can be false.", "F631 PLW0129 PLR0133", "tests"),
    "comparison-not-asserted": Rule(
        "high", "Write `assert` before it: without it the test passes either way.", "B015", "tests", _is_forgotten
    ),
    "assertion-not-called": Rule("high", "Add the parentheses, and the arguments that are expected.", "PGH005", "tests"),
    "unreached-assertion": Rule("high", "Move it behind the `with` block."),
    "swallowed-assertion": Rule("high", "Let the assertion's failure through: catch only what the test is about."),
    "assertion-in-except": Rule(
        "medium", "Use `with pytest.raises(…) as caught` and assert behind it: when nothing is raised, this passes.",
        "PT017", "tests", _is_alone,
    ),
    "broad-raises": Rule(
        "medium", "Name the exception that is meant, or add `match=`: this passes when other code is broken.",
        "B017", "tests", _is_unexplained,
    ),
    "empty-test": Rule("medium", "Write it, mark it as skipped with a reason, or remove it."),
    "duplicate-test": Rule(
        "high", "Give each test a name of its own: the first never runs.", "F811", "tests",
        lambda source, hit: bool(re.search(r"def test", source.line(hit.line))),
    ),
    "duplicated-test": Rule("medium", "Let it test what its name says, or remove it."),
    "duplicate-case": Rule("low", "Remove one, or make it the case that was meant.", "PT014", "tests"),
    "uncollected-class": Rule("high", "Remove `__init__` and prepare in a fixture."),
    "nested-test": Rule("high", "Move it out of the function, to where it is collected."),
    "skip-without-reason": Rule("low", "Say why: reason='…'."),
    "sleep-in-test": Rule("low", "Wait for the event instead, or hand the code a clock of your own."),
    "no-tests": Rule("high", "Begin with one test of what users do most."),
    "untested-module": Rule("medium", "Add a test that imports it; even a small one notices when it no longer loads."),
    "barely-tested": Rule("low", "Test what users need most of it, or remove what nobody uses."),
}  # fmt: skip


def agent(ctx: Any) -> Result:
    """What is found about the tests of the project."""
    return review(ctx, KIND, RULES, TEST_CHECKS)
