"""Structure: how the code is built. Size, tangles, dead code, and mistakes that Python accepts."""

from typing import Any

from _async_mistakes import ASYNC_CHECKS, ASYNC_RULES
from _borrowed import BORROWED_PROJECT_CHECKS, BORROWED_RULES
from _flow import FLOW_CHECKS, FLOW_RULES
from _imports import IMPORT_CHECKS, IMPORT_PROJECT_CHECKS, IMPORT_RULES
from _leftovers import LEFTOVER_CHECKS, LEFTOVER_PROJECT_CHECKS, LEFTOVER_RULES
from _mistakes import MISTAKE_CHECKS, MISTAKE_RULES
from _raising import RAISING_CHECKS, RAISING_RULES
from _shape import SHAPE_CHECKS, SHAPE_PROJECT_CHECKS, SHAPE_RULES
from _signatures import SIGNATURE_CHECKS, SIGNATURE_PROJECT_CHECKS, SIGNATURE_RULES
from _specialist import review
from _twins import TWIN_CHECKS, TWIN_RULES

from orchestra import Result

KIND = "structure"
RULES = (
    {**SHAPE_RULES, **FLOW_RULES, **IMPORT_RULES, **MISTAKE_RULES, **ASYNC_RULES, **LEFTOVER_RULES}
    | SIGNATURE_RULES
    | RAISING_RULES
    | BORROWED_RULES
    | TWIN_RULES
)
FILE_CHECKS = (
    *(*SHAPE_CHECKS, *FLOW_CHECKS, *IMPORT_CHECKS, *MISTAKE_CHECKS, *ASYNC_CHECKS, *LEFTOVER_CHECKS),
    *(*SIGNATURE_CHECKS, *RAISING_CHECKS, *TWIN_CHECKS),
)
PROJECT_CHECKS = (
    *(*SHAPE_PROJECT_CHECKS, *IMPORT_PROJECT_CHECKS, *LEFTOVER_PROJECT_CHECKS),
    *(*SIGNATURE_PROJECT_CHECKS, *BORROWED_PROJECT_CHECKS),
)


def agent(ctx: Any) -> Result:
    """What is found about the structure of the project."""
    return review(ctx, KIND, RULES, FILE_CHECKS, PROJECT_CHECKS)
