"""Built-in tools: files of the agent's workspace, or of a folder to read, and nothing outside it."""

import fnmatch
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from orchestra.limits import KB, MB

_READ_BYTES: Final = 2 * MB
_HITS: Final = 200
_LINE_CHARS: Final = 300
SPELLINGS: Final = {
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "Glob": "list_files",
    "LS": "list_files",
    "Grep": "search_files",
}
"""What coding agents call them."""
FILE_TOOLS: Final = ("read_file", "write_file", "edit_file", "list_files", "search_files")
WRITING_TOOLS: Final = ("write_file", "edit_file")
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})


def file_tools(folder: Path, *, read_only: bool = False) -> Mapping[str, Callable[..., Any]]:
    """The tools, bound to a folder. One that is only read is somebody's: what is hidden in it stays so."""
    inside = _Workspace(folder, shows_hidden=not read_only)
    return {name: getattr(inside, name) for name in FILE_TOOLS if not (read_only and name in WRITING_TOOLS)}


class _Workspace:
    def __init__(self, folder: Path, *, shows_hidden: bool) -> None:
        self._folder, self._shows_hidden = folder, shows_hidden

    def _place(self, path: str) -> Path:
        """Where a path is; raises `ValueError` when that is outside, also by way of a link, or hidden."""
        root = self._folder.resolve()
        place = (root / path).resolve()
        if place != root and root not in place.parents:
            raise ValueError(f"{path!r} is outside the workspace")
        if any(map(self._is_hidden, place.relative_to(root).parts)):
            raise ValueError(f"{path!r} is hidden")
        return place

    def _is_hidden(self, name: str) -> bool:
        return not self._shows_hidden and (name.startswith(".") or name in _LEFT_OUT)

    def read_file(self, path: str, first_line: int = 1, lines: int = 2000) -> str:
        """Read a text file of the workspace, or some lines of it."""
        place = self._place(path)
        if place.stat().st_size > _READ_BYTES:
            raise ValueError(f"{path!r} has more than {_READ_BYTES // KB:,} kB: search in it")
        text = place.read_text(errors="replace").splitlines(keepends=True)
        return "".join(text[max(first_line, 1) - 1 :][:lines])

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace, and the folders above it."""
        place = self._place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
        return f"{path}: {len(content):,} characters"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a text that stands once in a file of the workspace."""
        place = self._place(path)
        text = place.read_text()
        if text.count(old) != 1:
            raise ValueError(f"the text to replace stands {text.count(old)} times in {path!r}, not once")
        place.write_text(text.replace(old, new))
        return f"{path}: replaced"

    def list_files(self, pattern: str = "*") -> list[str]:
        """List files of the workspace whose path matches a pattern such as `*.md`."""
        return sorted(name for name in self._names() if fnmatch.fnmatch(name, pattern))[:_HITS]

    def search_files(self, expression: str, pattern: str = "*") -> list[str]:
        """Find lines that match a regular expression in files of the workspace."""
        wanted = re.compile(expression)
        found: list[str] = []
        for name in sorted(self._names()):
            if not fnmatch.fnmatch(name, pattern):
                continue
            for number, line in enumerate((self._folder / name).read_text(errors="replace").splitlines(), 1):
                if wanted.search(line):
                    found.append(f"{name}:{number}: {line[:_LINE_CHARS]}")
                    if len(found) == _HITS:
                        return found
        return found

    def _names(self) -> list[str]:
        names: list[str] = []
        for folder, folders, files in os.walk(self._folder):
            folders[:] = [each for each in folders if not self._is_hidden(each)]
            names.extend(str((Path(folder) / each).relative_to(self._folder)) for each in files)
        return [each for each in names if self._is_inside(each)]

    def _is_inside(self, name: str) -> bool:
        try:
            return self._place(name).is_file()
        except ValueError:
            return False
