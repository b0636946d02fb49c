"""Imports compared with what is declared, and with what newer and older Pythons bring."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from _finding import Hit, Rule
from _import_graph import is_guarded
from _manifest import Manifest, lowest_python, normalised, read_manifest
from _packages import BUILT_IN, DISTRIBUTIONS, REMOVED_MODULES, REMOVED_NAMES, YOUNG_MODULES, provided_by
from _requirements_found import NEVER_IMPORTED
from _source import Project, Source

IMPORT_RULES = {
    "undeclared-import": Rule("high", "Add the package that brings it to the dependencies."),
    "undeclared-test-import": Rule(
        "low", "Add the package that brings it to the group of dependencies for tests."
    ),
    "unused-dependency": Rule("medium", "Remove it, or say in a comment what needs it."),
    "removed-module": Rule("high", "Use what the documentation of Python names in its place."),
    "newer-module": Rule("medium", "Raise requires-python, or fall back where it is missing."),
    "newer-syntax": Rule("high", "Raise requires-python, or write it in the older way."),
}
_TEST_RUNNERS = frozenset({"pytest", "nose2", "hypothesis", "coverage", "tox", "nox"})
_DATED = tuple(
    getattr(ast, name)
    for name in (
        "Import",
        "ImportFrom",
        "Match",
        "TryStar",
        "TypeAlias",
        "FunctionDef",
        "AsyncFunctionDef",
        "ClassDef",
    )
    if hasattr(ast, name)
)
_TEST_MODULE = re.compile(r"(^|/)(test_[^/]*|conftest)\.py$")
_NOT_IMPORTED = re.compile(r"^(types-|pytest-|sphinx|mkdocs|flake8|.*-stubs$|.*-binary$|.*-plugin)")


@dataclass(frozen=True)
class Imported:
    """A package that some file imports."""

    top: str
    source: Source
    line: int
    guarded: bool  # in a function, a `try` or a condition: many do without it


def foreign_imports(project: Project) -> Iterator[Imported]:
    """Every import of something that belongs neither to Python nor to the project."""
    own = _own_names(project)
    for source in project.sources:
        top_level = set(source.tree.body)
        for node in source.imports:
            for top in _tops(node):
                if not _python_has(top) and top not in own:
                    guarded = is_guarded(source, node) or node not in top_level
                    yield Imported(top, source, node.lineno, guarded)


def _python_has(top: str) -> bool:
    """Whether a module belongs to some version of Python."""
    return top in sys.stdlib_module_names or top in REMOVED_MODULES or top in BUILT_IN or top.startswith("_")


def _tops(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name.partition(".")[0] for each in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return [node.module.partition(".")[0]]
    return []


def _own_names(project: Project) -> set[str]:
    """Names under which the project's own files can be imported, from wherever they are run."""
    names = {part for source in project.sources for part in source.name.removesuffix(".py").split("/")}
    folders = {path.name for path in project.root.iterdir() if path.is_dir()}
    return names | folders | {"__main__"}


def check_declared(project: Project) -> Iterator[Hit]:
    """Packages that are imported and declared nowhere."""
    manifest = read_manifest(project)
    if not manifest.files or not (manifest.requirements or manifest.project) or manifest.broken:
        return
    names = manifest.names() | {normalised(str((manifest.project or {}).get("name", "")))}
    seen: set[str] = set()
    for each in foreign_imports(project):
        known = each.guarded or each.top in seen or bool(each.source.problem)
        if not known and not _covered(each.top, names, manifest):
            seen.add(each.top)
            yield from _undeclared(each, names, manifest)


def _undeclared(each: Imported, names: set[str], manifest: Manifest) -> Iterator[Hit]:
    """What to say of an import nobody declared; the tests' only if they declare theirs at all."""
    if each.source.is_product and not each.source.is_side:
        if manifest.requirements or not manifest.open_ended:
            message = (
                f"`{each.top}` is declared nowhere; it is missing unless another package happens to bring it."
            )
            yield Hit("undeclared-import", each.line, message, file=each.source.name)
    elif _TEST_MODULE.search(each.source.name) and names & _TEST_RUNNERS:
        message = (
            f"`{each.top}` is imported by the tests and declared nowhere; a fresh checkout cannot run them."
        )
        yield Hit("undeclared-test-import", each.line, message, file=each.source.name)


def _covered(top: str, names: set[str], manifest: Manifest) -> bool:
    """Whether a declared package brings a module, or some other text of the project speaks of it."""
    candidates = {normalised(each) for each in (top, *DISTRIBUTIONS.get(top, ()), *provided_by(top))}
    if candidates & names or any(name.startswith(f"{normalised(top)}-") for name in names):
        return True
    return any(
        re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", manifest.mentioned, re.IGNORECASE)
        for each in candidates
    )


def check_unused(project: Project) -> Iterator[Hit]:
    """Packages that every user gets and nothing imports."""
    manifest = read_manifest(project)
    if not any(source.is_product and not source.problem for source in project.sources):
        return
    imported = {top for source in project.sources for node in source.imports for top in _tops(node)}
    text = "\n".join(source.text for source in project.sources)
    for each in manifest.requirements:
        if (
            each.group
            or each.file != "pyproject.toml"
            or each.marker
            or _NOT_IMPORTED.match(each.name)
            or each.name in NEVER_IMPORTED
        ):
            continue
        if not _modules_of(each.name) & imported and not re.search(
            rf"\b{re.escape(each.name.replace('-', '[-_]'))}\b", text
        ):
            message = f"`{each.name}` is installed for every user, and no file imports or names it."
            yield Hit("unused-dependency", each.line, message, file=each.file)


def _modules_of(name: str) -> set[str]:
    """The modules a distribution may bring."""
    plain = name.replace("-", "_")
    listed = {
        module for module, brought in DISTRIBUTIONS.items() if name in {normalised(each) for each in brought}
    }
    return {
        plain,
        plain.removeprefix("python_"),
        plain.removesuffix("_python"),
        *plain.split("_")[:1],
        *listed,
    }


def check_python(project: Project) -> Iterator[Hit]:
    """Modules that newer Pythons no longer have, and modules or syntax that older ones do not have yet."""
    manifest = read_manifest(project)
    lowest = lowest_python(manifest.requires_python)
    capped = re.search(r"<\s*=?\s*3\.(\d+)", manifest.requires_python or "")
    for source in project.sources:
        if not source.problem:
            yield from _removed(source, int(capped[1]) if capped else None)
            yield from _newer(source, lowest) if lowest else ()


def _removed(source: Source, cap: int | None) -> Iterator[Hit]:
    for node in source.imports:
        for name, minor in _gone(node):
            if (cap is None or cap > minor) and not is_guarded(source, node):
                message = (
                    f"`{name}` is no longer part of Python from 3.{minor} on, so importing it fails there."
                )
                yield Hit("removed-module", node.lineno, message, file=source.name)


def _gone(node: ast.AST) -> Iterator[tuple[str, int]]:
    for top in _tops(node):
        if top in REMOVED_MODULES:
            yield top, REMOVED_MODULES[top]
    if isinstance(node, ast.ImportFrom) and not node.level:
        for each in node.names:
            minor = REMOVED_NAMES.get(f"{node.module}.{each.name}")
            if minor is not None:
                yield f"{node.module}.{each.name}", minor


def _newer(source: Source, lowest: tuple[int, int]) -> Iterator[Hit]:
    for node in source.of(*_DATED):
        for top in _tops(node):
            minor = YOUNG_MODULES.get(top, 0)
            if minor > lowest[1] and not is_guarded(source, node) and source.is_product:
                message = f"`{top}` came with Python 3.{minor}; the project says it works with 3.{lowest[1]}."
                yield Hit("newer-module", node.lineno, message, file=source.name)
        syntax = _young_syntax(node)
        if syntax and syntax[1] > lowest[1] and source.is_product:
            message = (
                f"{syntax[0]} came with Python 3.{syntax[1]}; the project says it works with 3.{lowest[1]}."
            )
            yield Hit("newer-syntax", node.lineno, message, file=source.name)


def _young_syntax(node: ast.AST) -> tuple[str, int] | None:
    if isinstance(node, ast.Match):
        return "`match`", 10
    if isinstance(node, getattr(ast, "TryStar", ())):
        return "`except*`", 11
    if isinstance(node, getattr(ast, "TypeAlias", ())):
        return "The `type` statement", 12
    if getattr(node, "type_params", None):
        return "A list of type parameters", 12
    return None


IMPORTED_CHECKS = (check_declared, check_unused, check_python)
