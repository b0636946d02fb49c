"""Dependencies: packages that are imported and not declared, declared and not used, or cannot be had."""

from typing import Any

from _import_checks import IMPORT_CHECKS
from _manifest_checks import MANIFEST_CHECKS
from _specialist import review

from orchestra import Result

FILTERS = {"newer-syntax": lambda source, hit: "syntax was added" in hit.message}


def agent(ctx: Any) -> Result:
    """What is found about the dependencies of the project."""
    return review(ctx, "dependencies", FILTERS, (*MANIFEST_CHECKS, *IMPORT_CHECKS))
