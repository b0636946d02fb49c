"""Leftovers: what is written and never used, and small things that depend on the machine."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import (
    FUNCTIONS,
    Function,
    aliases,
    decorators,
    dotted,
    full_name,
    functions,
    is_constant,
    keyword,
)
from _source import Project, Source

LEFTOVER_RULES = {
    "unused-variable": Rule("low", "Remove it, or name it `_` if the call is needed for what it does."),
    "unused-private": Rule("low", "Remove it; version control keeps it should it be needed again."),
    "missing-encoding": Rule("low", "Pass encoding='utf-8'."),
    "none-comparison": Rule("low", "Write `is None` or `is not None`."),
}
_WORD = re.compile(r"\w+")
_PREFIX = re.compile(r"(_[A-Za-z]\w*_)(?:$|%|\{)")
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")
_OPENING = frozenset({"open", "io.open"})
_PATH_METHODS = frozenset({"read_text", "write_text"})


def check_variables(source: Source) -> Iterator[Hit]:
    """Local names that are given a value and never read."""
    for function in functions(source) if source.is_product or source.is_test else ():
        everything = list(ast.walk(function))
        if any(
            isinstance(node, ast.Call) and dotted(node.func) in ("locals", "exec", "eval", "vars")
            for node in everything
        ):
            continue
        read = {
            node.id
            for node in everything
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
        }
        read |= {
            node.target.id
            for node in everything
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        }
        shared = {
            name for node in everything if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
        }
        for name, node in _given(function):
            if name not in read | shared and not name.startswith("_") and name != "__tracebackhide__":
                message = f"`{name}` is given a value in `{function.name}` and never read."
                yield Hit("unused-variable", node.lineno, message)


def _given(function: Function) -> Iterator[tuple[str, ast.stmt]]:
    """Plain assignments of one name; the parts of a tuple are often given names only to be clear."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node
        waiting.extend(ast.iter_child_nodes(node))


def check_private(project: Project) -> Iterator[Hit]:
    """Private functions, methods, classes and values of the product that nothing names a second time."""
    counts: Counter[str] = Counter()
    for source in project.sources:
        counts.update(_WORD.findall(source.text))
    for name in _MANIFESTS:
        counts.update(_WORD.findall(project.read(name) or ""))
    made = tuple(prefix for source in project.sources for prefix in _prefixes(source))
    for source in project.sources:
        for name, line in _private_names(source) if source.is_product else ():
            if counts[name] == 1 and not name.startswith(made) and not source.silenced(line):
                message = f"`{name}` is private and nothing in the project uses it."
                yield Hit("unused-private", line, message, file=source.name)


def _prefixes(source: Source) -> Iterator[str]:
    """The beginnings of names that are put together, as in `getattr(self, f"_read_{kind}")`."""
    for node in source.of(ast.Constant):
        match = _PREFIX.match(node.value) if isinstance(node.value, str) else None
        if match:
            yield match[1]


def _private_names(source: Source) -> Iterator[tuple[str, int]]:
    """What only the project itself may use, with the line it is defined on."""
    for body in [source.tree.body, *(owner.body for owner in source.of(ast.ClassDef))]:
        for node in body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not decorators(node) and _private(node.name):
                yield node.name, node.lineno
    for node in source.tree.body:
        goals = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        given = isinstance(node, ast.Assign | ast.AnnAssign) and not dotted(node.value)
        for goal in goals if given else ():  # another name for something is kept for others
            if isinstance(goal, ast.Name) and _private(goal.id):
                yield goal.id, node.lineno


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name.strip("_") != ""


def check_encoding(source: Source) -> Iterator[Hit]:
    """Text files opened in whatever encoding the machine prefers."""
    names = aliases(source)
    for node in source.calls if source.is_product else ():
        given = {each.arg for each in node.keywords} if isinstance(node, ast.Call) else set()
        if isinstance(node, ast.Call) and not {"encoding", None} & given and _opens_text(node, names):
            what = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
            message = f"`{what}` without `encoding` reads or writes differently on other machines."
            yield Hit("missing-encoding", node.lineno, message)


def _opens_text(node: ast.Call, names: dict[str, str]) -> bool:
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in _PATH_METHODS
        and "path" in ast.unparse(node.func.value).lower()
    ):
        return len(node.args) < (2 if node.func.attr == "write_text" else 1)
    if (
        full_name(node.func, names) not in _OPENING
        or len(node.args) > 3
        or re.search(r"devnull|/dev/", ast.unparse(node))
    ):
        return False
    mode = node.args[1] if len(node.args) > 1 else keyword(node, "mode")
    return mode is None or (isinstance(mode, ast.Constant) and "b" not in str(mode.value))


def check_none(source: Source) -> Iterator[Hit]:
    """`== None`, which asks the other object for its opinion."""
    mapped = re.search(r"\b(sqlalchemy|peewee|pony|numpy|pandas|polars)\b", source.text)
    for node in source.of(ast.Compare) if not mapped and not source.is_test else ():
        equality = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        if equality and any(is_constant(each, None) for each in node.comparators):
            message = "`None` is compared with `==`, which a class may answer as it likes."
            yield Hit("none-comparison", node.lineno, message)


LEFTOVER_CHECKS = (check_variables, check_encoding, check_none)
LEFTOVER_PROJECT_CHECKS = (check_private,)
