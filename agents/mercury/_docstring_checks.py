"""What ruff does not see of docstrings: parameters in the style of Sphinx, examples, names no page tells of."""

import ast
import doctest
import re
from collections.abc import Iterator
from textwrap import dedent

from _finding import Hit, listed
from _nodes import FUNCTIONS, dotted
from _project import Project, Source
from _tools import Tools

MIN_NAMES = 10
MIN_SHARE = 0.8  # of the exported names: below that the pages do not claim to list them
_DOCSTRING = re.compile(r"^[ \t]+[rRuU]?(\"\"\"|\'\'\')(?P<text>(?s:.*?))\1", re.MULTILINE)
_PLACEHOLDER = re.compile(
    r"\W*(todo|fixme|tbd|xxx|lorem ipsum|description|docstring|_summary_)\b\W*.{0,20}", re.IGNORECASE
)
_PARAMETER = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:\n]*\s)?\*{0,2}(\w+)\s*:")
_WHOLE_MODULE = re.compile(r"(?:automodule::|^:::)\s*([\w.]+)", re.MULTILINE)
_PAGE = re.compile(r"\.(rst|md|markdown|txt)$")
_KEEPING = ("classmethod", "staticmethod", "abstractmethod")  # decorators that keep the parameters


def check_docstrings(project: Project, _: Tools) -> Iterator[Hit]:
    """Docstrings that speak of what is not there, only hold the place of one, or show what is no Python."""
    for source in project.product:
        for line, match in source.matches(_DOCSTRING):
            text = match["text"]
            if _PLACEHOLDER.fullmatch(text.strip()):
                message = f"This docstring only holds the place of one: {text.strip()[:40]!r}."
                yield Hit("placeholder-docstring", source.name, line, message)
            yield from _broken(source, line, text) if ">>>" in text else ()
            yield from _unknown(source, line, text) if _PARAMETER.search(text) else ()


def _broken(source: Source, line: int, text: str) -> Iterator[Hit]:
    """The first example that is no Python; a layout that doctest does not know is no defect."""
    example = None
    try:
        for example in doctest.DocTestParser().get_examples(text):
            compile(example.source, "", "single", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        at = line + example.lineno if example else line
        yield Hit("broken-example", source.name, at, f"This example is no Python: {error.msg}.")
    except ValueError:
        return


def _unknown(source: Source, line: int, text: str) -> Iterator[Hit]:
    """Parameters that only the docstring knows; a function that takes anything may have any."""
    head, _ = next(source.heads(line), (0, ""))
    try:
        node = ast.parse(dedent(source.block(head))).body[0] if head else None
    except (SyntaxError, ValueError):
        return
    if isinstance(node, ast.ClassDef):
        node = next((each for each in node.body if getattr(each, "name", "") == "__init__"), None)
    decorator = source.line(head - 1).strip()
    if not isinstance(node, FUNCTIONS) or (decorator.startswith("@") and not decorator.endswith(_KEEPING)):
        return
    if node.args.kwarg or node.args.vararg or (node.name.startswith("_") and node.name != "__init__"):
        return
    own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    for match in _PARAMETER.finditer(text):
        if match[1] not in own:
            message = f"The docstring describes `{match[1]}`, which is no parameter of it."
            yield Hit("unknown-parameter", source.name, line + text.count("\n", 0, match.start(1)), message)


def check_exports(project: Project, _: Tools) -> Iterator[Hit]:
    """Exported names that no page mentions, in a project whose pages mention almost all of them."""
    pages = [path for folder in ("docs", "doc") for path in sorted((project.root / folder).rglob("*"))]
    text = "\n".join(project.read(str(path)) for path in pages if _PAGE.search(path.name))
    words, whole = set(re.findall(r"\w+", text)), set(_WHOLE_MODULE.findall(text))
    offered = {source.name: _offered(source) for source in project.product if source.module not in whole}
    missing = {file: [each for each in names if each.value not in words] for file, names in offered.items()}
    count = sum(map(len, offered.values()))
    if not text or count < MIN_NAMES or sum(map(len, missing.values())) > (1 - MIN_SHARE) * count:
        return
    seen: set[str] = set()
    for file, names in missing.items():
        left = [each for each in names if each.value not in seen]
        seen.update(each.value for each in left)
        if left:
            message = f"Offered in `__all__`, and no page mentions: {listed([each.value for each in left])}."
            yield Hit("undocumented-export", file, left[0].lineno, message)


def _offered(source: Source) -> list[ast.Constant]:
    """The names in `__all__` of a public module."""
    public = source.in_package and not re.search(r"(^|\.)_", source.module) and "__all__" in source.text
    assigned = [each for each in source.tree.body if isinstance(each, ast.Assign)] if public else []
    lists = [each.value for each in assigned if "__all__" in map(dotted, each.targets)]
    names = [each for value in lists for each in getattr(value, "elts", ()) if isinstance(each, ast.Constant)]
    return [each for each in names if not str(each.value).startswith("_")]


DOCSTRING_CHECKS = (check_docstrings, check_exports)
