"""The architecture as data, and a check of it that needs nothing but syntax trees.

`LAYERS`, top to bottom, says who may import whom inside the package; `DOORS` says which part alone may import
a third-party library. `pyproject.toml` tells import-linter the same, which also follows indirect imports.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layer:
    """Parts on one level. Independent parts do not know one another."""

    parts: frozenset[str]
    independent: bool = True


def layer(*parts: str, independent: bool = True) -> Layer:
    """A layer of the given parts."""
    return Layer(frozenset(parts), independent)


LAYERS: tuple[Layer, ...] = (
    layer("cli"),
    layer("web"),
    layer("app", "testing"),
    layer("agents", "stores", "telemetry", "config"),
    layer("engine"),
    layer("checkpoint", "interchange"),
    layer("history"),
    layer("expressions", "codec", "ports"),
    layer("model"),
    layer("atomic", "background", "errors", "ids", "limits", "suggest", "version", independent=False),
)

BLIND: Mapping[str, frozenset[str]] = {"stores": frozenset({"checkpoint", "history", "interchange", "model"})}
"""Parts that must not see some of what lies below them: a store handles bytes and ids."""

DOORS: Mapping[str, frozenset[str]] = {
    "apsw": frozenset({"stores"}),
    "blake3": frozenset({"codec"}),
    "cattrs": frozenset({"codec"}),
    "cbor2": frozenset({"codec"}),
    "cyclopts": frozenset({"cli"}),
    "fastapi": frozenset({"web"}),
    "fastmcp": frozenset({"agents"}),
    "genai_prices": frozenset({"agents"}),
    "hypothesis": frozenset({"testing"}),
    "minijinja": frozenset({"expressions"}),
    "openai": frozenset({"agents"}),
    "opentelemetry": frozenset({"telemetry"}),
    "psycopg": frozenset({"stores"}),
    "psycopg_pool": frozenset({"stores"}),
    "pydantic": frozenset({"agents", "config", "web"}),
    "pydantic_ai": frozenset({"agents"}),
    "pytest": frozenset({"testing"}),
    "rich": frozenset({"cli"}),
    "sqlite3": frozenset({"stores"}),
    "starlette": frozenset({"web"}),
    "uvicorn": frozenset({"web"}),
    "xllamacpp": frozenset({"agents"}),
    "yaml": frozenset({"agents", "config", "web"}),
}

ROOT_MODULES = frozenset({"", "__main__", "recording", "workflow"})
"""The package's own `__init__`, `__main__` and public modules: they stand above every layer."""


@dataclass(frozen=True)
class Import:
    """One import: the module it stands in, what it names, and the line."""

    importer: str
    imported: str
    line: int


def module_name(package: Path, path: Path) -> str:
    """The dotted name of a file inside the package."""
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[Import]:
    """Every import of a module, at any depth, with relative ones made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module, is_package=is_package)
            for alias in node.names:
                yield Import(module, f"{base}.{alias.name}", node.lineno)


def _base(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = len(parts) - node.level + (1 if is_package else 0)
    return ".".join([*parts[:kept], *([node.module] if node.module else [])])


def part_of(module: str, package: str = "orchestra") -> str | None:
    """The part of the package a module belongs to; "" for the package itself, None for a stranger."""
    first, _, rest = module.partition(".")
    return rest.partition(".")[0] if first == package else None


def layer_fault(found: Import) -> str | None:
    """Why an import inside the package breaks the layers, or None if it does not."""
    importer, imported = part_of(found.importer), part_of(found.imported)
    if importer is None or imported is None or importer == imported:
        return None
    ranks = {part: rank for rank, level in enumerate(LAYERS) for part in level.parts}
    if importer in ROOT_MODULES:
        return None if imported in ranks else f"{imported!r} is not in the table of layers"
    if importer not in ranks:
        return f"{importer!r} is not in the table of layers"
    if imported not in ranks:
        return "imports from the package root; name the module that defines it"
    if imported in BLIND.get(importer, ()):
        return f"{importer} must not see {imported}"
    if ranks[importer] > ranks[imported]:
        return f"{importer} is below {imported}"
    if ranks[importer] == ranks[imported] and LAYERS[ranks[importer]].independent:
        return f"{importer} and {imported} stand side by side"
    return None


def door_fault(found: Import) -> str | None:
    """Why an import of a library goes around its door, or None if it does not."""
    library = found.imported.partition(".")[0]
    doors = DOORS.get(library)
    if doors is None or part_of(found.importer) in doors:
        return None
    return f"{library} is imported only in {' and '.join(sorted(doors))}"
