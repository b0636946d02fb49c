"""Small questions about syntax trees that several checks ask."""

import ast
from collections.abc import Iterator

from _source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
CHANGES = frozenset(
    {
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "add",
        "discard",
        "update",
        "setdefault",
    }
)  # methods that alter a list, a set or a dictionary


def dotted(node: ast.AST | None) -> str:
    """`a.b.c` for a chain of attributes on a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def aliases(source: Source) -> dict[str, str]:
    """What imported names stand for: `np` → `numpy`, `loads` → `pickle.loads`."""
    if "aliases" not in source.kept:
        source.kept["aliases"] = _aliases(source)
    return source.kept["aliases"]


def _aliases(source: Source) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in source.imports:
        if isinstance(node, ast.Import):
            for each in node.names:
                names[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                names[each.asname or each.name] = f"{node.module}.{each.name}"
    return names


def full_name(node: ast.AST | None, names: dict[str, str]) -> str:
    """The dotted name with its first part as it was imported; a name nobody imported stands for itself."""
    head, dot, rest = dotted(node).partition(".")
    return names.get(head, head) + dot + rest


def functions(source: Source) -> Iterator[Function]:
    """Every function and method of a file."""
    return iter(source.functions)


def within(node: ast.AST) -> list[ast.AST]:
    """What runs as part of a function or block itself: nested functions and classes are left out.

    Kept with the node, because a dozen checks ask for it.
    """
    kept: list[ast.AST] | None = node.__dict__.get("_within")
    if kept is None:
        kept = node.__dict__["_within"] = list(_within(node))
    return kept


def _within(node: ast.AST) -> Iterator[ast.AST]:
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        current = waiting.pop()
        yield current
        if not isinstance(current, SCOPES):
            waiting.extend(ast.iter_child_nodes(current))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements directly in a node."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument, or None."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def is_constant(node: ast.AST | None, *values: object) -> bool:
    """Whether a node is a literal, and one of the values if any are given."""
    if not isinstance(node, ast.Constant):
        return False
    return not values or any(
        node.value is each or (node.value == each and type(node.value) is type(each)) for each in values
    )


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body that do something."""
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return body[1:]
    return body


def is_stub(function: Function) -> bool:
    """Whether a function only declares: its body is `...`, `pass` or raises NotImplementedError."""
    return all(_declares(statement) for statement in without_docstring(function.body))


def _declares(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return dotted(raised) == "NotImplementedError"
    is_ellipsis = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Pass) or is_ellipsis


def decorators(node: Function | ast.ClassDef) -> list[str]:
    """The dotted names of the decorators, called or not."""
    return [dotted(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list]


def words(node: ast.AST) -> set[str]:
    """Every identifier in a node: names and attributes."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def last_line(node: ast.AST) -> int:
    """The line a node ends on."""
    return getattr(node, "end_lineno", None) or getattr(node, "lineno", 0)
