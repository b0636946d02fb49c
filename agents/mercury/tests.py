"""Tests: what they prove. Modules no test reaches, tests that cannot fail, tests that never run."""

import re
from typing import Any

from _finding import Hit
from _project import Source
from _specialist import review
from _test_checks import TEST_CHECKS

from orchestra import Result


def _is_forgotten(source: Source, hit: Hit) -> bool:
    """A comparison in a test, not in a block where it stands for what it raises."""
    heads = [line for _, line in source.heads(hit.line)]
    raising = any(re.match(r"(async )?with\b|try\b", line) for line in heads)
    return not raising and any(re.match(r"(async )?def test", line) for line in heads)


def _is_alone(source: Source, hit: Hit) -> bool:
    """Whether nothing else in the test can fail: then it passes when nothing is raised."""
    head, name = source.function(hit.line)
    handler = next(at for at, line in source.heads(hit.line) if line.startswith("except"))
    rest = source.block(head).replace(source.block(handler), "")
    return name.startswith("test") and not re.search(r"\bassert|raise|fail\(|\belse\s*:|/ 0\b", rest)


FILTERS = {
    "comparison-not-asserted": _is_forgotten,
    "assertion-in-except": _is_alone,
    "broad-raises": lambda source, hit: (
        not source.has_comment(hit.line - 1, hit.line) and " as " not in source.line(hit.line)
    ),
    "duplicate-test": lambda source, hit: "def test" in source.line(hit.line),
}


def agent(ctx: Any) -> Result:
    """What is found about the tests of the project."""
    return review(ctx, "tests", FILTERS, TEST_CHECKS)
