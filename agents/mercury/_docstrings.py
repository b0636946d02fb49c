"""Docstrings: missing where somebody will look for one, and wrong where one is there."""

import ast
import doctest
import re
from collections.abc import Iterator

from _docstring_fields import documented_parameters, says_it_returns
from _finding import Hit, Rule
from _import_graph import absolute
from _nodes import FUNCTIONS, Function, decorators, is_stub, last_line, within, without_docstring
from _source import Project, Source

MIN_STATEMENTS = 3
NAMED = 5

DOCSTRING_RULES = {
    "missing-docstring": Rule("low", "Say in one sentence what it is for, and what a caller must know."),
    "unknown-parameter": Rule("medium", "Rename it to the parameter that is meant, or remove it."),
    "undocumented-parameter": Rule("low", "Add a line for it."),
    "returns-nothing": Rule("medium", "Remove the section, or return what it promises."),
    "empty-docstring": Rule("low", "Write a sentence, or remove it."),
    "placeholder-docstring": Rule("low", "Write what it does."),
    "broken-example": Rule("medium", "Mend it; running examples with doctest keeps them true."),
}
_PLAIN_BASE = re.compile(r"(typing\.)?(object|Generic\b.*|ABC|abc\.ABC)$")
_HARMLESS = frozenset(
    {"classmethod", "staticmethod", "abstractmethod", "abc.abstractmethod"}
)  # keep the parameters
_PLACEHOLDER = re.compile(
    r"\W*(todo|fixme|tbd|xxx|lorem ipsum|description|docstring|_summary_)\b\W*.{0,20}$", re.IGNORECASE
)


def check_missing(project: Project) -> Iterator[Hit]:
    """Functions and classes that others may import and that have no docstring: one finding for each file."""
    handed_on = reexported(project)
    for source in project.sources:
        offered = handed_on.get(source.module, set())
        listed = exported(source.tree) if is_public(source) else offered
        candidates = _public(source.tree.body) if source.is_product and not source.is_side else ()
        lacking = [
            node
            for node in candidates
            if ast.get_docstring(node) is None
            and _substantial(node)
            and (listed is None or node.name in listed)
        ]
        yield from _lacking(source, lacking)


def reexported(project: Project) -> dict[str, set[str]]:
    """What public packages hand on from their private modules, by module."""
    found: dict[str, set[str]] = {}
    for source in project.sources:
        if source.name.endswith("__init__.py") and is_public(source):
            listed = exported(source.tree)
            for node in source.tree.body:
                if isinstance(node, ast.ImportFrom):
                    starred = [each.name for each in node.names] == ["*"]
                    names = (listed or set()) if starred else _handed(node, listed)
                    found.setdefault(absolute(node, source), set()).update(names)
    return found


def _handed(node: ast.ImportFrom, listed: set[str] | None) -> set[str]:
    """What `__init__.py` imports for others: listed in `__all__`, or imported under its own name."""
    if listed is not None:
        return {each.name for each in node.names} & listed
    return {each.name for each in node.names if each.asname == each.name}


def _lacking(source: Source, lacking: list[Function | ast.ClassDef]) -> Iterator[Hit]:
    if lacking:
        names = ", ".join(f"`{node.name}`" for node in lacking[:NAMED])
        more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
        verb = "has" if len(lacking) == 1 else "have"
        message = (
            f"{names}{more} {verb} no docstring, though others may call "
            f"{'it' if len(lacking) == 1 else 'them'}."
        )
        yield Hit("missing-docstring", lacking[0].lineno, message, file=source.name)


def is_public(source: Source) -> bool:
    """Whether others may import a file: a product's module of which no part of the name is private."""
    if not source.is_product or source.is_side:
        return False
    return not any(part.startswith("_") for part in source.module.split("."))


def exported(tree: ast.Module) -> set[str] | None:
    """The names in `__all__`; None where it is not written down plainly."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets
        ):
            items = getattr(node.value, "elts", None)
            if items is not None and all(isinstance(each, ast.Constant) for each in items):
                return {str(each.value) for each in items}
    return None


def _public(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    for node in body:
        is_public = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith(
            ("_", "pytest_")
        )
        if is_public and "overload" not in " ".join(decorators(node)):
            yield node


def _substantial(node: Function | ast.ClassDef) -> bool:
    """Whether there is enough in it that a name does not say all."""
    if isinstance(node, ast.ClassDef):
        methods = [
            each for each in node.body if isinstance(each, FUNCTIONS) and not each.name.startswith("_")
        ]
        inherits = any(not _PLAIN_BASE.match(ast.unparse(base)) for base in node.bases)
        return len(methods) >= 2 and not inherits  # a docstring is inherited too
    statements = sum(isinstance(each, ast.stmt) for each in ast.walk(node)) - 1
    return statements >= MIN_STATEMENTS and not is_stub(node)


def documented(source: Source) -> Iterator[tuple[Function | ast.ClassDef, str]]:
    """Every function and class that has a docstring."""
    for node in source.of(*FUNCTIONS, ast.ClassDef):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            text = ast.get_docstring(node, clean=True)
            if text is not None:
                yield node, text


def check_parameters(source: Source) -> Iterator[Hit]:
    """Parameters that only the docstring knows, and those it forgot among others."""
    methods = {each for owner in source.of(ast.ClassDef) for each in owner.body}
    for node, text in documented(source) if not source.is_test else ():
        function = _signature(node) if not node.name.startswith("_") else None
        named = documented_parameters(text)
        if function is not None and named and not set(decorators(function)) - _HARMLESS:
            own = _parameters(function, method=function in methods)
            yield from _unknown(source, node, function, [name for name in named if name not in own])
            if set(named) <= set(own):
                yield from _forgotten(node, text, own, len(named))


def _unknown(
    source: Source, node: Function | ast.ClassDef, function: Function, names: list[str]
) -> Iterator[Hit]:
    """Parameters that do not exist; a function that takes anything may have any."""
    if not function.args.kwarg and not function.args.vararg:
        for name in names:
            message = f"The docstring of `{node.name}` describes `{name}`, which is no parameter of it."
            yield Hit("unknown-parameter", _place(source, node, name) or node.lineno, message)


def _forgotten(node: Function | ast.ClassDef, text: str, own: list[str], described: int) -> Iterator[Hit]:
    """One or two parameters nobody mentions among many described; what a class leaves out a base may tell."""
    left = [name for name in own if name[0] != "_" and not re.search(rf"\b{re.escape(name)}\b", text)]
    inherits = isinstance(node, ast.ClassDef) and bool(node.bases)
    if 0 < len(left) <= 2 and described >= 2 * len(left) and not inherits:
        names = ", ".join(f"`{name}`" for name in left)
        message = f"The docstring of `{node.name}` describes its other parameters and leaves out {names}."
        yield Hit("undocumented-parameter", node.lineno, message)


def _signature(node: Function | ast.ClassDef) -> Function | None:
    """The function whose parameters a docstring speaks of; a class speaks of its `__init__`."""
    if not isinstance(node, ast.ClassDef):
        return node
    return next((each for each in node.body if isinstance(each, FUNCTIONS) and each.name == "__init__"), None)


def _parameters(function: Function, *, method: bool) -> list[str]:
    """The parameters a caller gives: not the object a method belongs to."""
    arguments = function.args
    named = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    static = "staticmethod" in decorators(function)
    return named[1:] if method and not static else named


def _place(source: Source, node: Function | ast.ClassDef, name: str) -> int:
    """The docstring's line that names a parameter; 0 if it is not found."""
    text = node.body[0]
    for line in range(text.lineno, last_line(text) + 1):
        if re.search(rf"(^|\s|\*){re.escape(name)}\s*(:|\(|,|$)", source.line(line)):
            return line
    return 0


def check_returns(source: Source) -> Iterator[Hit]:
    """Docstrings that promise a value where the function returns none."""
    for node, text in documented(source) if not source.is_test else ():
        if isinstance(node, ast.ClassDef) or decorators(node) or is_stub(node) or not says_it_returns(text):
            continue
        inner = list(within(node))
        gives = any(isinstance(each, ast.Return) and each.value is not None for each in inner)
        raises = without_docstring(node.body) and isinstance(node.body[-1], ast.Raise)
        if (
            not gives
            and not raises
            and not any(isinstance(each, ast.Yield | ast.YieldFrom) for each in inner)
        ):
            message = f"The docstring of `{node.name}` says what it returns; it returns nothing."
            yield Hit("returns-nothing", node.lineno, message)


def check_empty(source: Source) -> Iterator[Hit]:
    """Docstrings without words, or with words that only hold the place."""
    for node, text in documented(source):
        if not text.strip():
            if {node.body[0].lineno - 1, node.body[0].lineno + 1} & source.comments.keys():
                continue  # the author says why
            yield Hit("empty-docstring", node.body[0].lineno, f"The docstring of `{node.name}` is empty.")
        elif _PLACEHOLDER.match(text.strip()) and "\n" not in text.strip():
            message = f"The docstring of `{node.name}` only holds the place of one: {text.strip()[:40]!r}."
            yield Hit("placeholder-docstring", node.body[0].lineno, message)


def check_examples(source: Source) -> Iterator[Hit]:
    """Examples in docstrings that are no Python."""
    for node, text in documented(source) if source.is_product else ():
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            continue  # its layout is unusual, which is no defect
        for example in examples:
            try:
                compile(
                    example.source, source.name, "single", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                )
            except SyntaxError as error:
                first = example.source.strip().splitlines()[0]
                message = f"An example in the docstring of `{node.name}` is no Python: {error.msg}."
                yield Hit("broken-example", _find(source, node, first), message)
                break


def _find(source: Source, node: Function | ast.ClassDef, text: str) -> int:
    body = node.body[0]
    lines = range(body.lineno, last_line(body) + 1)
    return next((line for line in lines if text in source.line(line)), node.lineno)


DOCSTRING_PROJECT_CHECKS = (check_missing,)
DOCSTRING_CHECKS = (check_parameters, check_returns, check_empty, check_examples)
