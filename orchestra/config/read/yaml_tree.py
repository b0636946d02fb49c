"""YAML text as plain data with the place of every key and value, and syntax errors in plain words."""

import re
from contextlib import closing
from typing import Any, Final

import attrs
import yaml

from orchestra.config.problems import Path, Place, Places, Problem, printable
from orchestra.config.read import scalars
from orchestra.limits import WORKFLOW_DEPTH, WORKFLOW_NODES

_INDENTATION: Final = "this line does not fit; its indentation differs from that of the lines before"
_TAB: Final = "a tab; YAML is indented with spaces"
_WORDS: Final = (
    ("mapping values are not allowed", "a colon too many; a text with `: ` in it must stand in quotes"),
    ("could not find expected ':'", "there is a `:` missing after a key"),
    ("did not find expected key", _INDENTATION),
    ("expected <block end>", _INDENTATION),
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
    known = (words for part, words in _WORDS if part in complaint)
    return Problem(line + 1, column + 1, next(known, printable(complaint)))


LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAGS: Final = ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_LEFT_OUT: Final = "\0left out"


@attrs.frozen
class YamlTree:
    """A YAML file as plain data."""

    data: Any
    places: Places
    problems: tuple[Problem, ...]
    left_out: frozenset[Path]  # where something was refused: what seems to be missing there is not
    whole: bool  # False: reading stopped before the end


def read_tree(text: str, *, loader: Any = LOADER) -> YamlTree:
    """The data of one YAML document. Never raises: what is wrong is among the problems."""
    builder = _Builder()
    try:
        with closing(yaml.parse(text, Loader=loader)) as events:
            for event in events:
                builder.take(event)
    except yaml.YAMLError as error:
        builder.problems.append(syntax_problem(error, text))
    except _Stop:
        pass
    except ValueError:  # the pure parser, for an escape beyond the last character
        builder.problems.append(Problem(1, 1, "an escape such as \\U stands for no character"))
    else:
        builder.whole = True
    return builder.tree()


class _Stop(Exception):
    """Reading any further is of no use."""


@attrs.define
class _Open:
    """A mapping or list that is being read."""

    path: Path
    data: dict[str, Any] | list[Any]
    place: Place
    key: str | None = None  # a mapping's key whose value comes next


class _Builder:
    """Takes events and builds data."""

    def __init__(self) -> None:
        self.data: Any = None
        self.places = Places()
        self.problems: list[Problem] = []
        self.left_out: set[Path] = set()
        self.whole = False
        self._open: list[_Open] = []
        self._nodes = 0
        self._begun = False

    def tree(self) -> YamlTree:
        return YamlTree(self.data, self.places, tuple(self.problems), frozenset(self.left_out), self.whole)

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._start(event, {})
            case yaml.SequenceStartEvent():
                self._start(event, [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                closed = self._open.pop()
                self._put(closed.data, closed.place)
            case yaml.AliasEvent():
                self._refuse(event, f"the alias `*{event.anchor}` cannot be used; write the value out")
                self._put(None, _place(event), refused=True)
            case yaml.DocumentStartEvent() if self._begun:
                self._refuse(event, "a second document begins here; a file holds one workflow")
                raise _Stop
            case yaml.DocumentStartEvent():
                self._begun = True
            case _:
                pass  # the beginning and end of the stream, the end of a document

    def _scalar(self, event: Any) -> None:
        self._check_node(event)
        place = _place(event)
        try:
            top = self._open[-1] if self._open else None
            is_key = top is not None and isinstance(top.data, dict) and top.key is None
            value = event.value if is_key and event.tag is None else _value(event)
            if not event.value.isascii() and any("\ud800" <= char <= "\udfff" for char in event.value):
                raise scalars.BadScalar("half of a character (a lone surrogate) cannot be used")
        except scalars.BadScalar as bad:
            self.problems.append(Problem(*place, printable(str(bad))))
            self._put(None, place, refused=True)
        else:
            self._put(value, place)

    def _start(self, event: Any, data: dict[str, Any] | list[Any]) -> None:
        self._check_node(event)
        if len(self._open) >= WORKFLOW_DEPTH:
            self._refuse(event, f"this is nested deeper than {WORKFLOW_DEPTH} levels")
            raise _Stop
        if event.tag is not None and event.tag not in _TAGS:
            tag = scalars.short(event.tag)
            self._refuse(event, f"the tag {tag} cannot be used; remove it, plain data is all that is read")
        self._open.append(_Open(self._here(), data, _place(event)))

    def _put(self, value: Any, place: Place, *, refused: bool = False) -> None:
        """Put a finished value where it belongs: the document, a list, a mapping, or a mapping's key."""
        if not self._open:
            self.data = value
            self.places.values[()] = place
            if refused:
                self.left_out.add(())
            return
        top, path = self._open[-1], self._here()
        if isinstance(top.data, list):
            top.data.append(value)
        elif top.key is None:
            self._key_value(value, place, refused)
            return
        else:
            key, top.key = top.key, None
            if key == _LEFT_OUT:
                return
            top.data[key] = value
        self.places.values[path] = place
        if refused:
            self.left_out.add(path)

    def _key(self, text: str, place: Place) -> None:
        top = self._open[-1]
        assert isinstance(top.data, dict), "BUG: only mappings have keys"
        path = (*top.path, text)
        if text == "<<":
            self._left_out_key(place, "`<<` cannot be used to merge mappings; write the keys out")
        elif path in self.places.keys:
            line = self.places.keys[path][0]
            self._left_out_key(place, f"`{text}` is given twice here; the first is on line {line}")
        else:
            top.key = text
            self.places.keys[path] = place

    def _key_value(self, value: Any, place: Place, refused: bool) -> None:
        """A key that is more than plain text: quoted, tagged, refused before, or a collection."""
        if refused:
            self._open[-1].key = _LEFT_OUT
        elif isinstance(value, str):
            self._key(value, place)
        else:
            self.left_out.add(self._open[-1].path)
            braces = isinstance(value, dict)
            advice = "a text that begins with `{{` must stand in quotes" if braces else "a key must be text"
            self._left_out_key(place, advice)

    def _left_out_key(self, place: Place, message: str) -> None:
        self.problems.append(Problem(*place, printable(message)))
        self._open[-1].key = _LEFT_OUT

    def _here(self) -> Path:
        """The path of the value that comes next."""
        if not self._open:
            return ()
        top = self._open[-1]
        if isinstance(top.data, list):
            return (*top.path, len(top.data))
        return (*top.path, _LEFT_OUT if top.key is None else top.key)

    def _check_node(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > WORKFLOW_NODES:
            many = f"the file has more than {WORKFLOW_NODES:,} keys and values; split the workflow"
            self._refuse(event, many)
            raise _Stop
        if event.anchor is not None:
            anchor = f"the anchor `&{event.anchor}` cannot be used; write the value out where it is needed"
            self._refuse(event, anchor)

    def _refuse(self, event: Any, message: str) -> None:
        self.problems.append(Problem(*_place(event), printable(message)))


def _place(event: Any) -> Place:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _value(event: Any) -> scalars.Scalar:
    text: str = event.value
    if event.tag is not None:
        return scalars.read_tagged(event.tag, text)
    return scalars.read_plain(text) if event.implicit[0] else text
