"""Small questions about syntax trees that several checks ask."""

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def dotted(node: ast.AST | None) -> str:
    """`a.b.c` for a chain of attributes on a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def within(node: ast.AST) -> Iterator[ast.AST]:
    """What runs as part of a function or block itself: nested functions and classes are left out."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        current = waiting.pop()
        yield current
        if not isinstance(current, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(current))


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body that do something."""
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    return body[1:] if isinstance(first, ast.Constant) and isinstance(first.value, str) else body


def is_stub(function: Function) -> bool:
    """Whether a function only declares: its body is `...`, `pass` or raises NotImplementedError."""
    texts = [ast.unparse(each) for each in without_docstring(function.body)]
    return all(text in ("...", "pass") or text.startswith("raise NotImplementedError") for text in texts)


def decorators(node: Function | ast.ClassDef) -> list[str]:
    """The dotted names of the decorators, called or not."""
    return [dotted(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list]
