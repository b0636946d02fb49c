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
_TESTS = re.compile(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_tests?|tests|conftest)\.py$")
_BESIDE = re.compile(r"(^|[-_/])(docs?|examples?|bench|benchmarks?|scripts|tools)/")
_SILENT = re.compile(r"#\s*(noqa|nosec)\b", re.IGNORECASE)
_PRIVATE = re.compile(r"(?<!\w)_[A-Za-z]\w*")


class Source:
    """One Python file."""

    def __init__(self, project: "Project", name: str, shipped: bool) -> None:
        self.project: Project = weakref.proxy(project)
        self.name = name  # relative to the project, with forward slashes
        self.path = project.root / name
        self.text, self.problem = _read(self.path)
        beside = bool(_BESIDE.search(name))
        self.is_test = bool(_TESTS.search(name)) and not beside
        self.is_product = shipped and not self.is_test and not beside
        self.in_package = self.is_product and "/" in name.removeprefix("src/")
        parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
        self.module = ".".join(parts[1:] if parts[0] in ("src", "lib") and len(parts) > 1 else parts)

    @cached_property
    def lines(self) -> list[str]:
        """The text line by line, split as Python counts lines."""
        return re.split(r"\r\n|\r|\n", self.text)

    @cached_property
    def _indents(self) -> list[int]:
        """How far each line is indented; those that open or end no block count as far inside."""
        bare = [line.lstrip() for line in self.lines]
        pairs = zip(self.lines, bare, strict=True)
        return [len(line) - len(rest) if rest and rest[0] not in ")]}#" else 999 for line, rest in pairs]

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

    @property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method."""
        return self.of(ast.FunctionDef, ast.AsyncFunctionDef)

    def line(self, number: int) -> str:
        """A line's text; empty beyond the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def is_silenced(self, number: int) -> bool:
        """Whether the author said on that line that a checker should look away."""
        return "#" in self.line(number) and bool(_SILENT.search(self.line(number)))

    def has_comment(self, first: int, last: int) -> bool:
        """Whether somebody explains something on one of these lines."""
        return any("#" in self.line(number) for number in range(first, last + 1))

    def matches(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Where the text shows something, with the line it begins on; silenced lines are left out."""
        number, begin = 1, 0
        for match in pattern.finditer(self.text):
            number, begin = number + self.text.count("\n", begin, match.start()), match.start()
            if not self.is_silenced(number):
                yield number, match

    def block(self, number: int) -> str:
        """The statement on a line with all that is indented below it."""
        depth, last = indent(self.line(number)), number
        while last < len(self._indents) and self._indents[last] > depth:
            last += 1
        return "\n".join(self.lines[number - 1 : last])

    def heads(self, number: int) -> Iterator[tuple[int, str]]:
        """The lines that open the blocks around a line, from the inside out, with their numbers."""
        depth = indent(self.line(number))
        for at in range(number - 1, 0, -1):
            if self._indents[at - 1] < depth:
                depth = self._indents[at - 1]
                yield at, self.line(at).strip()

    def function(self, number: int) -> tuple[int, str]:
        """The line and the name of the function around a line, or on it; (0, "") outside of any."""
        for at, line in ((number, self.line(number).strip()), *self.heads(number)):
            if match := re.match(r"(?:async\s+)?def\s+(\w+)", line):
                return at, match[1]
        return 0, ""


def _read(path: Path) -> tuple[str, str]:
    """What a file says, and why Python could not read it; what is not as it declares is read as Latin-1."""
    try:
        data = path.read_bytes()
        return data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0]), ""
    except OSError as error:
        return "", f"it cannot be read: {error.strerror}"
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return data.decode(
            "latin-1"
        ), "it is not in the encoding it declares, or in UTF-8 if it declares none"


def indent(line: str) -> int:
    """How far a line is indented."""
    return len(line) - len(line.lstrip())


class Project:
    """A folder of sources."""

    def __init__(self, root: Path, names: list[str], skipped: Iterable[dict[str, str]]) -> None:
        self.root = root
        self.skipped = list(skipped)
        self.broken: set[str] = set()  # the files that do not parse, as far as that was noticed
        has_src = any(name.startswith("src/") for name in names)
        self.sources = {name: Source(self, name, name.startswith("src/") or not has_src) for name in names}
        self.product = [each for each in self.sources.values() if each.is_product]  # what users run
        self.tests = [each for each in self.sources.values() if each.is_test]
        self.packages = {each.module.partition(".")[0] for each in self.sources.values()}

    @cached_property
    def private_names(self) -> Counter[str]:
        """How often each name with an underscore before it stands in the sources and in the manifests."""
        texts = [each.text for each in self.sources.values()] + [
            self.read("pyproject.toml"),
            self.read("setup.cfg"),
        ]
        return Counter(name for text in texts for name in _PRIVATE.findall(text))

    def read(self, name: str) -> str:
        """The text of any file of the project; empty where there is none."""
        path = self.root / name
        return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""

    def lines(self, name: str) -> list[str]:
        """The lines of any file of the project."""
        return self.sources[name].lines if name in self.sources else self.read(name).splitlines()


_open: weakref.WeakValueDictionary[tuple[object, ...], Project] = weakref.WeakValueDictionary()


def open_project(root: Path, surveyed: dict[str, Any] | None = None) -> Project:
    """The project of a folder: as it was surveyed, or surveyed now. Shared while in use and unchanged."""
    found = surveyed or survey(root)
    root = root.parent if root.is_file() else root
    paths = [root / name for name in found["files"]]
    key = (root, *((path, path.stat().st_mtime_ns if path.exists() else 0) for path in paths))
    with _LOCK:
        project = _open.get(key)
        if project is None:
            project = _open[key] = Project(root, list(found["files"]), found["skipped"])
    return project
