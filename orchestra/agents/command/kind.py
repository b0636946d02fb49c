"""Commands as a kind of agent: any program that talks JSON lines.

A program with a slash is a file below the workflow's folder, any other is looked for in `PATH`, as when it is
started. Of its arguments only the script is looked at, the first that is no option and ends as code does: the
others may name what the program is going to make.
"""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from orchestra.agents.fingerprint import digest_files
from orchestra.codec.definitions import read_options
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Runner
from orchestra.ports.agent_kind import AgentKind, AgentMistake, Workplace, option
from orchestra.suggest import closest

_CODE: Final = (
    ".bash", ".cjs", ".exs", ".jar", ".jl", ".js", ".lua", ".mjs", ".mts",
    ".php", ".pl", ".py", ".pyz", ".r", ".rb", ".sh", ".ts", ".zsh",
)  # fmt: skip
_PATTERN: Final = frozenset("*?[")


def _words(value: Any) -> Any:
    """A command line as a list, split as a shell would."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError:
        raise ValueError("the command has a quote that is not closed") from None


@attrs.frozen(kw_only=True)
class CommandOptions:
    """The keys of commands."""

    command: tuple[str, ...] = option(
        help="The program and its arguments; it talks JSON lines.", read=_words, written=str | list[str]
    )
    environment: tuple[str, ...] = option((), help="Names of variables it may see beside the basic ones.")


class CommandKind(AgentKind):
    """Agents that are programs."""

    name = "command"
    claim = "command"
    options = CommandOptions

    def mistakes(self, agent: Agent, folder: Path) -> Iterator[AgentMistake]:
        """A program or script that is not there."""
        command = read_options(agent, CommandOptions).command
        if not command:
            yield ("command",), "the command names no program"
            return
        if "\0" in "".join(command):
            yield ("command",), "a command has no zero bytes in it"
            return
        program = command[0]
        # Absolute, because `Path() / "./x"` is `x`, which would be looked for in `PATH`.
        place = str(folder.absolute() / program) if "/" in program else program
        if shutil.which(place) is None:
            yield ("command", 0), _no_program(program, folder)
        at = _script(command)
        if at and _is_missing(command[at], folder):
            hint = _beside(command[at], folder)
            yield ("command", at), f"there is no file `{command[at]}` (looked in `{folder}`){hint}"

    def fingerprint(self, agent: Agent, folder: Path) -> str:
        """The digest of the program and the script, where they are files below the workflow's folder."""
        command = read_options(agent, CommandOptions).command
        named = {command[0], command[_script(command)]}
        files = (folder / each for each in sorted(named) if "/" in each)
        return digest_files([each for each in files if each.is_file()])

    def make_runner(self, place: Workplace) -> Runner:
        """A runner of programs."""
        from orchestra.agents.command.runner import CommandRunner  # late: checking a file needs no loop

        return CommandRunner(place)


def _script(command: tuple[str, ...]) -> int:
    """Where the script stands in a command; 0 when there is none."""
    at = next((at for at, each in enumerate(command) if at and not each.startswith("-")), 0)
    return at if command[at].lower().endswith(_CODE) else 0


def _no_program(program: str, folder: Path) -> str:
    if "/" not in program:
        return f"there is no program `{program}` in `PATH`"
    if (folder / program).is_file():
        return f"`{program}` may not be executed; `chmod +x` allows it"
    return f"there is no program `{program}` (looked in `{folder}`){_beside(program, folder)}"


def _is_missing(argument: str, folder: Path) -> bool:
    """Whether it is a script that is nowhere: not beside the workflow, nor in the project where it works."""
    if "/" not in argument or _PATTERN & set(argument):
        return False
    above = folder.absolute().parents
    return not any((place / argument).exists() for place in (folder, *above, Path()))


def _beside(path: str, folder: Path) -> str:
    """A half sentence that names a file which was probably meant; empty when there is none."""
    below, _, name = path.rpartition("/")
    try:
        names = [each.name for each in (folder / below).iterdir() if each.is_file()]
    except OSError:
        return ""
    found = closest(name, names)
    return "" if found is None else f"; did you mean `{below}/{found}`?"
