"""Front matter: the `key: value` lines between two `---` at the top of a Markdown file.

People write it for many programs, and much of it is no YAML: `description: Use when: …` is an error there.
So it is read as YAML first. When that fails each key is read on its own, with the lines that belong to it,
and what is still no YAML is the text that stands there. Nothing of YAML that could grow is used: no aliases,
no tags, and the limits of workflow files.
"""

import re
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from orchestra.errors import BadAgentFile
from orchestra.limits import FRONT_MATTER_BYTES, KB, MB, VALUE_INTEGER_BITS, WORKFLOW_DEPTH, WORKFLOW_NODES

_FENCE: Final = "---"
_ENDS: Final = ("---", "...")
_KEY: Final = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?=[ \t]|$)[ \t]*(.*)")
_TIGHT_KEY: Final = re.compile(r"([A-Za-z_][\w.-]*):(.*)")
_ITEM: Final = re.compile(r"[ \t]*-[ \t]+(.*)")
_REFUSED: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER_CHARS: Final = VALUE_INTEGER_BITS // 4


@attrs.frozen(kw_only=True)
class FrontMatter:
    """A Markdown file in its two parts."""

    values: Mapping[str, Any]  # by key, as written: texts, numbers, lists and mappings
    texts: Mapping[str, str]  # what stands there letter by letter, where it is one word or text
    lines: Mapping[str, int]  # where each key stands
    odd: Mapping[str, str]  # why a key could only be read as text
    body: str
    body_line: int


def read_file(path: Path, *, limit: int) -> str:
    """The text of a file; raises `BadAgentFile` when it cannot be read, is too large or not UTF-8."""
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except FileNotFoundError:
        raise bad_file(str(path), 1, "there is no such file", "Write it, or correct the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise bad_file(str(path), 1, f"it cannot be read ({reason})", "Name a file that can be.") from None
    return decode_text(data, str(path), limit=limit)


def decode_text(data: bytes, file: str, *, limit: int) -> str:
    """Bytes as text without a byte order mark, its lines ended by `\\n`; raises `BadAgentFile`."""
    if len(data) > limit:
        most = f"{limit // MB} MB" if limit >= MB else f"{limit // KB} kB"
        raise bad_file(file, 1, f"the file is larger than {most}", "Shorten it, or move parts into skills.")
    if data.startswith(_UTF16):
        raise bad_file(file, 1, "the file is UTF-16", "Save it as UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise bad_file(file, line, byte, "Save the file as UTF-8.") from None
    return _even_lines(text)


def split_front_matter(text: str, file: str, known: Collection[str]) -> FrontMatter:
    """The parts of a text; raises `BadAgentFile`. Which keys are `known` helps where the text is no YAML.

    A text without front matter is all body.
    """
    lines = _even_lines(text.removeprefix("\ufeff")).split("\n")
    _check_characters(lines, file)
    begin = _opening(lines)
    end = None if begin is None else _closing(lines, begin)
    if begin is None or (begin and end is None):
        return _without(lines)
    if end is None:
        advice = "Put a line `---` after its last key."
        raise bad_file(file, 1, "the front matter begins here and never ends", advice)
    matter = lines[begin + 1 : end]
    if sum(map(len, matter)) > FRONT_MATTER_BYTES:
        most = f"the front matter is longer than {FRONT_MATTER_BYTES // KB} kB"
        raise bad_file(file, begin + 1, most, "Move the text below the second `---`.")
    body, body_line = _body(lines, end + 1)
    read = _read_matter(matter, begin + 2, file, known)
    return FrontMatter(
        values=read.values, texts=read.texts, lines=read.lines, odd=read.odd, body=body, body_line=body_line
    )


def bad_file(file: str, line: int, reason: str, advice: str) -> BadAgentFile:
    """The error for a file that cannot be used."""
    agent, place = Path(file).stem, f"{file}:{line}"
    return BadAgentFile(agent=agent, place=place, file=file, line=line, reason=reason, advice=advice)


def _even_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _check_characters(lines: list[str], file: str) -> None:
    for number, line in enumerate(lines, start=1):
        if found := _REFUSED.search(line):
            odd = f"the character U+{ord(found[0]):04X} cannot be used"
            raise bad_file(file, number, odd, "Remove it.")


def _opening(lines: list[str]) -> int | None:
    """Where the front matter begins: on the first line that is not empty, or nowhere."""
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    return first if first is not None and lines[first].rstrip() == _FENCE else None


def _closing(lines: list[str], begin: int) -> int | None:
    return next((at for at in range(begin + 1, len(lines)) if lines[at].rstrip() in _ENDS), None)


def _without(lines: list[str]) -> FrontMatter:
    body, line = _body(lines, 0)
    return FrontMatter(values={}, texts={}, lines={}, odd={}, body=body, body_line=line)


def _body(lines: list[str], begin: int) -> tuple[str, int]:
    """The text from a line on without empty lines around it, and the number of its first line."""
    first = next((at for at in range(begin, len(lines)) if lines[at].strip()), begin)
    return "\n".join(lines[first:]).rstrip(), first + 1


# --- keys and values ----------------------------------------------------------------------------------------


class _NotYaml(Exception):
    """Something is no YAML, or more than is read of it; its text says what."""


@attrs.frozen
class _Matter:
    """Keys and values while they are gathered."""

    values: dict[str, Any] = attrs.field(factory=dict)
    texts: dict[str, str] = attrs.field(factory=dict)
    lines: dict[str, int] = attrs.field(factory=dict)
    odd: dict[str, str] = attrs.field(factory=dict)


def _read_matter(lines: list[str], first: int, file: str, known: Collection[str]) -> _Matter:
    try:
        found = _read_yaml("\n".join(lines))
    except _NotYaml:
        return _read_by_keys(lines, first, file, known)
    if found.data is None:
        return _Matter()
    if not isinstance(found.data, dict):
        return _read_by_keys(lines, first, file, known)
    places = {key: line + first for key, line in found.lines.items()}
    return _Matter(found.data, found.texts, places)


def _read_by_keys(lines: list[str], first: int, file: str, known: Collection[str]) -> _Matter:
    """Read each key on its own; of a key that nobody knows and that is there twice, the first."""
    matter = _Matter()
    for at, key, rest, more in _chunks(lines, first, file, known):
        if key not in matter.values:
            matter.lines[key] = at
            _read_chunk(matter, key, rest, more)
        elif key in known:
            twice = f"`{key}` is given twice; the first is on line {matter.lines[key]}"
            raise bad_file(file, at, twice, "Remove one of them.")
    return matter


def _chunks(
    lines: list[str], first: int, file: str, known: Collection[str]
) -> list[tuple[int, str, str, list[str]]]:
    """The line of each key, the key, the rest of its line, and the lines that belong to it."""
    found: list[tuple[int, str, str, list[str]]] = []
    for at, line in enumerate(lines, start=first):
        key, tight = _KEY.fullmatch(line), _TIGHT_KEY.fullmatch(line)
        if key is None and tight is not None and tight[1] in known:  # `name:value`
            key = tight
        if key:
            found.append((at, key[1], key[2].rstrip(), []))
        elif found:
            found[-1][3].append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            advice = "Write a key, a colon and its value, or put a `---` before the text."
            raise bad_file(file, at, "this line of the front matter belongs to no key", advice)
    return found


def _read_chunk(matter: _Matter, key: str, rest: str, more: list[str]) -> None:
    """Read the value of one key: as YAML, with tabs made spaces, as lines of a list, or as text."""
    fault = ""
    for lines in (more, [_without_tabs(line) for line in more]):
        try:
            found = _read_yaml("\n".join([f"key: {rest}", *lines]))
        except _NotYaml as error:
            fault = fault or str(error)
        else:
            if isinstance(found.data, dict) and set(found.data) == {"key"}:
                matter.values[key] = found.data["key"]
                if "key" in found.texts:
                    matter.texts[key] = found.texts["key"]
                return
            fault = fault or "its lines are not indented below it"
    matter.odd[key] = fault
    items = [_ITEM.fullmatch(line) for line in more if line.strip()]
    if not rest and items and all(items):
        matter.values[key] = [_bare(item[1]) for item in items if item]
    else:
        text = " ".join(word for line in [_bare(rest), *more] if (word := line.strip()))
        matter.values[key] = matter.texts[key] = text


def _without_tabs(line: str) -> str:
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)].replace("\t", "  ") + body


def _bare(text: str) -> str:
    """A text without the quotes around it."""
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


# --- YAML ---------------------------------------------------------------------------------------------------


@attrs.define
class _Open:
    """A mapping or list that is being read."""

    data: dict[str, Any] | list[Any]
    key: str | None = None  # a mapping's key whose value comes next


def _read_yaml(text: str) -> "_Builder":
    """A YAML document: its data, and of the keys of its top the lines (from 0); raises `_NotYaml`."""
    builder = _Builder()
    try:
        with closing(yaml.parse(text, Loader=_LOADER)) as events:
            for event in events:
                builder.take(event)
    except yaml.YAMLError as error:
        complaint = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML"
        raise _NotYaml(str(complaint)) from None
    except ValueError:  # the pure parser, for an escape beyond the last character
        raise _NotYaml("an escape such as \\U stands for no character") from None
    return builder


class _Builder:
    """Takes events and builds data."""

    def __init__(self) -> None:
        self.data: Any = None
        self.lines: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self._open: list[_Open] = []
        self._nodes = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._count(event)
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._start(event, {})
            case yaml.SequenceStartEvent():
                self._start(event, [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._put(self._open.pop().data)
            case yaml.AliasEvent():
                raise _NotYaml(f"the alias `*{event.anchor}` cannot be used")
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise _NotYaml("a second document begins")
            case _:
                pass  # the beginning and end of the stream, the end of a document

    def _count(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > WORKFLOW_NODES:
            raise _NotYaml(f"it has more than {WORKFLOW_NODES:,} keys and values")
        if event.anchor is not None or event.tag is not None:
            raise _NotYaml("anchors and tags cannot be used")

    def _start(self, event: Any, data: dict[str, Any] | list[Any]) -> None:
        self._count(event)
        if len(self._open) >= WORKFLOW_DEPTH:
            raise _NotYaml(f"it is nested deeper than {WORKFLOW_DEPTH} levels")
        self._open.append(_Open(data))

    def _scalar(self, event: Any) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.data, dict) and top.key is None:
            self._key(top, event)
        else:
            if top is not None and top.key is not None and len(self._open) == 1:
                self.texts[top.key] = event.value
            self._put(_plain(event.value) if event.implicit[0] else event.value)

    def _key(self, top: _Open, event: Any) -> None:
        key: str = event.value
        if key == "<<" or key in top.data:
            raise _NotYaml(f"`{key}` is given twice" if key != "<<" else "`<<` cannot be used")
        top.key = key
        if len(self._open) == 1:
            self.lines[key] = event.start_mark.line

    def _put(self, value: Any) -> None:
        if not self._open:
            self.data = value
            return
        top = self._open[-1]
        if isinstance(top.data, list):
            top.data.append(value)
        elif top.key is None:
            raise _NotYaml("a key must be text")
        else:
            top.data[top.key], top.key = value, None


def _plain(text: str) -> Any:
    """What a plain scalar stands for in YAML 1.2: `on` and `12:30:00` are text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _INTEGER_CHARS else text
    return float(text) if _FLOAT.fullmatch(text) else text
