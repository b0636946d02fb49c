"""Which files belong to a project: found by walking its folder, within bounds, and saying what was left out.

Folders that hold no source of the project are not entered: hidden ones, environments, what builds and runs
leave behind, and what its `.gitignore` names. Links are not followed, so a loop cannot be entered.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

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
    base = root.parent if root.is_file() else root
    for path in [root] if root.is_file() else (each for each in all_files(root) if each.suffix == ".py"):
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


def all_files(root: Path) -> Iterator[Path]:
    """Every file of the project below a folder, in a steady order."""
    path = root / ".gitignore"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    ignored = GitIgnoreSpec.from_lines(lines)
    for place, folders, names in os.walk(root, followlinks=False):
        here = Path(place)
        folders[:] = sorted(name for name in folders if _enters(here / name, root))
        for name in sorted(names):
            if not ignored.match_file((here / name).relative_to(root).as_posix()):
                yield here / name


def _enters(folder: Path, root: Path) -> bool:
    """Whether a folder can hold sources of the project."""
    name = folder.name
    if name.startswith(".") or name in _NEVER or name.endswith(".egg-info") or folder.is_symlink():
        return False
    if name in _UNLESS_PACKAGE and not (folder / "__init__.py").exists():
        return False
    is_data = name in _TEST_DATA and _TESTS.intersection(folder.relative_to(root).parts[:-1])
    return (
        not is_data and not (folder / "pyvenv.cfg").exists()
    )  # what tests read is not code that anybody runs
