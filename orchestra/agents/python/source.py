"""The source of Python agents, read and parsed but never run."""

import ast
import errno
from pathlib import Path

from orchestra.errors import BadAgent
from orchestra.limits import AGENT_FILE_BYTES, MB


def read_source(path: Path) -> bytes:
    """The bytes of an agent's file; raises `OSError`, also when it is too large."""
    try:
        with path.open("rb") as file:
            source = file.read(AGENT_FILE_BYTES + 1)
    except ValueError as error:  # a zero byte in the name
        raise OSError(errno.EINVAL, str(error)) from None
    if len(source) > AGENT_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {AGENT_FILE_BYTES // MB} MB")
    return source


def parse_source(source: bytes, path: Path) -> ast.Module:
    """The syntax tree of an agent; raises `SyntaxError`, or `ValueError` for what is no text or too deep."""
    try:
        return ast.parse(source, str(path))
    except (RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None


def parse_file(path: Path, agent: str) -> ast.Module:
    """The syntax tree of an agent's file; raises `BadAgent`."""
    place = str(path)
    try:
        return parse_source(read_source(path), path)
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else place
        reason = f"{error.msg} ({type(error).__name__})"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except ValueError as error:
        reason = f"it cannot be parsed ({error})"
    raise BadAgent(agent=agent, place=place, reason=reason)


def helper_files(path: Path) -> list[Path]:
    """The files of an agent's folder that it may import."""
    return sorted(each for each in path.parent.glob("_*.py") if each != path)


def top_level_names(module: ast.Module) -> frozenset[str] | None:
    """The names that a module defines when it is imported; None when only running it can tell."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name.partition(".")[0] for alias in aliases)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case _:
                waiting.extend(ast.iter_child_nodes(node))
    return None if names & {"*", "__getattr__"} else frozenset(names)
