"""Who imports whom inside a project, as far as the sources tell."""

import ast
import re
from collections.abc import Iterable, Iterator

from _nodes import dotted
from _source import Project, Source

_FAILURES = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "AttributeError"})


def imported_modules(node: ast.AST, source: Source) -> Iterator[tuple[str, str]]:
    """What an import statement names, absolutely: (module, name in it or empty)."""
    if isinstance(node, ast.Import):
        for each in node.names:
            yield each.name, ""
    elif isinstance(node, ast.ImportFrom):
        base = absolute(node, source)
        for each in node.names:
            yield base, each.name


def absolute(node: ast.ImportFrom, source: Source) -> str:
    """The module a `from` import means; relative ones are counted from the file's package."""
    if not node.level:
        return node.module or ""
    package = source.module.split(".")
    if not source.name.endswith("__init__.py"):
        package = package[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def targets(project: Project, node: ast.AST, source: Source) -> Iterator[str]:
    """The project's own modules an import statement loads; the packages around them are not counted."""
    for module, name in imported_modules(node, source):
        inner = f"{module}.{name}" if name else module
        if inner in project.by_module:
            yield inner
        elif module in project.by_module:
            yield module


def runtime_imports(project: Project, source: Source) -> Iterator[tuple[str, int]]:
    """What a module imports while it is being imported itself: not in functions, not for type checkers."""
    for node in _running(source.tree.body):
        for target in targets(project, node, source):
            if target != source.module:
                yield target, node.lineno


def _running(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.dump(node.test):
                yield from _running(node.body)
            yield from _running(node.orelse)
        elif isinstance(node, ast.Try):
            yield from _running([*node.body, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.With | ast.ClassDef):
            yield from _running(node.body)


def is_guarded(source: Source, node: ast.AST) -> bool:
    """Whether an import may fail without harm, or is never run: in a `try`, for type checkers, by version."""
    if "guarded" not in source.kept:
        outer = [each for each in source.of(ast.Try, ast.With, ast.If) if _guards(each)]
        source.kept["guarded"] = [(each.lineno, each.end_lineno or each.lineno) for each in outer]
    return any(first <= node.lineno <= last for first, last in source.kept["guarded"])


def _guards(outer: ast.Try | ast.With | ast.If) -> bool:
    if isinstance(outer, ast.Try):
        return any(_catches_import(each) for each in outer.handlers)
    if isinstance(outer, ast.With):
        return "suppress" in ast.dump(outer.items[0].context_expr)
    return _conditional(outer.test)


def _conditional(test: ast.expr) -> bool:
    return bool(re.search(r"TYPE_CHECKING|version|platform|PY|find_spec|os\.name|WIN", ast.unparse(test)))


def _catches_import(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return handler.type is None or any(dotted(kind).rpartition(".")[2] in _FAILURES for kind in kinds)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """A shortest circle for each group of modules that reach one another."""
    found = []
    for group in components(graph):
        if len(group) > 1:
            found.append(_shortest(graph, sorted(group)))
    return sorted(found)


def _shortest(graph: dict[str, set[str]], group: list[str]) -> list[str]:
    best: list[str] | None = None
    for start in group:
        circle = _circle(graph, start, set(group))
        if circle and (best is None or len(circle) < len(best)):
            best = circle
    assert best is not None, "BUG: a component of several modules has a circle"
    return best


def _circle(graph: dict[str, set[str]], start: str, group: set[str]) -> list[str] | None:
    """A shortest way from a module back to itself."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        following: list[list[str]] = []
        for way in ways:
            for target in sorted(graph.get(way[-1], set()) & group):
                if target == start:
                    return way
                if target not in seen:
                    seen.add(target)
                    following.append([*way, target])
        ways = following
    return None


def components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that reach one another (Kosaraju, without recursion: projects may be deep)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(graph):
        _finish(graph, start, seen, order)
    reverse: dict[str, set[str]] = {module: set() for module in graph}
    for module, following in graph.items():
        for target in following:
            reverse.setdefault(target, set()).add(module)
    groups: list[set[str]] = []
    seen = set()
    for start in reversed(order):
        if start not in seen:
            group: list[str] = []
            _finish(reverse, start, seen, group)
            groups.append(set(group))
    return groups


def _finish(graph: dict[str, set[str]], start: str, seen: set[str], order: list[str]) -> None:
    """Add what can be reached from `start` to `order`, each behind all that it leads to."""
    if start in seen:
        return
    seen.add(start)
    waiting = [(start, iter(sorted(graph.get(start, ()))))]
    while waiting:
        module, following = waiting[-1]
        target = next((each for each in following if each not in seen), None)
        if target is None:
            order.append(module)
            waiting.pop()
        else:
            seen.add(target)
            waiting.append((target, iter(sorted(graph.get(target, ())))))


def reachable(graph: dict[str, set[str]], starts: Iterable[str]) -> set[str]:
    """All modules that are loaded when the given ones are."""
    seen: set[str] = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(graph.get(module, ()))
    return seen
