"""Tests: what they prove. Modules no test reaches, tests that cannot fail, tests that never run."""

from typing import Any

from _specialist import review
from _test_assertions import ASSERTION_CHECKS, ASSERTION_RULES
from _test_copies import COPY_CHECKS, COPY_RULES
from _test_reach import REACH_CHECKS, REACH_RULES
from _test_running import RUNNING_CHECKS, RUNNING_RULES

from orchestra import Result

KIND = "tests"
RULES = {**ASSERTION_RULES, **RUNNING_RULES, **COPY_RULES, **REACH_RULES}
FILE_CHECKS = (*ASSERTION_CHECKS, *RUNNING_CHECKS, *COPY_CHECKS)
PROJECT_CHECKS = REACH_CHECKS


def agent(ctx: Any) -> Result:
    """What is found about the tests of the project."""
    return review(ctx, KIND, RULES, FILE_CHECKS, PROJECT_CHECKS)
