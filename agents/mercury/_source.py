"""The sources of a project: which files belong to it, their text, and their syntax tree.

Every specialist looks at the same files in the same order, so a project is opened once per process and
shared for as long as somebody looks at it (a weak reference: nothing lingers after a review). Nothing here
raises on a strange file: what cannot be read or parsed says so in `problem`, and the structure specialist
makes a finding of it.
"""

import ast
import io
import re
import threading
import tokenize
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from _walk import survey

_PARSING = threading.Lock()  # filters of warnings belong to the process, so one parse at a time
_OPENING = threading.Lock()
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_tests?|tests|conftest)\.py$")
_SIDE_FOLDER = re.compile(r"(^|[-_])(docs?|examples?|bench|benchmarks?|scripts|tools)$")
_NOQA = re.compile(r"#\s*(noqa|nosec|pragma: no cover)", re.IGNORECASE)


@dataclass(frozen=True)
class Problem:
    """Why a file could not be understood."""

    rule: str
    line: int
    message: str


@dataclass(eq=False)
class Source:
    """One Python file. Text and tree are made when they are first asked for, and kept."""

    path: Path
    name: str  # relative to the project, with forward slashes
    shipped: bool = True  # False: the product is in `src/`, and this file is not

    @cached_property
    def _read(self) -> tuple[str, Problem | None]:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            return "", Problem("unreadable-file", 0, f"the file cannot be read: {error.strerror}")
        return decode(data)

    @property
    def text(self) -> str:
        """What the file says; a file that is not what it declares is read as Latin-1."""
        return self._read[0]

    @cached_property
    def lines(self) -> list[str]:
        """The text line by line, split as Python counts lines."""
        return re.split(r"\r\n|\r|\n", self.text)

    @cached_property
    def _parsed(self) -> tuple[ast.Module, Problem | None, list[tuple[int, str]]]:
        return parse(self.text, self.name)

    @property
    def tree(self) -> ast.Module:
        """The syntax tree; empty where the file does not parse."""
        return self._parsed[0]

    @property
    def problem(self) -> Problem | None:
        """Why the file could not be read or parsed, if so."""
        return self._read[1] or self._parsed[1]

    @property
    def warnings(self) -> list[tuple[int, str]]:
        """What the parser warned of, as (line, words)."""
        return self._parsed[2]

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, outer ones first; most checks look through them."""
        return list(ast.walk(self.tree))

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in self.nodes:
            found.setdefault(type(node), []).append(node)
        return found

    def of(self, *types: type[ast.AST]) -> list[Any]:
        """All nodes of the given types. Most checks look for few of them, and a file has many."""
        return [node for each in types for node in self._by_type.get(each, ())]

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method."""
        return self.of(ast.FunctionDef, ast.AsyncFunctionDef)

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Every call."""
        return self.of(ast.Call)

    @cached_property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """Every import, wherever it stands."""
        return self.of(ast.Import, ast.ImportFrom)

    @cached_property
    def kept(self) -> dict[str, Any]:
        """What several checks need and only one has to compute, by name."""
        return {}

    @cached_property
    def comments(self) -> dict[int, str]:
        """The comments by line."""
        found: dict[int, str] = {}
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type == tokenize.COMMENT:
                    found[token.start[0]] = token.string
        except (tokenize.TokenError, SyntaxError):
            pass  # the parser says it better, and it is a finding already
        return found

    @cached_property
    def docstring_lines(self) -> set[int]:
        """The lines of texts that stand alone: docstrings, and comments written as strings."""
        texts = [node.value for node in self.of(ast.Expr) if isinstance(node.value, ast.Constant)]
        spans = [range(text.lineno, (text.end_lineno or text.lineno) + 1) for text in texts]
        return {line for span in spans for line in span}

    @property
    def is_test(self) -> bool:
        """Whether the file belongs to the tests."""
        if self._beside:
            return False
        return bool(_TEST_FILE.search(self.name)) or bool(_TEST_FOLDERS.intersection(self._folders))

    @property
    def is_side(self) -> bool:
        """Whether the file stands beside the product: documentation, examples, benchmarks, scripts."""
        return self._beside or "/" not in self.name.removeprefix("src/")

    @property
    def is_product(self) -> bool:
        """Whether users of the project run this file."""
        return self.shipped and not self.is_test and not self._beside

    @property
    def _beside(self) -> bool:
        return any(_SIDE_FOLDER.search(folder) for folder in self._folders)

    @property
    def _folders(self) -> Sequence[str]:
        return self.name.split("/")[:-1]

    def silenced(self, line: int) -> bool:
        """Whether the author said on that line that a checker should look away."""
        return bool(_NOQA.search(self.line(line)))

    def line(self, number: int) -> str:
        """A line's text; empty beyond the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @cached_property
    def module(self) -> str:
        """The dotted name under which the file is imported, as far as its place tells."""
        parts = self.name.removesuffix(".py").split("/")
        if parts[0] in ("src", "lib") and len(parts) > 1:
            parts = parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@dataclass(eq=False)
class Project:
    """A folder of sources."""

    root: Path
    sources: list[Source]
    skipped: list[dict[str, str]] = field(default_factory=list)

    @cached_property
    def by_module(self) -> dict[str, Source]:
        """The sources by dotted name; the product before the tests where two have one name."""
        ordered = sorted(self.sources, key=lambda each: each.is_product)
        return {each.module: each for each in ordered}

    def read(self, name: str) -> str | None:
        """The text of any file of the project, or None."""
        try:
            return (self.root / name).read_bytes().decode("utf-8", "replace")
        except OSError:
            return None


_open: WeakValueDictionary[tuple[object, ...], Project] = WeakValueDictionary()


def open_project(root: Path, surveyed: dict[str, object] | None = None) -> Project:
    """The project of a folder: as it was surveyed, or surveyed now. Shared while in use and unchanged."""
    found = surveyed or survey(root)
    root = root.parent if root.is_file() else root
    names = [str(name) for name in found["files"]]
    key = (root, tuple((name, _stamp(root / name)) for name in names))
    with _OPENING:
        project = _open.get(key)
        if project is None:
            has_src = any(name.startswith("src/") for name in names)
            sources = [Source(root / name, name, name.startswith("src/") or not has_src) for name in names]
            project = _open[key] = Project(root, sources, list(found["skipped"]))
    return project


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def decode(data: bytes) -> tuple[str, Problem | None]:
    """A file's bytes as text, by the encoding it declares. Never fails: Latin-1 reads anything."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding), None
    except (SyntaxError, UnicodeDecodeError, LookupError):
        line = _first_undecodable(data)
        words = "the file is not UTF-8 and declares no other encoding, so Python refuses to import it"
        return data.decode("latin-1"), Problem("wrong-encoding", line, words)


def _first_undecodable(data: bytes) -> int:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return 1


def parse(text: str, name: str) -> tuple[ast.Module, Problem | None, list[tuple[int, str]]]:
    """The tree of a text, what is wrong with it, and what the parser warned of."""
    with _PARSING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = ast.parse(text, filename=name)
        except SyntaxError as error:
            return ast.Module([], []), Problem("syntax-error", error.lineno or 1, f"{error.msg}"), []
        except (ValueError, RecursionError, MemoryError) as error:
            words = f"the parser gave up: {error or type(error).__name__}"
            return ast.Module([], []), Problem("syntax-error", 1, words), []
    return tree, None, [(each.lineno, str(each.message)) for each in caught if each.filename == name]
