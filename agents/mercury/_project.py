"""The project under review: which files belong to it, where each stands, its text, lines and syntax tree.

Every specialist looks at the same files, so a project is opened once per process and shared while somebody
looks at it (a weak reference: nothing lingers after a review). A strange file never raises: `problem` says
why it cannot be understood, and its tree is empty.
"""

import ast
import io
import re
import threading
import tokenize
import warnings
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from _walk import survey

_LOCK = threading.RLock()  # filters of warnings belong to the process, and trees are shared
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_tests?|tests|conftest)\.py$")
_SIDE_FOLDER = re.compile(r"(^|[-_])(docs?|examples?|bench|benchmarks?|scripts|tools)$")
_SILENT = re.compile(r"#\s*(noqa|nosec)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_HEAD = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")


class Source:
    """One Python file. Text and tree are made when they are first asked for, and kept."""

    def __init__(self, path: Path, name: str, shipped: bool) -> None:
        self.path = path
        self.name = name  # relative to the project, with forward slashes
        self.project: Project
        folders = name.split("/")[:-1]
        self.beside = any(_SIDE_FOLDER.search(folder) for folder in folders)
        testing = bool(_TEST_FILE.search(name) or _TEST_FOLDERS.intersection(folders))
        self.is_test = testing and not self.beside
        self.is_product = shipped and not self.is_test and not self.beside
        self.in_package = self.is_product and "/" in name.removeprefix("src/")

    @cached_property
    def _read(self) -> tuple[str, str]:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            return "", f"it cannot be read: {error.strerror}"
        try:
            return data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0]), ""
        except (SyntaxError, UnicodeDecodeError, LookupError):
            return data.decode(
                "latin-1"
            ), "it is not in the encoding it declares, or in UTF-8 if it declares none"

    @property
    def text(self) -> str:
        """What the file says; a file that is not what it declares is read as Latin-1."""
        return self._read[0]

    @property
    def problem(self) -> str:
        """Why the file cannot be read as Python reads it; empty if it can."""
        return self._read[1]

    @cached_property
    def lines(self) -> list[str]:
        """The text line by line, split as Python counts lines."""
        return re.split(r"\r\n|\r|\n", self.text)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; empty where the file does not parse."""
        with _LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(self.text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return ast.Module([], [])

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    def of(self, *types: type[ast.AST]) -> list[Any]:
        """All nodes of the given types, outer ones first."""
        return [node for each in types for node in self._by_type.get(each, ())]

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method."""
        return self.of(ast.FunctionDef, ast.AsyncFunctionDef)

    @cached_property
    def module(self) -> str:
        """The dotted name under which the file is imported, as far as its place tells."""
        parts = self.name.removesuffix(".py").split("/")
        parts = parts[1:] if parts[0] in ("src", "lib") and len(parts) > 1 else parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)

    @property
    def is_public(self) -> bool:
        """Whether others may import the file: part of a package, and no part of its name is private."""
        return self.in_package and not any(part.startswith("_") for part in self.module.split("."))

    def line(self, number: int) -> str:
        """A line's text; empty beyond the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def is_silenced(self, number: int) -> bool:
        """Whether the author said on that line that a checker should look away."""
        return bool(_SILENT.search(self.line(number)))

    def matches(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Where the text shows something, with the line it begins on; silenced lines are left out."""
        for match in pattern.finditer(self.text):
            number = self.text.count("\n", 0, match.start()) + 1
            if not self.is_silenced(number):
                yield number, match

    def block(self, number: int) -> str:
        """The statement on a line with all that is indented below it."""
        depth, last = indent(self.line(number)), number
        for at in range(number + 1, len(self.lines) + 1):
            line = self.line(at)
            if line.strip() and indent(line) <= depth and not line.lstrip().startswith((")", "]", "}")):
                break
            last = at
        return "\n".join(self.lines[number - 1 : last])

    def heads(self, number: int) -> Iterator[tuple[int, str]]:
        """The lines that open the blocks around a line, from the inside out, with their numbers."""
        depth = indent(self.line(number))
        for at in range(number - 1, 0, -1):
            line = self.line(at)
            if line.strip() and indent(line) < depth and not line.lstrip().startswith(("#", ")", "]", "}")):
                depth = indent(line)
                yield at, line.strip()

    def function(self, number: int) -> tuple[int, str]:
        """The line and the name of the function around a line, or on it; (0, "") outside of any."""
        for at, line in ((number, self.line(number)), *self.heads(number)):
            if match := _HEAD.match(line):
                return at, match[1]
        return 0, ""

    def has_comment(self, first: int, last: int) -> bool:
        """Whether somebody explains something on one of these lines."""
        return any("#" in self.line(number) for number in range(first, last + 1))


def indent(line: str) -> int:
    """How far a line is indented."""
    return len(line) - len(line.lstrip())


class Project:
    """A folder of sources."""

    def __init__(self, root: Path, names: Iterable[str], skipped: Iterable[dict[str, str]]) -> None:
        names = list(names)
        self.root = root
        self.skipped = list(skipped)
        self.broken: set[str] = set()  # the files that do not parse, as far as that was noticed
        has_src = any(name.startswith("src/") for name in names)
        sources = [Source(root / name, name, name.startswith("src/") or not has_src) for name in names]
        self.sources = {each.name: each for each in sources}
        for each in sources:
            each.project = weakref.proxy(self)

    @property
    def product(self) -> list[Source]:
        """What users of the project run."""
        return [each for each in self.sources.values() if each.is_product]

    @property
    def tests(self) -> list[Source]:
        """The tests and what belongs to them."""
        return [each for each in self.sources.values() if each.is_test]

    @cached_property
    def packages(self) -> set[str]:
        """The first parts of the names under which the project's own files are imported."""
        return {each.module.partition(".")[0] for each in self.sources.values()}

    @cached_property
    def words(self) -> Counter[str]:
        """How often each identifier stands in the sources and in the manifests."""
        counts: Counter[str] = Counter()
        texts = (each.text for each in self.sources.values())
        for text in (*texts, *(self.read(name) for name in ("pyproject.toml", "setup.cfg"))):
            counts.update(_WORD.findall(text))
        return counts

    def read(self, name: str) -> str:
        """The text of any file of the project; empty where there is none."""
        try:
            return (self.root / name).read_bytes().decode("utf-8", "replace")
        except OSError:
            return ""

    def lines(self, name: str) -> list[str]:
        """The lines of any file of the project."""
        return self.sources[name].lines if name in self.sources else self.read(name).splitlines()


_open: weakref.WeakValueDictionary[tuple[object, ...], Project] = weakref.WeakValueDictionary()


def open_project(root: Path, surveyed: dict[str, Any] | None = None) -> Project:
    """The project of a folder: as it was surveyed, or surveyed now. Shared while in use and unchanged."""
    found = surveyed or survey(root)
    root = root.parent if root.is_file() else root
    key = (root, tuple((name, _stamp(root / name)) for name in found["files"]))
    with _LOCK:
        project = _open.get(key)
        if project is None:
            project = _open[key] = Project(root, found["files"], found["skipped"])
    return project


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
