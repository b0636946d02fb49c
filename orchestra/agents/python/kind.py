"""Python agents as kinds: functions and classes of `.py` files, and functions that a program hands over."""

import ast
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from orchestra.agents.fingerprint import digest_files
from orchestra.agents.python.source import (
    helper_files,
    parse_file,
    parse_source,
    read_source,
    top_level_names,
)
from orchestra.codec.definitions import read_options
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Runner
from orchestra.ports.agent_kind import AgentKind, AgentMistake, Workplace, option
from orchestra.suggest import meant

Isolation: TypeAlias = Literal["none", "process"]
INTERPRETER = f"{sys.executable} {sys.implementation.cache_tag}"
"""What a process of its own is started with."""


@attrs.frozen(kw_only=True)
class PythonOptions:
    """The keys of Python agents."""

    attribute: str = option("agent", help="The function or class in that file.")
    isolation: Isolation = option("none", help="`process`: in a process of its own, which can be ended.")
    environment: tuple[str, ...] = option(
        (), help="Names of variables that a process of its own may see beside the basic ones."
    )


class PythonKind(AgentKind):
    """Agents in `.py` files."""

    name = "python"
    claim = ".py"
    options = PythonOptions
    after_colon = "attribute"

    def mistakes(self, agent: Agent, folder: Path) -> Iterator[AgentMistake]:
        """A file that is not there or does not parse, or lacks what is asked of it."""
        try:
            source = read_source(folder / agent.path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the author's own business
                names = top_level_names(parse_source(source, Path(agent.path)))
        except FileNotFoundError:
            yield ("path",), f"there is no file `{agent.path}` (looked in `{folder}`)"
        except OSError as error:
            yield ("path",), f"`{agent.path}` cannot be read ({error.strerror or error})"
        except SyntaxError as error:
            yield ("path",), f"`{agent.path}` is not Python: {error.msg} (line {error.lineno})"
        except ValueError as error:
            yield ("path",), f"`{agent.path}` cannot be parsed ({error})"
        else:
            wanted = read_options(agent, PythonOptions).attribute
            if names is not None and wanted not in names:
                hint = meant(wanted, {name for name in names if not name.startswith("_")})
                yield ("attribute",), f"`{agent.path}` has no `{wanted}`{hint}"

    def fingerprint(self, agent: Agent, folder: Path) -> str:
        """The digest of the file and its helpers, and of the interpreter of a process of its own."""
        file = folder / agent.path
        isolated = read_options(agent, PythonOptions).isolation == "process"
        return digest_files([file, *helper_files(file)], *([INTERPRETER] if isolated else []))

    def make_runner(self, place: Workplace) -> Runner:
        """A runner in this process, which hands what is isolated to processes of its own."""
        from orchestra.agents.python.runner import PythonRunner  # late: checking a file needs no loop

        return PythonRunner(place)

    def describe(self, path: Path) -> str:
        """The first line of the file's docstring."""
        return (ast.get_docstring(parse_file(path, path.stem)) or "").partition("\n")[0].strip()


class FunctionKind(AgentKind):
    """Functions that a program hands over; they are not written in YAML."""

    name = "function"

    def mistakes(self, agent: Agent, folder: Path) -> tuple[AgentMistake, ...]:
        """None: the function is looked at when it is called."""
        return ()

    def fingerprint(self, agent: Agent, folder: Path) -> str:
        """The one it has: only the program that builds a workflow sees the code of its functions."""
        return agent.source

    def make_runner(self, place: Workplace) -> Runner:
        """A runner in this process."""
        from orchestra.agents.python.runner import FunctionRunner

        return FunctionRunner(place)
