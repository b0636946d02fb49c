"""Docs: whether what is written about the code is there, and is true."""

from typing import Any

from _doc_coverage import COVERAGE_CHECKS, COVERAGE_RULES
from _docstrings import DOCSTRING_CHECKS, DOCSTRING_PROJECT_CHECKS, DOCSTRING_RULES
from _readme import README_CHECKS, README_RULES
from _specialist import review

from orchestra import Result

KIND = "docs"
RULES = {**DOCSTRING_RULES, **COVERAGE_RULES, **README_RULES}
FILE_CHECKS = DOCSTRING_CHECKS
PROJECT_CHECKS = (*DOCSTRING_PROJECT_CHECKS, *COVERAGE_CHECKS, *README_CHECKS)


def agent(ctx: Any) -> Result:
    """What is found about the documentation of the project."""
    return review(ctx, KIND, RULES, FILE_CHECKS, PROJECT_CHECKS)
