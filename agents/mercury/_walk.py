"""Which files belong to a project: found by walking its folder, within bounds, and saying what was left out.

Folders that hold no source of the project are not entered: hidden ones, environments, what builds and runs
leave behind, and what `.gitignore` names in its simple forms. Links are not followed, so a loop cannot be
entered.
"""

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_FILES = 2_000
MAX_FILE_BYTES = 1_000_000
MAX_NOTES = 100

_NEVER = frozenset({"node_modules", "__pycache__", "site-packages", "__pypackages__"})
_UNLESS_PACKAGE = frozenset({"build", "dist", "outputs", "venv", "env", "htmlcov", "target"})
_TEST_DATA = frozenset({"fixtures", "fixture", "data", "testdata", "test_data", "golden", "cases"})
_TESTS = frozenset({"test", "tests"})


def survey(root: Path, max_files: int = MAX_FILES) -> dict[str, Any]:
    """The Python files of a project, sorted, with what was skipped and why."""
    files: list[str] = []
    skipped: list[dict[str, str]] = []
    paths = [root] if root.is_file() else python_files(root)
    base = root.parent if root.is_file() else root
    for path in paths:
        name = path.relative_to(base).as_posix()
        why = "more than the limit of files" if len(files) >= max_files else _unsuitable(path)
        if why is None:
            files.append(name)
        elif len(skipped) < MAX_NOTES:
            skipped.append({"file": name, "why": why})
    return {"files": files, "skipped": skipped}


def _unsuitable(path: Path) -> str | None:
    """Why a file is left out, if it is."""
    if path.is_symlink():
        return "a link"
    try:
        size = path.stat().st_size
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return f"larger than {MAX_FILE_BYTES:,} bytes" if size > MAX_FILE_BYTES else None


def python_files(root: Path) -> Iterator[Path]:
    """Every Python file below a folder, in a steady order."""
    return (path for path in all_files(root) if path.suffix == ".py")


def all_files(root: Path) -> Iterator[Path]:
    """Every file of the project below a folder, in a steady order."""
    patterns = ignored_patterns(root)
    for place, folders, names in os.walk(root, followlinks=False):
        here = Path(place)
        folders[:] = sorted(name for name in folders if _enters(here / name, root, patterns))
        for name in sorted(names):
            if not matches((here / name).relative_to(root).as_posix(), patterns, folder=False):
                yield here / name


def _enters(folder: Path, root: Path, patterns: list[str]) -> bool:
    """Whether a folder can hold sources of the project."""
    name = folder.name
    if name.startswith(".") or name in _NEVER or name.endswith(".egg-info") or folder.is_symlink():
        return False
    if name in _UNLESS_PACKAGE and not (folder / "__init__.py").exists():
        return False
    if (folder / "pyvenv.cfg").exists():
        return False
    relative = folder.relative_to(root)
    if name in _TEST_DATA and _TESTS.intersection(relative.parts[:-1]):
        return False  # what tests read is not code that anybody runs
    return not matches(relative.as_posix(), patterns, folder=True)


def ignored_patterns(root: Path) -> list[str]:
    """The patterns of `.gitignore` that are simple enough to be sure of; exceptions (`!`) switch it off."""
    try:
        lines = (root / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    kept = [pattern for pattern in patterns if pattern.startswith("!")]
    return [pattern for pattern in patterns if "**" not in pattern and not _excepted(pattern, kept)]


def _excepted(pattern: str, kept: list[str]) -> bool:
    """Whether an exception may take something of this pattern back: then we look rather than skip."""
    return pattern.startswith("!") or any(pattern.strip("/*") in each for each in kept)


def matches(name: str, patterns: list[str], *, folder: bool) -> bool:
    """Whether a path, relative to the project, is named by one of the patterns."""
    return any(_matches(name, pattern, folder) for pattern in patterns)


def _matches(name: str, pattern: str, folder: bool) -> bool:
    if pattern.endswith("/") and not folder:
        return False
    bare = pattern.rstrip("/")
    if "/" in bare:
        return fnmatch.fnmatchcase(name, bare.removeprefix("/"))
    return fnmatch.fnmatchcase(name.rpartition("/")[2], bare)
