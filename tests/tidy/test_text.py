"""What is published says nothing about the machine it was made on or the circumstances of its making.

The patterns are put together from pieces so that this file does not find itself.
"""

import re
from pathlib import Path

import pytest

from tests.tidy.project import ROOT, name_of, project_files

_PATHS = [
    r"(?<![\w.])/" + place
    for place in (r"home/\w+", r"Users/\w+", r"root/", r"work/(main|shared)", r"opt/\w+/")
]
_HOSTS = [
    r"py" + r"pi\.org",
    r"python" + r"hosted\.org",
    r"--(extra-)?index" + r"-url",
    r"npm" + r"js\.(org|com)",
    r"(?<!\w)registry" + r"\.[a-z]",
]
_TALK = [
    r"co-authored" + r"-by",
    r"(?<!\w)as an a" + r"i\b",
    r"\bai[- ]" + r"generated",
    r"(written|generated|made|created) (by|with) (an )?(ai|assistant|chatgpt|claude|copilot)" + r"\b",
    r"(as|you) (requested|asked) " + r"(by the user|me to)",
]
FORBIDDEN = {
    "a path of somebody's machine": re.compile("|".join(_PATHS)),
    "a package registry": re.compile("|".join(_HOSTS), re.IGNORECASE),
    "talk about the author": re.compile("|".join(_TALK), re.IGNORECASE),
}
_PAGE = re.compile(r"\b[A-Z]{3,}\.md\b")
_FORMATS = {"SKILL.md"}
"""Names that files of other people have, and that the program looks for."""


def _text(path: Path) -> str | None:
    """The file's text, or None if it is binary or not ours (the licence)."""
    if path.name == "LICENSE":
        return None
    data = path.read_bytes()
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _texts() -> list[tuple[Path, str]]:
    return [(path, text) for path in project_files() if (text := _text(path)) is not None]


def _faults(text: str) -> list[tuple[int, str, str]]:
    return [
        (number, what, match[0])
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if (match := pattern.search(line))
    ]


def test_texts_are_about_the_program() -> None:
    found = [
        f"{name_of(path)}:{number}: {what}: {words!r}"
        for path, text in _texts()
        for number, what, words in _faults(text)
    ]
    assert not found, "\n".join(found)


def test_pages_that_are_spoken_of_exist() -> None:
    """A comment that sends the reader to a page nobody can open helps nobody."""
    known = {path.name for path in project_files()} | _FORMATS
    found = [
        f"{name_of(path)}: {page}"
        for path, text in _texts()
        for page in _PAGE.findall(text)
        if page not in known
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "see /" + "home/ann/notes",
        "cd /" + "work/main",
        "pip install --index" + "-url x",
        "Co-Authored" + "-By: x",
        "written by an a" + "i",
    ],
)
def test_what_does_not_belong_is_found(line: str) -> None:
    assert _faults(line)


@pytest.mark.parametrize("line", ["outputs/home/x", "a language model", "https://example.org/home/page"])
def test_what_belongs_is_left_alone(line: str) -> None:
    assert not _faults(line)


def test_the_project_is_looked_at() -> None:
    assert ROOT / "pyproject.toml" in project_files()
