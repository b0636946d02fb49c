"""Docs: public parts without a word about them, and words that are not true any more."""

import re
from typing import Any

from _docstring_checks import DOCSTRING_CHECKS
from _finding import Hit, Rule
from _page_checks import PAGE_CHECKS
from _project import Source
from _specialist import review

from orchestra import Result

KIND = "docs"
MIN_LINES = 4


def _is_substantial(source: Source, hit: Hit) -> bool:
    """Whether others may want it, and there is enough in it that a name does not say all."""
    block = source.block(hit.line)
    hook = re.search(r"def pytest_|overload", source.line(hit.line) + source.line(hit.line - 1))
    return source.in_package and not hook and sum(bool(line.strip()) for line in block.splitlines()) >= MIN_LINES


def _is_forgotten(source: Source, hit: Hit) -> bool:
    """One or two parameters that the docstring, which describes the others, does not even mention."""
    names = re.findall(r"`(\*{0,2}\w+)`", hit.message.rpartition(":")[2])
    words = re.search(r'"""(?s:.*?)"""', source.block(hit.line))
    text = words[0] if words else ""
    return 0 < len(names) <= 2 and not any(name.startswith("*") or re.search(rf"\b{name}\b", text) for name in names)


def _is_described(source: Source, hit: Hit) -> bool:
    """Whether the line really begins the description of a parameter."""
    return bool(re.match(r"\s*\*{0,2}[a-z_]\w*\s*(\([^)]*\))?\s*:", source.line(hit.line)))


RULES = {
    "missing-docstring": Rule(
        "low", "Say in one sentence what it is for, and what a caller must know.", "D101 D103",
        only=_is_substantial, once=True,
    ),
    "unknown-parameter": Rule("medium", "Rename it to the parameter that is meant, or remove it.", "DOC102", only=_is_described),
    "undocumented-parameter": Rule("low", "Add a line for it.", "D417", only=_is_forgotten),
    "undocumented-exception": Rule("low", "Add it to what the docstring says is raised, and when."),
    "returns-nothing": Rule("medium", "Remove the section, or return what it promises.", "DOC202"),
    "empty-docstring": Rule(
        "low", "Write a sentence, or remove it.", "D419", "all",
        lambda source, hit: not source.has_comment(hit.line - 1, hit.line + 1),
    ),
    "placeholder-docstring": Rule("low", "Write what it does."),
    "broken-example": Rule("medium", "Mend it; running examples with doctest keeps them true."),
    "undocumented-export": Rule("low", "Add it to the reference; or take it out of `__all__`."),
    "readme-missing": Rule("medium", "Write a page: what it is, how to install it, one example."),
    "dead-link": Rule("medium", "Correct the path, or remove the link."),
    "unknown-module": Rule("medium", "Correct the name, or remove the example."),
    "unknown-file": Rule("medium", "Correct the path, or remove the command."),
    "unknown-target": Rule("medium", "Add the target to the Makefile, or correct the command."),
}  # fmt: skip


def agent(ctx: Any) -> Result:
    """What is found about the documentation of the project."""
    return review(ctx, KIND, RULES, (*DOCSTRING_CHECKS, *PAGE_CHECKS))
