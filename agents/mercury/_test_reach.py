"""Reach: modules that no test imports, not even through others."""

import ast
import re
from collections.abc import Iterator

from _finding import Hit, Rule
from _import_graph import reachable, targets
from _nodes import is_stub
from _source import Project, Source

MIN_FUNCTIONS = 2
REACH_RULES = {
    "no-tests": Rule("high", "Begin with one test of what users do most."),
    "untested-module": Rule(
        "medium", "Add a test that imports it; even a small one notices when it no longer loads."
    ),
}
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def check_reach(project: Project) -> Iterator[Hit]:
    """Modules that could break without any test noticing."""
    tests = [source for source in project.sources if source.is_test and not source.problem]
    product = [source for source in project.sources if _worth_testing(source)]
    if not any(_has_tests(source) for source in tests):
        if product:
            message = (
                f"The project has no tests: nothing notices when one of its {len(product)} modules breaks."
            )
            yield Hit("no-tests", 0, message, file=".")
        return
    seen = reachable(_graph(project), [source.module for source in tests])
    for source in product:
        if source.module not in seen:
            count = len(_functions(source))
            message = (
                f"No test imports `{source.module}`, not even through another module; its {count} "
                "functions never run in a test."
            )
            yield Hit("untested-module", 0, message, file=source.name)


def _has_tests(source: Source) -> bool:
    return any(node.name.startswith("test") for node in source.functions)


def _worth_testing(source: Source) -> bool:
    """Whether a file is part of a package and does something."""
    special = source.name.rpartition("/")[2] in ("__main__.py", "setup.py", "conf.py", "noxfile.py")
    if (
        special
        or not source.is_product
        or source.is_side
        or not (source.path.parent / "__init__.py").exists()
    ):
        return False
    return len(_functions(source)) >= MIN_FUNCTIONS


def _functions(source: Source) -> list[ast.AST]:
    return [node for node in source.functions if not is_stub(node)]


def _graph(project: Project) -> dict[str, set[str]]:
    """Who may load whom: imports anywhere, the packages around a module, and modules named in texts."""
    known = project.by_module
    graph: dict[str, set[str]] = {}
    for source in project.sources:
        edges = graph.setdefault(source.module, set())
        for node in source.of(ast.Import, ast.ImportFrom, ast.Constant):
            if isinstance(node, ast.Import | ast.ImportFrom):
                edges.update(targets(project, node, source))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                edges.update(_named(node.value, known))
        edges.update(
            package for target in [*edges, source.module] for package in _packages(target) if package in known
        )
    return graph


def _named(text: str, known: dict[str, Source]) -> Iterator[str]:
    if text in known:
        yield text
    for match in _DOTTED.findall(text):
        while match:
            if match in known:
                yield match
            match = match.rpartition(".")[0]
    if "." in text and text.endswith((".", "_")):  # the beginning of a name that is put together
        yield from (module for module in known if module.startswith(text))
    path = text.removesuffix(".py").replace("/", ".").replace("\\", ".").lstrip(".")
    if path in known:
        yield path


def _packages(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


REACH_CHECKS = (check_reach,)
