"""Mistakes around `async`: coroutines nobody awaits, tasks nobody keeps, calls that stop the loop."""

import ast
from collections.abc import Iterator

from _finding import Hit, Rule
from _nodes import aliases, dotted, full_name, within
from _source import Source

ASYNC_RULES = {
    "missing-await": Rule("high", "Write `await` before it."),
    "lost-task": Rule(
        "medium", "Keep the task in a variable or a set until it is done, or use a task group."
    ),
    "blocking-in-async": Rule("medium", "Use the async form, or move the call into a thread."),
}
_BLOCKING = frozenset(
    [
        "time.sleep",
        "subprocess.run",
        "subprocess.call",
        "subprocess.check_call",
        "subprocess.check_output",
        "os.system",
        "requests.get",
        "requests.post",
        "requests.put",
        "requests.delete",
        "requests.request",
        "urllib.request.urlopen",
    ]
)
_STARTERS = frozenset({"asyncio.create_task", "asyncio.ensure_future"})


def check_awaits(source: Source) -> Iterator[Hit]:
    """Calls of this file's own async functions, as statements, that are not awaited."""
    for owner in source.of(ast.Module, ast.ClassDef) if source.of(ast.AsyncFunctionDef) else ():
        if not isinstance(owner, ast.Module | ast.ClassDef):
            continue
        prefix = "self." if isinstance(owner, ast.ClassDef) else ""
        own = [node for node in owner.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)]
        plain = {node.name for node in own if isinstance(node, ast.FunctionDef)}
        coroutines = {prefix + node.name for node in own if _coroutine(node) and node.name not in plain}
        scopes = own if prefix else source.functions
        yield from _unawaited(scopes, coroutines)


def _coroutine(node: ast.AST) -> bool:
    generates = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in within(node))
    return isinstance(node, ast.AsyncFunctionDef) and not node.decorator_list and not generates


def _unawaited(scopes: list[ast.AsyncFunctionDef | ast.FunctionDef], coroutines: set[str]) -> Iterator[Hit]:
    for scope in scopes:
        local = {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)} - {"self"}
        local |= {
            node.name for node in within(scope) if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
        }
        for node in within(scope):
            call = node.value if isinstance(node, ast.Expr) else None
            name = dotted(call.func) if isinstance(call, ast.Call) else ""
            if name in coroutines and name not in local:
                message = f"`{name}` is async: without `await` this call does nothing at all."
                yield Hit("missing-await", node.lineno, message)


def check_tasks(source: Source) -> Iterator[Hit]:
    """Tasks that only the loop knows, which may be collected before they are done."""
    names = aliases(source)
    for node in source.of(ast.Expr):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and full_name(call.func, names) in _STARTERS and not source.is_test:
            message = (
                f"Nothing keeps the task of `{dotted(call.func)}`: it may vanish before it is done, and "
                "its failure is not seen."
            )
            yield Hit("lost-task", node.lineno, message)


def check_blocking(source: Source) -> Iterator[Hit]:
    """Calls that stop everything else in the loop."""
    names = aliases(source)
    for function in source.of(ast.AsyncFunctionDef):
        if isinstance(function, ast.AsyncFunctionDef) and not source.is_test:
            for node in within(function):
                name = full_name(node.func, names) if isinstance(node, ast.Call) else ""
                if name in _BLOCKING:
                    message = f"`{name}` stops every other task of the loop while it waits."
                    yield Hit("blocking-in-async", node.lineno, message)


ASYNC_CHECKS = (check_awaits, check_tasks, check_blocking)
