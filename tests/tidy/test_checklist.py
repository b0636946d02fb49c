"""The checklist: every row of the source documents is proved by tests that exist, or says why not."""

import ast
import tomllib
from typing import Any, Final

import pytest

from tests.tidy.project import ROOT, tree

ROWS: Final = {"000": 45, "001": 54, "002": 37, "003": 41, "004": 37}
"""How many rows each document has."""
CHECKLIST: Final[dict[str, dict[str, dict[str, Any]]]] = tomllib.loads(
    (ROOT / "tests" / "checklist.toml").read_text(encoding="utf-8")
)
NAMED: Final = sorted(
    {name for rows in CHECKLIST.values() for row in rows.values() for name in row.get("tests", ())}
)


def test_every_row_is_there_once() -> None:
    expected = {document: [str(number + 1) for number in range(rows)] for document, rows in ROWS.items()}
    assert {document: list(rows) for document, rows in CHECKLIST.items()} == expected


def test_every_row_is_proved_or_says_why_not() -> None:
    rows = {
        f"{document}.{number}": row for document, rows in CHECKLIST.items() for number, row in rows.items()
    }
    assert [name for name, row in rows.items() if not row.get("tests") and not row.get("why")] == []
    assert [name for name, row in rows.items() if not row.get("what")] == []
    assert [name for name, row in rows.items() if row.keys() - {"what", "tests", "why"}] == []


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name: str) -> None:
    assert missing(name) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tests/tidy/nowhere.py::test_x", "no such file"),
        ("tests/tidy/test_checklist.py::test_nothing", "no test_nothing"),
        ("tests/tidy/test_checklist.py::Nobody::test_x", "no Nobody"),
        ("tests/tidy/test_checklist.py::missing", "is no test"),
    ],
)
def test_what_does_not_exist_is_noticed(name: str, said: str) -> None:
    assert said in missing(name)


def missing(name: str) -> str:
    """Why a name does not lead to a test; nothing when it does."""
    file, *path = name.split("::")
    if not (ROOT / file).is_file():
        return f"{name}: no such file"
    inside: list[ast.stmt] = tree(ROOT / file).body
    for step in path:
        found = [each for each in inside if getattr(each, "name", None) == step]
        if not found:
            return f"{name}: no {step}"
        inside = getattr(found[0], "body", [])
    return "" if path and path[-1].startswith("test_") else f"{name}: it is no test"
