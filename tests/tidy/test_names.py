"""The public names are the listed ones, and every module says what it is."""

import ast
import importlib

import pytest

from tests.tidy.layers import module_name
from tests.tidy.project import PACKAGE, ROOT, name_of, python_files, tree

PUBLIC_MODULES = ("orchestra", "orchestra.recording", "orchestra.testing", "orchestra.workflow")
LIST = ROOT / "tests" / "tidy" / "public_names.txt"


def _listed() -> list[str]:
    lines = (line.strip() for line in LIST.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _exported(module: str) -> list[str]:
    names: list[str] = importlib.import_module(module).__all__
    return [f"{module}.{name}" for name in names]


def test_public_names_are_the_listed_ones() -> None:
    exported = {name for module in PUBLIC_MODULES for name in _exported(module)}
    listed = set(_listed())
    assert sorted(exported - listed) == [], f"new and meant to be public? add to {name_of(LIST)}"
    assert sorted(listed - exported) == [], f"gone on purpose? remove from {name_of(LIST)}"


def test_the_list_is_sorted_and_without_repeats() -> None:
    assert _listed() == sorted(set(_listed()))


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_exported_names_exist(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


def test_public_modules_have_a_docstring() -> None:
    silent = []
    for path in python_files("orchestra", "agents", "benchmarks"):
        private = path.is_relative_to(PACKAGE) and any(
            part.startswith("_") and not part.startswith("__")
            for part in module_name(PACKAGE, path).split(".")
        )
        if not private and not ast.get_docstring(tree(path)):
            silent.append(name_of(path))
    assert silent == []
