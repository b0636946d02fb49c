"""Names are signs: a function is a verb, a noun or a question, and a class name stands for one idea."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.tidy.project import name_of, python_files, tree

_IRREGULAR = """
    begun bought bound brought built chosen done drawn driven found given gone grown heard held
    hidden kept known left lent lost made met paid said seen sent shown sold spent spoken struck
    taken taught thrown told written
"""
_NOT_PARTICIPLES = """
    bring exceed feed finding heading need proceed ring seed setting sibling speed spending string
    succeed
"""
IRREGULAR, NOT_PARTICIPLES = frozenset(_IRREGULAR.split()), frozenset(_NOT_PARTICIPLES.split())
AGREED = frozenset(
    {
        # The verbs of an agent's context, as DESIGN and every agent's code have them.
        "Context.limited",
        "Handed.spent",
    }
)


def is_bare_participle(name: str) -> bool:
    """Whether a name is one word that says what was done, or is being done, instead of doing or naming it."""
    if "_" in name or name in NOT_PARTICIPLES:
        return False
    return name in IRREGULAR or re.fullmatch(r"\w{2,}(ed|ing)", name) is not None


def _is_answer(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is read like an attribute, or overrides or stands for something of another library."""
    names = {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list}
    return bool(names & {"property", "cached_property", "fixture"})


def public_functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """The public functions of a module, and the public methods of its public classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{node.name}.")
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        elif not node.name.startswith("_") and not _is_answer(node):
            yield prefix + node.name, node


def test_no_function_is_a_bare_participle() -> None:
    found = [
        f"{name_of(path)}:{node.lineno} {name}"
        for path in python_files("orchestra")
        for name, node in public_functions(tree(path).body)
        if is_bare_participle(name.rpartition(".")[2]) and name not in AGREED
    ]
    assert not found, "a verb for what acts, a noun or a question for what answers:\n" + "\n".join(found)


def test_every_class_name_stands_for_one_idea() -> None:
    homes = defaultdict(list)
    for path in python_files("orchestra"):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name_of(path))
    doubled = {name: places for name, places in homes.items() if len(places) > 1}
    assert not doubled


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("ordered", True),
        ("told", True),
        ("reading", True),
        ("send_order", False),
        ("feed", False),
        ("run", False),
    ],
)
def test_what_counts_as_a_bare_participle(name: str, bare: bool) -> None:
    assert is_bare_participle(name) is bare


def test_methods_are_looked_at_and_properties_are_not() -> None:
    source = (
        "class A:\n    def done(self): ...\n    @property\n    def open(self): ...\n    def _hid(self): ...\n"
    )
    assert [name for name, _ in public_functions(ast.parse(source).body)] == ["A.done"]
