"""Where things are, and how to read them as text or syntax tree. Shared by the tests beside it."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "orchestra"
DOCS = ROOT / "docs"
CODE_FOLDERS = ("orchestra", "agents", "tests", "benchmarks")

_FENCE = re.compile(r"^ *(```|~~~)(?P<language>\w*)[^\n]*\n(?P<body>.*?)^ *\1 *$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@cache
def pyproject() -> dict[str, Any]:
    """pyproject.toml as data."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def python_files(*folders: str) -> list[Path]:
    """Every Python file below the given top-level folders, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """The path as people write it: relative to the checkout, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def project_files() -> list[Path]:
    """Every file that is, or would be, under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):  # an unpacked source archive, or no git at all
        return sorted(_files_without_git())
    return sorted(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


def _files_without_git() -> Iterator[Path]:
    folders = (*CODE_FOLDERS, "configs", "docs", ".ci")
    yield from (path for path in ROOT.glob("*") if path.is_file())
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def markdown_files() -> list[Path]:
    """Every Markdown page of the project."""
    return [path for path in project_files() if path.suffix == ".md"]


def code_blocks(page: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a Markdown page, as (language, text)."""
    for match in _FENCE.finditer(page):
        yield match["language"], match["body"]


def named_in(page: str) -> str:
    """What a page *names*: its code blocks, code spans and headings, without the prose around them."""
    prose = _FENCE.sub("", page)
    parts = [body for _, body in code_blocks(page)]
    parts += [match[2] for match in _SPAN.finditer(prose)]
    parts += _HEADING.findall(prose)
    return "\n".join(parts)


def mentions(text: str, name: str) -> bool:
    """Whether a name occurs in text as a whole word."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None
