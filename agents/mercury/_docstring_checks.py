"""What ruff does not see of docstrings: parameters in the style of Sphinx, examples, and names no page tells of."""

import ast
import doctest
import re
from collections.abc import Iterator

from _finding import Hit, listed
from _nodes import FUNCTIONS, Function, decorators, dotted, last_line
from _project import Project, Source
from _tools import Tools

MIN_NAMES = 10
MIN_SHARE = 0.8  # of the exported names: below that the pages do not claim to list them
_HOLDING = r"(?:todo|fixme|tbd|xxx|lorem ipsum|description|docstring|_summary_)\b"
_TELLING = re.compile(rf":(?:param|arg|key)|>>>|[\"']\s*{_HOLDING}", re.IGNORECASE)
_PLACEHOLDER = re.compile(rf"\W*{_HOLDING}\W*.{{0,20}}$", re.IGNORECASE)
_PARAMETER = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:\n]*\s)?\*{0,2}(\w+)\s*:")
_WHOLE_MODULE = re.compile(r"(?:automodule::|^:::)\s*([\w.]+)", re.MULTILINE)
_PAGE = re.compile(r"\.(rst|md|markdown|txt)$")


def check_docstrings(project: Project, _: Tools) -> Iterator[Hit]:
    """Docstrings that speak of what is not there, only hold the place of one, or show what is no Python."""
    for source in project.product:
        for node in source.of(*FUNCTIONS, ast.ClassDef) if _TELLING.search(source.text) else ():
            text = ast.get_docstring(node) or ""
            if not text or source.is_silenced(node.lineno):
                continue
            if _PLACEHOLDER.fullmatch(text.strip()):
                message = (
                    f"The docstring of `{node.name}` only holds the place of one: {text.strip()[:40]!r}."
                )
                yield Hit("placeholder-docstring", source.name, node.body[0].lineno, message)
            yield from _unknown(source, node, text)
            yield from _broken(source, node, text) if ">>>" in text else ()


def _place(source: Source, node: Function | ast.ClassDef, pattern: str) -> int:
    """The docstring's line that shows something; the definition's where it is not found."""
    lines = range(node.body[0].lineno, last_line(node.body[0]) + 1)
    return next((line for line in lines if re.search(pattern, source.line(line))), node.lineno)


def _broken(source: Source, node: Function | ast.ClassDef, text: str) -> Iterator[Hit]:
    """The first example that is no Python; a layout that doctest does not know is no defect."""
    example = None
    try:
        for example in doctest.DocTestParser().get_examples(text):
            compile(example.source, "", "single", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        line = _place(source, node, re.escape(example.source.strip().splitlines()[0]) if example else "$^")
        message = f"An example in the docstring of `{node.name}` is no Python: {error.msg}."
        yield Hit("broken-example", source.name, line, message)
    except ValueError:
        return


def _unknown(source: Source, node: Function | ast.ClassDef, text: str) -> Iterator[Hit]:
    """Parameters that only the docstring knows; a function that takes anything may have any."""
    makers = [each for each in node.body if isinstance(each, FUNCTIONS) and each.name == "__init__"]
    function = (*makers, None)[0] if isinstance(node, ast.ClassDef) else node
    if function is None or node.name.startswith("_") or function.args.kwarg or function.args.vararg:
        return
    if any(
        not name.endswith(("classmethod", "staticmethod", "abstractmethod")) for name in decorators(function)
    ):
        return
    own = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    for name in _PARAMETER.findall(text):
        if name not in own:
            message = f"The docstring of `{node.name}` describes `{name}`, which is no parameter of it."
            yield Hit("unknown-parameter", source.name, _place(source, node, rf"\b{name}\s*:"), message)


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
