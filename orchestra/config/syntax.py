"""What the YAML parser complains about, in plain words."""

import re
from typing import Any, Final

import yaml

from orchestra.config.problems import Problem, printable

_TAB: Final = "a tab; YAML is indented with spaces"
_WORDS: Final = (
    ("mapping values are not allowed", "a colon too many; a text with `: ` in it must stand in quotes"),
    ("could not find expected ':'", "there is a `:` missing after a key"),
    (
        "did not find expected key",
        "this line does not fit; its indentation differs from that of the lines before",
    ),
    ("expected <block end>", "this line does not fit; its indentation differs from that of the lines before"),
    ("did not find expected '-'", "this line does not fit into the list above it; it should begin with `- `"),
    ("',' or ']'", "a list that was opened with `[` goes on here without `,` or `]`"),
    ("',' or '}'", "a mapping that was opened with `{` goes on here without `,` or `}`"),
    ("node content", "a value is missing here"),
    ("found unexpected end of stream", "a text in quotes is not closed"),
    ("unexpected document separator", "a text in quotes is not closed"),
    ("unknown escape character", "an unknown escape after `\\`; use single quotes or write `\\\\`"),
    ("sequence entries are not allowed", "a list cannot begin here; begin it on a line of its own"),
    ("tab character", _TAB),
    ("cannot start any token", "a value cannot begin with this character; put it in quotes"),
    ("undefined alias", "an alias cannot be used; write the value out"),
    ("undefined tag handle", "a tag cannot be used here; remove it"),
)


def syntax_problem(error: yaml.YAMLError, text: str) -> Problem:
    """A parser's error as a problem."""
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    complaint = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML")
    if mark is None:
        return Problem(1, 1, printable(complaint))
    lines = re.split("\r\n|\r|\n", text)
    line, column = min(mark.line, len(lines) - 1), mark.column
    if line != mark.line:  # the end of the file
        column = len(lines[line])
    indent = re.match(r"[ \t]*", lines[line])
    if indent is not None and "\t" in indent[0] and column <= indent.end():
        return Problem(line + 1, indent[0].index("\t") + 1, _TAB)
    return Problem(line + 1, column + 1, _sentence(complaint))


def _sentence(complaint: str) -> str:
    for part, words in _WORDS:
        if part in complaint:
            return words
    return printable(complaint)
