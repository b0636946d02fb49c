"""The layers and doors hold, and the two places that declare them agree."""

import ast
import re
from collections.abc import Callable
from itertools import chain

import pytest

from tests.tidy.layers import (
    BLIND,
    DOORS,
    LAYERS,
    ROOT_MODULES,
    Import,
    door_fault,
    imports,
    layer,
    layer_fault,
    module_name,
    part_of,
)
from tests.tidy.project import PACKAGE, name_of, pyproject, python_files, tree


def _contracts(kind: str) -> list[dict[str, object]]:
    contracts: list[dict[str, object]] = pyproject()["tool"]["importlinter"]["contracts"]
    return [contract for contract in contracts if contract["type"] == kind]


def _strings(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(item) for item in value]


def _faults(fault: Callable[[Import], str | None]) -> list[str]:
    found = []
    for path in python_files("orchestra"):
        module = module_name(PACKAGE, path)
        for item in imports(tree(path), module, is_package=path.name == "__init__.py"):
            if why := fault(item):
                found.append(f"{name_of(path)}:{item.line}: imports {item.imported}: {why}")
    return found


def test_higher_layers_import_lower_ones_only() -> None:
    found = _faults(layer_fault)
    assert not found, "\n".join(found)


def test_each_library_has_one_door() -> None:
    found = _faults(door_fault)
    assert not found, "\n".join(found)


def test_every_part_of_the_package_is_in_the_table() -> None:
    known = set(chain.from_iterable(level.parts for level in LAYERS)) | ROOT_MODULES
    parts = {part_of(module_name(PACKAGE, path)) for path in python_files("orchestra")}
    assert parts <= known


def test_import_linter_is_told_the_same_layers() -> None:
    (contract,) = _contracts("layers")
    told = []
    for line in _strings(contract["layers"]):
        parts = [part.strip() for part in re.split(r"[|:]", line)]
        told.append(layer(*parts, independent=":" not in line))
    assert tuple(told) == LAYERS


def test_import_linter_is_told_the_same_doors() -> None:
    told: dict[str, frozenset[str]] = {}
    blind: dict[str, frozenset[str]] = {}
    for contract in _contracts("forbidden"):
        libraries = _strings(contract["forbidden_modules"])
        if "ignore_imports" in contract:
            doors = frozenset(line.split(".")[1].split()[0] for line in _strings(contract["ignore_imports"]))
            told |= dict.fromkeys(libraries, doors)
        else:
            (source,) = _strings(contract["source_modules"])
            blind[source.split(".")[1]] = frozenset(name.split(".")[1] for name in libraries)
    assert told == DOORS
    assert blind == BLIND


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("orchestra.cli.commands.runs", "orchestra.checkpoint.history"),
        ("orchestra.ids", "orchestra.errors.BadName"),
        ("orchestra.stores.sqlite", "orchestra.ports.store"),
        ("orchestra.codec.cbor", "orchestra.codec.address"),
        ("orchestra", "orchestra.checkpoint.manager"),
        ("orchestra.model.state", "collections.abc"),
    ],
)
def test_allowed_imports_pass(importer: str, imported: str) -> None:
    assert layer_fault(Import(importer, imported, 1)) is None


@pytest.mark.parametrize(
    ("importer", "imported", "why"),
    [
        ("orchestra.model.state", "orchestra.codec.cbor", "below"),
        ("orchestra.codec.cbor", "orchestra.ports.store", "side by side"),
        ("orchestra.stores.sqlite", "orchestra.model.state", "must not see"),
        ("orchestra.checkpoint.manager", "orchestra.CheckpointManager", "package root"),
        ("orchestra.utils", "orchestra.ids", "not in the table"),
    ],
)
def test_forbidden_imports_are_found(importer: str, imported: str, why: str) -> None:
    assert why in (layer_fault(Import(importer, imported, 1)) or "")


def test_a_library_beside_its_door_is_found() -> None:
    assert door_fault(Import("orchestra.model.state", "cbor2", 1))
    assert door_fault(Import("orchestra.telemetry.spans", "opentelemetry.trace", 1)) is None


@pytest.mark.parametrize(
    ("source", "is_package", "imported"),
    [
        ("import orchestra.ids", False, "orchestra.ids"),
        ("from orchestra import ids", False, "orchestra.ids"),
        ("from . import cbor", False, "orchestra.codec.cbor"),
        ("from . import cbor", True, "orchestra.codec.tree.cbor"),
        ("from .cbor import encode", True, "orchestra.codec.tree.cbor.encode"),
        ("from ..ids import Digest", False, "orchestra.ids.Digest"),
        ("def f():\n    import cbor2", False, "cbor2"),
    ],
)
def test_imports_are_read_in_every_form(source: str, is_package: bool, imported: str) -> None:
    (found,) = imports(ast.parse(source), "orchestra.codec.tree", is_package=is_package)
    assert found.imported == imported


CONCRETE = {"agents", "stores", "telemetry"}
"""Where the concrete parts are that a process is put together from: runners, stores, sinks."""
COMPOSING = {
    "app/compose.py": "it is there for that",
    "app/checkup.py": "`doctor` looks at each part by itself and puts none together",
}
REGISTRIES = {
    "orchestra.agents.registry",  # knows kinds and stores by name: who asks it names none
    "orchestra.stores.registry",
    "orchestra.agents.context",  # what an agent is handed: a type of the front door
    "orchestra.telemetry.overview",  # figures that were written before
}


def test_one_module_names_concrete_parts_together() -> None:
    found = dict[str, set[str]]()
    for path in python_files("orchestra"):
        module = module_name(PACKAGE, path)
        if part_of(module) in ("app", "cli", "web"):
            named = [item.imported for item in imports(tree(path), module, is_package=False)]
            concrete = CONCRETE & {part_of(each) for each in named if not each.startswith(tuple(REGISTRIES))}
            if len(concrete) > 1:
                found[path.relative_to(PACKAGE).as_posix()] = concrete
    assert found.keys() == COMPOSING.keys(), found
