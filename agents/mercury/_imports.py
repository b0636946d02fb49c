"""Imports: what is imported and never used, and modules that import one another in a circle."""

import ast
import re
from collections.abc import Iterator

from _finding import Hit, Rule
from _import_graph import cycles, imported_modules, is_guarded, runtime_imports
from _source import Project, Source

IMPORT_RULES = {
    "unused-import": Rule("low", "Remove it; if others are to import it from here, name it in `__all__`."),
    "import-cycle": Rule(
        "medium", "Move what both need into a third module, or import inside the function that uses it."
    ),
    "star-import": Rule("low", "Name what you import."),
}
_WORD = re.compile(r"[A-Za-z_]\w*")


def check_unused(project: Project) -> Iterator[Hit]:
    """Names that are imported and used neither here nor by a file that imports them from here."""
    taken: dict[str, set[str]] = {}
    for source in project.sources:
        for node in source.imports:
            for module, name in imported_modules(node, source):
                taken.setdefault(module, set()).add(name)
    for source in project.sources:
        if not source.name.endswith(("__init__.py", "conftest.py", "compat.py")) and not source.problem:
            yield from _unused(source, taken.get(source.module, set()))


def _unused(source: Source, taken: set[str]) -> Iterator[Hit]:
    used = _used_words(source) | taken
    for node in _module_imports(source):
        for each in node.names:
            bound = each.asname or each.name.partition(".")[0]
            if (
                bound not in used
                and not _reexported(each)
                and not source.silenced(each.lineno or node.lineno)
            ):
                module = getattr(node, "module", None)
                whole = f"{module}.{each.name}" if module else each.name
                message = f"`{whole}` is imported and never used here; readers look for where it matters."
                yield Hit("unused-import", each.lineno or node.lineno, message, file=source.name)


def _module_imports(source: Source) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports at the top of a module that nothing guards: a guarded one may be there for its failure."""
    for node in source.tree.body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if is_import and getattr(node, "module", "") != "__future__" and not source.silenced(node.lineno):
            yield node


def _reexported(each: ast.alias) -> bool:
    """`import x as x` says: for others. A star brings names nobody can list. `_` is for side effects."""
    return each.name == "*" or each.asname in (each.name, "_") or (each.asname or "").startswith("__")


def _used_words(source: Source) -> set[str]:
    used: set[str] = set()
    for node in source.of(ast.Name, ast.arg, ast.Constant):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.arg):
            used.add(node.arg)  # a fixture that is imported is used by its name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.update(_WORD.findall(node.value))
    for comment in source.comments.values():
        if "type:" in comment:
            used.update(_WORD.findall(comment))
    return used


def check_star(source: Source) -> Iterator[Hit]:
    """`from x import *` in the product: nobody can tell where a name comes from."""
    if source.name.endswith("__init__.py") or not source.is_product:
        return
    for node in source.tree.body:
        starred = isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        if starred and not is_guarded(source, node):
            message = (
                f"`from {'.' * node.level}{node.module or ''} import *` hides where names come from and "
                "may replace others."
            )
            yield Hit("star-import", node.lineno, message)


def check_cycles(project: Project) -> Iterator[Hit]:
    """Modules that import one another while they are being imported."""
    graph = {
        source.module: dict(runtime_imports(project, source))
        for source in project.sources
        if source.is_product
    }
    for cycle in cycles({module: set(targets) for module, targets in graph.items()}):
        first = project.by_module[cycle[0]]
        line = graph[cycle[0]][cycle[1 % len(cycle)]]
        way = " → ".join([*cycle, cycle[0]])
        message = (
            f"Modules import one another in a circle: {way}. Which is imported first decides whether it "
            "works."
        )
        yield Hit("import-cycle", line, message, file=first.name)


IMPORT_CHECKS = (check_star,)
IMPORT_PROJECT_CHECKS = (check_unused, check_cycles)
