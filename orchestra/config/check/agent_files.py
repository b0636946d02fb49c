"""The agents' files: whether they can be used, and the digest of their bytes.

The digest goes into the workflow, so that a resumed run notices that an agent has changed. The code is read,
never run: a file that does not parse, or lacks the function that is asked for, is told before a run starts.
"""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import attrs

from orchestra.codec.address import Addresser
from orchestra.config.check.commands import command_mistakes
from orchestra.config.models import AgentForm
from orchestra.config.problems import Mistake
from orchestra.config.suggest import meant
from orchestra.ids import Digest
from orchestra.limits import AGENT_FILE_BYTES, MB
from orchestra.model.workflow import Agent

SOURCE_VERSION = 1


@attrs.frozen(kw_only=True)
class _Code:
    """An agent's file."""

    source: Digest
    names: frozenset[str] | None  # at its top level; None: they cannot be told without running it


class AgentFiles:
    """Reads agents' files below a workflow's folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, _Code | str] = {}

    def source(self, path: str | None) -> Digest | None:
        """The digest of an agent's file; None for a command, or where the file cannot be used."""
        found = self._of(path) if path else None
        return found.source if isinstance(found, _Code) else None

    def mistakes(self, name: str, agent: AgentForm) -> Iterator[Mistake]:
        """What is wrong with how an agent is given."""
        where = ("agents", name)
        if agent.path and agent.command:
            yield Mistake((*where, "command"), "an agent has a `path` or a `command`, not both", at_key=True)
        elif not agent.path and not agent.command:
            yield Mistake(where, f"the agent `{name}` needs a `path` or a `command`", at_key=True)
        elif agent.command:
            yield from command_mistakes((*where, "command"), agent.command, self._folder)
        if agent.path:
            found = self._of(agent.path)
            if isinstance(found, str):
                yield Mistake((*where, "path"), found)
            elif found.names is not None and agent.attribute not in found.names:
                hint = meant(agent.attribute, {name for name in found.names if not name.startswith("_")})
                message = f"`{agent.path}` has no `{agent.attribute}`{hint}"
                yield Mistake((*where, "attribute"), message)

    def _of(self, path: str) -> _Code | str:
        if path not in self._read:
            self._read[path] = self._look(path)
        return self._read[path]

    def _look(self, path: str) -> _Code | str:
        if not path.endswith(".py"):
            return f"`{path}` is not a Python file; use a file that ends in .py, or give a `command`"
        try:
            with (self._folder / path).open("rb") as stream:
                data = stream.read(AGENT_FILE_BYTES + 1)
        except FileNotFoundError:
            return f"there is no file `{path}` (looked in `{self._folder}`)"
        except (OSError, ValueError) as error:
            return f"`{path}` cannot be read ({getattr(error, 'strerror', None) or error})"
        if len(data) > AGENT_FILE_BYTES:
            return f"`{path}` is larger than {AGENT_FILE_BYTES // MB} MB"
        return _code(data, path)


def refresh_digests(agents: tuple[Agent, ...], folder: Path) -> tuple[Agent, ...]:
    """Agents with the digests of their files as these are now; one whose file cannot be used stays."""
    files = AgentFiles(folder)
    found = ((agent, files.source(agent.path) if agent.source else None) for agent in agents)
    return tuple(
        agent if source is None else attrs.evolve(agent, source=source.hex()) for agent, source in found
    )


def _code(data: bytes, path: str) -> _Code | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the author's own business
            module = ast.parse(data)
    except SyntaxError as error:
        return f"`{path}` is not Python: {error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"`{path}` cannot be parsed ({error})"
    return _Code(source=Addresser().address("blob", SOURCE_VERSION, data), names=_top_level(module))


def _top_level(module: ast.Module) -> frozenset[str] | None:
    """The names a module defines when it is imported."""
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
