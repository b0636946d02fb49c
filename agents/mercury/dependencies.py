"""Dependencies: whether what a project declares and what it imports agree, today and tomorrow."""

from typing import Any

from _dependency_imports import IMPORT_RULES, IMPORTED_CHECKS
from _requirements_found import REQUIREMENT_CHECKS, REQUIREMENT_RULES
from _specialist import review

from orchestra import Result

KIND = "dependencies"
RULES = {**REQUIREMENT_RULES, **IMPORT_RULES}
PROJECT_CHECKS = (*REQUIREMENT_CHECKS, *IMPORTED_CHECKS)


def agent(ctx: Any) -> Result:
    """What is found about the dependencies of the project."""
    return review(ctx, KIND, RULES, (), PROJECT_CHECKS)
