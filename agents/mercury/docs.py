"""Docs: public parts without a word about them, and words that are not true any more."""

import builtins
import re
from typing import Any

from _docstring_checks import DOCSTRING_CHECKS
from _finding import Hit
from _page_checks import check_pages
from _project import Source
from _specialist import review

from orchestra import Result

MIN_LINES = 4
MAX_LINES = 300
_RAISES = re.compile(r"^\s*:(?:raises?|exception)\s|^\s*Raises(?::[ \t]*$|\s*\n\s*-{4,})", re.MULTILINE)
_OWN_WAY = re.compile(r"(NotImplemented|Assertion|Type)Error|Stop(Async)?Iteration|SystemExit")


def _docstring(source: Source, line: int) -> str:
    """The docstring of the function around a line."""
    head = source.function(line)[0] or line
    match = re.search(r'"""(?s:.*?)"""', "\n".join(source.lines[head - 1 : head + MAX_LINES]))
    return match[0] if match else ""


def _is_substantial(source: Source, hit: Hit) -> bool:
    """Whether others may want it, and there is enough in it that a name does not say all."""
    lines = [line for line in source.block(hit.line).splitlines() if line.strip()]
    hook = re.search(r"def pytest_|overload", source.line(hit.line) + source.line(hit.line - 1))
    return source.in_package and not hook and len(lines) >= MIN_LINES


def _is_forgotten(source: Source, hit: Hit) -> bool:
    """One or two parameters that the docstring, which describes the others, does not even mention."""
    names = re.findall(r"`(\*{0,2}\w+)`", hit.message.rpartition(":")[2])
    text = _docstring(source, hit.line)
    return len(names) <= 2 and not any(name[0] == "*" or re.search(rf"\b{name}\b", text) for name in names)


def _is_left_out(source: Source, hit: Hit) -> bool:
    """An exception that a docstring, which lists others, names neither by itself nor by what it is one of."""
    text, match = _docstring(source, hit.line), re.search(r"`(\w+)`", hit.message)
    name, public = match[1] if match else "", not source.function(hit.line)[1].startswith("_")
    if not public or not _RAISES.search(text) or _OWN_WAY.match(name):
        return False
    return not any(re.search(rf"\b{each}\b", text) for each in _ancestors(source, name))


def _ancestors(source: Source, name: str) -> list[str]:
    """An exception and what it is one of, by name, as far as Python or the project says."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type):
        return [each.__name__ for each in kind.__mro__[:-1]]
    texts = [each.text for each in source.project.product if f"class {name}(" in each.text]
    bases = [base for text in texts for base in re.findall(rf"class {name}\(([\w.]+)", text) if base != name]
    return [name, *(each for base in bases for each in _ancestors(source, base.rpartition(".")[2]))]


FILTERS = {
    "missing-docstring": _is_substantial,
    "undocumented-parameter": _is_forgotten,
    "undocumented-exception": _is_left_out,
    "unknown-parameter": lambda source, hit: bool(
        re.match(r"\s*\*{0,2}[a-z_]\w*\s*(\([^)]*\))?\s*:", source.line(hit.line))
    ),
    "empty-docstring": lambda source, hit: not source.has_comment(hit.line - 1, hit.line + 1),
}


def agent(ctx: Any) -> Result:
    """What is found about the documentation of the project."""
    return review(ctx, "docs", FILTERS, (*DOCSTRING_CHECKS, check_pages))
