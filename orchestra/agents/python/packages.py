"""Folders of agents as packages of their own, so that loading one takes no name from anybody.

A folder becomes a package under a private name; neither `agents` nor any other name of the user's is used,
and `sys.path` is left alone. Files that begin with an underscore are helpers: an agent imports them as
`from _source import x` or `from ._source import x`, at the top or inside functions. Agents of one folder
share them, and two folders may have helpers of the same name.

How: a finder on `sys.meta_path` answers to the private names alone, and the modules it loads get an
`__import__` that looks for an underscored name in their folder first. The private name follows from the
place and the content of the helpers, so what has changed is loaded anew beside what is still in use.
"""

import builtins
import hashlib
import importlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from orchestra.agents.python.source import helper_files

_PREFIX: Final = "_orchestra_agents_"


def import_agent(path: Path) -> ModuleType:
    """The module of an agent's file, under a name nobody else has; raises what importing it raises."""
    with _INSTALLING:
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
    package = _PREFIX + _digest(str(path.parent).encode(), *(_content(each) for each in helper_files(path)))
    name = f"{package}.agent_{_digest(_content(path))}"
    _FINDER.folders[package] = path.parent
    _FINDER.agents[name] = path
    return importlib.import_module(name)


def _content(path: Path) -> bytes:
    return path.name.encode() + b"\0" + path.read_bytes()


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:16]


class _Finder(MetaPathFinder):
    """Answers to the private names."""

    def __init__(self) -> None:
        self.folders: dict[str, Path] = {}  # by package
        self.agents: dict[str, Path] = {}  # by module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        package, _, name = fullname.partition(".")
        folder = self.folders[package]
        if not name:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(folder)]
            return spec
        file = self.agents.get(fullname, folder / f"{name}.py")
        if not file.is_file():
            return None
        return spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file)))


class _Loader(SourceFileLoader):
    """Loads a module from its source, always: a stored compilation may be a second too old."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        module.__dict__["__builtins__"] = vars(builtins) | {"__import__": _importer(package)}
        super().exec_module(module)


def _importer(package: str) -> Callable[..., ModuleType]:
    """An `__import__` that finds the helpers of a package under their bare names."""
    folder = _FINDER.folders[package]

    def find(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and name.startswith("_") and (folder / f"{name}.py").is_file():
            return importlib.import_module(f"{package}.{name}")
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    return find


_FINDER: Final = _Finder()
_INSTALLING: Final = threading.Lock()
