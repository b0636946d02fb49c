"""What ruff does not see of docstrings: fields in the style of Sphinx, examples, and what is not listed."""

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
MAX_PAGES = 300
_TELLING = re.compile(
    r":param|:arg|:key|>>>|[\"']\s*(?:todo|fixme|tbd|xxx|lorem|description|docstring|_summary_)",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:\n]*\s)?\*{0,2}(\w+)\s*:")
_PLACEHOLDER = re.compile(
    r"\W*(todo|fixme|tbd|xxx|lorem ipsum|description|docstring|_summary_)\b\W*.{0,20}$", re.IGNORECASE
)
_HARMLESS = frozenset(
    {"classmethod", "staticmethod", "abstractmethod", "abc.abstractmethod"}
)  # keep the parameters
_WHOLE_MODULE = re.compile(r"(?:automodule::|^:::)\s*([\w.]+)", re.MULTILINE)


def check_docstrings(project: Project, _: Tools) -> Iterator[Hit]:
    """Docstrings that speak of what is not there, only hold the place of one, or show what is no Python."""
    for source in project.product:
        for node in source.of(*FUNCTIONS, ast.ClassDef) if _TELLING.search(source.text) else ():
            text = ast.get_docstring(node) or ""
            if text and not source.is_silenced(node.lineno):
                yield from _placeholder(source, node, text)
                yield from _example(source, node, text) if ">>>" in text else ()
                yield from _unknown(source, node, text) if ":" in text else ()


def _place(source: Source, node: Function | ast.ClassDef, pattern: str) -> int:
    """The docstring's line that shows something; the definition's where it is not found."""
    lines = range(node.body[0].lineno, last_line(node.body[0]) + 1)
    return next((line for line in lines if re.search(pattern, source.line(line))), node.lineno)


def _placeholder(source: Source, node: Function | ast.ClassDef, text: str) -> Iterator[Hit]:
    if _PLACEHOLDER.match(text.strip()) and "\n" not in text.strip():
        message = f"The docstring of `{node.name}` only holds the place of one: {text.strip()[:40]!r}."
        yield Hit("placeholder-docstring", source.name, node.body[0].lineno, message)


def _example(source: Source, node: Function | ast.ClassDef, text: str) -> Iterator[Hit]:
    """The first example that is no Python."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return  # its layout is unusual, which is no defect
    for example in examples:
        try:
            compile(example.source, source.name, "single", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            line = _place(source, node, re.escape(example.source.strip().splitlines()[0]))
            message = f"An example in the docstring of `{node.name}` is no Python: {error.msg}."
            yield Hit("broken-example", source.name, line, message)
            return


def _unknown(source: Source, node: Function | ast.ClassDef, text: str) -> Iterator[Hit]:
    """Parameters that only the docstring knows; a function that takes anything may have any."""
    makers = [each for each in node.body if isinstance(each, FUNCTIONS) and each.name == "__init__"]
    function = next(iter(makers), None) if isinstance(node, ast.ClassDef) else node
    if function is None or node.name.startswith("_") or set(decorators(function)) - _HARMLESS:
        return
    given = function.args
    own = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    for name in _PARAMETER.findall(text) if not given.kwarg and not given.vararg else ():
        if name not in own:
            message = f"The docstring of `{node.name}` describes `{name}`, which is no parameter of it."
            yield Hit("unknown-parameter", source.name, _place(source, node, rf"\b{name}\s*:"), message)


def check_exports(project: Project, _: Tools) -> Iterator[Hit]:
    """Exported names that no page mentions, in a project whose pages mention almost all of them."""
    pages = [path for folder in ("docs", "doc") for path in sorted((project.root / folder).rglob("*"))]
    named = [path for path in pages if path.suffix in (".rst", ".md", ".markdown", ".txt")][:MAX_PAGES]
    text = "\n".join(project.read(path.relative_to(project.root).as_posix()) for path in named)
    words, whole = set(re.findall(r"\w+", text)), set(_WHOLE_MODULE.findall(text))
    offered = (
        [(source, each) for source in project.product for each in _offered(source, whole)] if text else []
    )
    missing = [(source, each) for source, each in offered if each.value not in words]
    if len(offered) < MIN_NAMES or len(missing) > (1 - MIN_SHARE) * len(offered):
        return
    seen: set[str] = set()
    for source in project.product:
        left = [each for other, each in missing if other is source and each.value not in seen]
        seen.update(each.value for each in left)
        if left:
            names = listed([each.value for each in left])
            message = f"Offered in `__all__`, and no page of the documentation mentions: {names}."
            yield Hit("undocumented-export", source.name, left[0].lineno, message)


def _offered(source: Source, whole: set[str]) -> Iterator[ast.Constant]:
    """The names in `__all__` of a public module, unless a page shows the module whole."""
    if source.is_public and source.module not in whole and "__all__" in source.text:
        for node in source.tree.body:
            is_list = isinstance(node, ast.Assign) and "__all__" in map(dotted, node.targets)
            for each in getattr(node.value, "elts", ()) if is_list else ():
                if isinstance(each, ast.Constant) and not str(each.value).startswith("_"):
                    yield each


DOCSTRING_CHECKS = (check_docstrings, check_exports)
