"""Which functions of a file are tests, and what in them asserts something."""

import ast
import re
from collections.abc import Iterator

from _nodes import FUNCTIONS, Function, decorators, dotted
from _source import Source

_ASSERTING = re.compile(
    r"assert|check|verify|expect|ensure|should|raises|warns|fail|must|compare|match|approx", re.IGNORECASE
)


def test_functions(source: Source) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """The tests pytest or unittest would collect, with the class each stands in."""
    if not source.is_test:
        return
    for node in source.tree.body:
        if isinstance(node, FUNCTIONS) and node.name.startswith("test") and not _fixture(node):
            yield node, None
        elif isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or is_unittest(node)):
            for each in node.body:
                if isinstance(each, FUNCTIONS) and each.name.startswith("test") and not _fixture(each):
                    yield each, node


def _fixture(node: Function) -> bool:
    return any("fixture" in name for name in decorators(node))


def is_unittest(node: ast.ClassDef) -> bool:
    """Whether a class is unittest's, as its bases are named."""
    return any(dotted(base).endswith(("TestCase", "Tests", "Test")) for base in node.bases)


def asserts(node: ast.AST) -> bool:
    """Whether something in a node can fail on purpose: an assertion, or a call whose name sounds like one."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assert | ast.Raise):
            return True
        if isinstance(each, ast.Call) and _ASSERTING.search(_last_name(each.func)):
            return True
    return False


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def helpers_that_assert(source: Source) -> set[str]:
    """Functions of the file that assert something, directly or through one another."""
    known: set[str] = set()
    candidates = source.functions
    grew = True
    while grew:
        found = {node.name for node in candidates if asserts(node) or calls_any(node, known)}
        grew = found != known
        known = found
    return known


def calls_any(node: ast.AST, names: set[str]) -> bool:
    """Whether one of the names is called, or handed on, in a node."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in names:
            return True
        if isinstance(each, ast.Attribute) and each.attr in names:
            return True
    return False
