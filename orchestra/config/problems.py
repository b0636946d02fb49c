"""Mistakes in a file: where each stands, what it is, and how all of them become one error.

A *path* leads from the top of a file to a place in it, e.g. `("phases", "analyse", "next", 0)`. Checks yield
`Mistake`s with a path; `Places` knows the line and column of every path, which makes them `Problem`s.
"""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TypeAlias

import attrs

from orchestra.errors import BadWorkflow
from orchestra.limits import WORKFLOW_PROBLEMS

Path: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[int, int]
START: Place = (1, 1)


@attrs.frozen
class Problem:
    """One mistake in a file. Lines and columns count from 1; 0 means the file or line as a whole."""

    line: int
    column: int
    message: str
    file: str = ""  # where it is not the file that the others stand in

    def as_text(self, file: str) -> str:
        """The mistake as a line that editors and terminals can follow."""
        place = [self.file or file, *(str(each) for each in (self.line, self.column) if each)]
        return f"{':'.join(place)}: {self.message}"


@attrs.frozen
class Mistake:
    """A mistake by path, before its line and column are known."""

    path: Path
    message: str
    at_key: bool = False  # at the key that leads there, not at the value


class Problems(tuple[Problem, ...]):
    """All mistakes of a file, in order. As text: one line each."""

    file: str

    def __new__(cls, found: Iterable[Problem] = (), file: str = "") -> "Problems":
        """The mistakes sorted by place, each once."""
        made = super().__new__(cls, sorted(set(found), key=attrgetter("file", "line", "column", "message")))
        made.file = file
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return Problems, (tuple(self), self.file)

    def __str__(self) -> str:
        lines = [problem.as_text(self.file) for problem in self[:WORKFLOW_PROBLEMS]]
        left = len(self) - len(lines)
        return "\n".join([*lines, f"… and {left} more"] if left else lines)


@attrs.frozen
class Places:
    """Where keys and values stand."""

    keys: dict[Path, Place] = attrs.field(factory=dict)
    values: dict[Path, Place] = attrs.field(factory=dict)

    def value(self, path: Path) -> Place:
        """Where the value at a path stands, or the nearest thing around it that was written."""
        ends = (path[:end] for end in range(len(path), -1, -1))
        return next((self.values[each] for each in ends if each in self.values), START)

    def key(self, path: Path) -> Place:
        """Where the key that leads to a path stands, or what is nearest to it."""
        found = self.keys.get(path)
        if found is None and path and path not in self.values:
            return self.key(path[:-1])
        return found or self.value(path)

    def problems(self, mistakes: Iterable[Mistake]) -> Iterator[Problem]:
        """The mistakes with their lines and columns."""
        for mistake in mistakes:
            line, column = (self.key if mistake.at_key else self.value)(mistake.path)
            yield Problem(line, column, printable(mistake.message))


def printable(text: str) -> str:
    """`text` with everything that a terminal might act upon written out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def bad_workflow(file: str, found: Iterable[Problem]) -> BadWorkflow:
    """One error with all mistakes: `problems` are `Problem`s, and as text one line each."""
    problems = Problems(found, file)
    count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
    return BadWorkflow(file=file, problems=problems, count=count)
