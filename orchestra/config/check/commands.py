"""Commands of agents: whether the program is there, and the script that it is given.

A program with a slash is a file below the workflow's folder, any other is looked for in `PATH`, as when it is
started. Of its arguments only the script is looked at, the first that is no option and ends as code does: the
others may name what the program is going to make.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from orchestra.config.problems import Mistake
from orchestra.config.problems import Path as Where
from orchestra.config.suggest import closest

_CODE: Final = (
    ".bash", ".cjs", ".exs", ".jar", ".jl", ".js", ".lua", ".mjs", ".mts",
    ".php", ".pl", ".py", ".pyz", ".r", ".rb", ".sh", ".ts", ".zsh",
)  # fmt: skip
_PATTERN: Final = frozenset("*?[")


def command_mistakes(where: Where, command: Sequence[str], folder: Path) -> Iterator[Mistake]:
    """What is wrong with a command."""
    program, *arguments = command
    if "\0" in "".join(command):
        yield Mistake(where, "a command has no zero bytes in it")
        return
    # Absolute, because `Path() / "./x"` is `x`, which would be looked for in `PATH`.
    place = str(folder.absolute() / program) if "/" in program else program
    if shutil.which(place) is None:
        yield Mistake((*where, 0), _no_program(program, folder))
    at = next((at for at, each in enumerate(arguments) if not each.startswith("-")), None)
    if at is not None and _is_missing(arguments[at], folder):
        script = arguments[at]
        message = f"there is no file `{script}` (looked in `{folder}`){_beside(script, folder)}"
        yield Mistake((*where, at + 1), message)


def _no_program(program: str, folder: Path) -> str:
    if "/" not in program:
        return f"there is no program `{program}` in `PATH`"
    if (folder / program).is_file():
        return f"`{program}` may not be executed; `chmod +x` allows it"
    return f"there is no program `{program}` (looked in `{folder}`){_beside(program, folder)}"


def _is_missing(argument: str, folder: Path) -> bool:
    """Whether it is a script that is nowhere: not beside the workflow, nor in the project where it works."""
    if "/" not in argument or not argument.lower().endswith(_CODE) or _PATTERN & set(argument):
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
