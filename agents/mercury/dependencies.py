"""Dependencies: packages that are imported and not declared, declared and not used, or cannot be had."""

import re
from typing import Any

from _finding import Rule
from _import_checks import IMPORT_CHECKS
from _manifest_checks import MANIFEST_CHECKS
from _specialist import review

from orchestra import Result

KIND = "dependencies"
RULES = {
    "no-manifest": Rule("medium", "Add a pyproject.toml with name, requires-python and dependencies."),
    "broken-manifest": Rule("high", "Mend the syntax; no tool can install the project until then."),
    "no-requires-python": Rule("medium", "Add requires-python, so that installers choose a release that works."),
    "unpinned-requirement": Rule("low", "Give each a version, or at least a lowest one."),
    "unpinned-source": Rule("medium", "Name a commit or a tag behind the @."),
    "duplicate-requirement": Rule("low", "Keep one of them."),
    "conflicting-requirement": Rule("high", "Choose versions that can be met together."),
    "impossible-requirement": Rule("high", "Correct the bounds."),
    "backport-of-stdlib": Rule("medium", "Remove it; what it brings is part of Python."),
    "missing-file": Rule("high", "Correct the name, or add the file."),
    "broken-entry-point": Rule("high", "Correct module and function behind the command."),
    "classifier-mismatch": Rule("low", "Remove the classifier, or lower requires-python."),
    "license-twice": Rule("low", "Remove the classifier; `license` says it all."),
    "test-tool-in-dependencies": Rule("medium", "Move it to an optional group such as `test` or `dev`."),
    "undeclared-import": Rule("high", "Add the package that brings it to the dependencies."),
    "unused-dependency": Rule("medium", "Remove it, or say in a comment what needs it."),
    "removed-module": Rule("high", "Use what the documentation of Python names in its place."),
    "newer-module": Rule("medium", "Raise requires-python, or fall back where it is missing."),
    "newer-syntax": Rule(
        "high", "Raise requires-python, or write it in the older way.", "invalid-syntax E902",
        only=lambda source, hit: bool(re.search("syntax was added", hit.message)),
    ),
}  # fmt: skip


def agent(ctx: Any) -> Result:
    """What is found about the dependencies of the project."""
    return review(ctx, KIND, RULES, (*MANIFEST_CHECKS, *IMPORT_CHECKS))
