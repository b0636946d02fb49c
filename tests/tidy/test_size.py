"""Files and functions stay small enough to be read in one go."""

import ast
import tomllib
from collections.abc import Iterator, Mapping

import pytest

from tests.tidy.project import CODE_FOLDERS, ROOT, name_of, python_files, tree

FILE_LINES = 600
FUNCTION_LINES = 70

Sizes = Mapping[str, int]


def _exceptions(kind: str) -> dict[str, int]:
    text = (ROOT / "tests" / "tidy" / "exceptions.toml").read_text()
    listed: dict[str, int] = tomllib.loads(text)[kind]
    return listed


def _functions(body: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = prefix + node.name
            if not isinstance(node, ast.ClassDef):
                assert node.end_lineno is not None
                yield name, node.end_lineno - node.lineno + 1
            yield from _functions(node, f"{name}.")
        else:
            yield from _functions(node, prefix)


def file_sizes() -> Sizes:
    paths = python_files(*CODE_FOLDERS)
    return {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def function_sizes() -> Sizes:
    sizes: dict[str, int] = {}
    for path in python_files(*CODE_FOLDERS):
        for name, lines in _functions(tree(path)):
            key = f"{name_of(path)}::{name}"
            sizes[key] = max(lines, sizes.get(key, 0))  # overloads and setters share a name
    return sizes


def faults(actual: Sizes, recorded: Sizes, limit: int) -> list[str]:
    """What is too large, and what the list of exceptions says that is not so."""
    too_large = [
        f"{name} has {lines} lines, the limit is {recorded.get(name, limit)}: split it"
        for name, lines in actual.items()
        if lines > recorded.get(name, limit)
    ]
    return too_large + [
        f"exceptions.toml: {name} = {allowed} is no longer needed: remove it"
        if actual.get(name, 0) <= limit
        else f"exceptions.toml: {name} = {allowed} is more than its {actual[name]} lines: lower it"
        for name, allowed in recorded.items()
        if actual.get(name, 0) < allowed
    ]


def test_files_are_small() -> None:
    found = faults(file_sizes(), _exceptions("files"), FILE_LINES)
    assert not found, "\n".join(found)


def test_functions_are_small() -> None:
    found = faults(function_sizes(), _exceptions("functions"), FUNCTION_LINES)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("actual", "recorded", "advice"),
    [
        ({"a": 10}, {}, []),
        ({"a": 11}, {}, ["split it"]),
        ({"a": 12}, {"a": 12}, []),
        ({"a": 13}, {"a": 12}, ["split it"]),
        ({"a": 11}, {"a": 12}, ["lower it"]),
        ({"a": 9}, {"a": 12}, ["remove it"]),
        ({}, {"a": 12}, ["remove it"]),
    ],
)
def test_the_list_only_shrinks(actual: Sizes, recorded: Sizes, advice: list[str]) -> None:
    assert [fault.rpartition(": ")[2] for fault in faults(actual, recorded, limit=10)] == advice


def test_nested_functions_are_measured() -> None:
    source = "class A:\n    def f(self):\n        def g():\n            pass\n        return g\n"
    assert dict(_functions(ast.parse(source))) == {"A.f": 4, "A.f.g": 2}
