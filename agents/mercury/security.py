"""Security: calls that run data as code, trust what must not be trusted, or give secrets away."""

from typing import Any

from _secrets_found import SECRET_CHECKS, SECRET_RULES
from _specialist import review
from _unsafe_calls import CALL_CHECKS, CALL_RULES

from orchestra import Result

KIND = "security"
RULES = {**CALL_RULES, **SECRET_RULES}
FILE_CHECKS = (*CALL_CHECKS, *SECRET_CHECKS)


def agent(ctx: Any) -> Result:
    """What is dangerous in the project."""
    return review(ctx, KIND, RULES, FILE_CHECKS)
