"""Cassettes: the answers of a run's models in a file, so that the run can be played again for nothing.

A cassette is JSON lines: a header that names the workflow, then one answer a line, under the agent that asked
and a digest of what it asked. When the same question was asked several times its answers come back in that
order. A question that was not recorded is answered by nobody: the error says what has changed in it.

Whoever records removes secrets beforehand. What is written here is written as it is.
"""

import difflib
import json
import os
import threading
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

import attrs

from orchestra.atomic import file_error, write_file
from orchestra.errors import BadCassette, NotOnCassette, UnstorableValue
from orchestra.limits import (
    AGENT_LINE_BYTES,
    CASSETTE_BYTES,
    CASSETTE_COMPARED_CHARS,
    CASSETTE_COMPARED_PROMPTS,
    CASSETTE_DIFF_CHARS,
    CASSETTE_DIFF_LINES,
    MB,
)
from orchestra.suggest import meant

CassetteMode: TypeAlias = Literal["record", "replay"]

FORMAT: Final = 1
_AGAIN: Final = "Record it again with --record, or name another file."
_ANOTHER: Final = "Name another file; --record makes one."
_CONTEXT_CHARS: Final = 40
_ENTRY: Final[Mapping[str, type]] = {"agent": str, "step": int, "digest": str, "asked": str, "response": dict}


@attrs.frozen(kw_only=True)
class RecordedAnswer:
    """One line of a cassette."""

    agent: str
    step: int
    digest: str  # of everything that was asked
    asked: str  # as text, to tell what has changed
    response: dict[str, Any]


class PromptChanges(tuple[str, ...]):
    """How a prompt differs from the one that was recorded, line by line; as text each on its own line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "".join(f"\n  {_printable(line)}" for line in self)


class Cassette:
    """A file of answers, open for recording or for playing. Use it with `with`, or close it."""

    def __init__(self, path: Path, mode: CassetteMode, answers: list[RecordedAnswer], changed: bool) -> None:
        self.path = path
        self.mode = mode
        self.is_of_changed_workflow = changed
        """Whether the workflow was another when the cassette was begun, under the same name."""
        self._answers: dict[tuple[str, str], list[RecordedAnswer]] = defaultdict(list)
        self._given: dict[tuple[str, str], int] = defaultdict(int)
        for answer in answers:
            self._answers[answer.agent, answer.digest].append(answer)
        self._lock = threading.Lock()
        self._file: int | None = None

    @classmethod
    def open(
        cls, path: Path, mode: CassetteMode, *, workflow: str, digest: str, fresh: bool = False
    ) -> "Cassette":
        """Open a cassette of a workflow, known by name and digest; raises `BadCassette`.

        Recording goes on in a file that is there, unless `fresh`, which begins it anew. A file that is
        something else, or of another workflow, stays as it is. A workflow that was changed since is no other
        workflow: its prompts tell.
        """
        header = {"cassette": FORMAT, "workflow": workflow, "digest": digest}
        if mode == "record" and not path.exists():
            write_file(path, _line(header))
        if mode == "record" and not fresh:
            _cut_torn_end(path)
        lines = _lines(path)
        found = _header(next(lines, None), path)
        if found.get("workflow") != workflow:
            reason = f"it is of the workflow {found.get('workflow')!r}, not of {workflow!r}"
            raise BadCassette(place=path, reason=reason, advice=_ANOTHER)
        if mode == "record" and fresh:
            lines.close()
            write_file(path, _line(header))
            found, lines = header, _lines(path)
            next(lines)
        answers = [_answer(data, number, path) for number, data in enumerate(lines, start=2)]
        cassette = cls(path, mode, answers, changed=found.get("digest") != digest)
        if mode == "record":
            cassette._file = _open_end(path)
        return cassette

    def find(self, agent: str, digest: str) -> dict[str, Any] | None:
        """The answer to a question of an agent, or None when there is none; while recording there never is.

        A question that is asked more often than it was recorded gets its last answer again.
        """
        if self.mode == "record":
            return None
        with self._lock:
            answers = self._answers.get((agent, digest))
            if not answers:
                return None
            at = self._given[agent, digest]
            self._given[agent, digest] = at + 1
        return answers[min(at, len(answers) - 1)].response

    def add(self, agent: str, step: int, digest: str, asked: str, response: Mapping[str, Any]) -> None:
        """Write an answer down; it is in the file whole, or not at all.

        Raises `UnstorableValue` for what is no JSON or too long, and what `orchestra.atomic` says of files.
        """
        entry = {"agent": agent, "step": step, "digest": digest, "asked": asked, "response": dict(response)}
        data = _line(entry)
        if len(data) > AGENT_LINE_BYTES:
            reason = f"it takes {len(data) / MB:.1f} MB and the limit is {AGENT_LINE_BYTES // MB} MB"
            raise UnstorableValue(path="the answer", reason=reason, advice="Record a shorter conversation.")
        with self._lock:
            if self._file is None:
                raise BadCassette(place=self.path, reason="it is not open for recording", advice=_AGAIN)
            _append(self._file, data, self.path)

    def miss(self, agent: str, step: int, asked: str) -> NotOnCassette:
        """The error for a question without an answer: it says how the prompt differs from the nearest one."""
        known = [each for answers in self._answers.values() for each in answers if each.agent == agent]
        if not known:
            agents = {name for name, _ in self._answers}
            reason = f"nothing was recorded of that agent{meant(agent, agents)}"
            return self._miss(agent, step, reason, PromptChanges())
        near = _nearest([each for each in known if each.step == step] or known, asked)
        if near.asked == asked:
            reason = (
                "the prompt is the same, but its settings, its tools or the form of its answer have changed"
            )
            return self._miss(agent, step, reason, PromptChanges())
        place = "" if near.step == step else f" (nearest is that of step {near.step})"
        return self._miss(agent, step, f"its prompt has changed{place}", prompt_changes(near.asked, asked))

    @property
    def unused(self) -> int:
        """How many recorded answers nobody has asked for."""
        return sum(max(0, len(each) - self._given.get(key, 0)) for key, each in self._answers.items())

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _miss(self, agent: str, step: int, reason: str, changes: PromptChanges) -> NotOnCassette:
        return NotOnCassette(place=self.path, agent=agent, step=step, reason=reason, changes=changes)


def prompt_changes(old: str, new: str) -> PromptChanges:
    """A short account of how one text became another: `-` what was, `+` what is."""
    before, after = (text[:CASSETTE_COMPARED_CHARS].splitlines() for text in (old, new))
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        if kind == "replace" and b - a == d - c:
            for one, other in zip(before[a:b], after[c:d], strict=True):
                was, now = _focus(one, other)
                lines += [f"- {was}", f"+ {now}"]
        else:
            lines += [f"- {_cut(each)}" for each in before[a:b]]
            lines += [f"+ {_cut(each)}" for each in after[c:d]]
    if not lines:
        lines = [f"(the texts differ after {CASSETTE_COMPARED_CHARS:,} characters)"]
    more = len(lines) - CASSETTE_DIFF_LINES
    return PromptChanges([*lines[:CASSETTE_DIFF_LINES], *([f"… and {more} lines more"] if more > 0 else [])])


# --- comparing --------------------------------------------------------------------------------------------


def _nearest(answers: list[RecordedAnswer], asked: str) -> RecordedAnswer:
    """The answer whose prompt is most like another, among the newest few."""
    shown = asked[:CASSETTE_COMPARED_CHARS]

    def likeness(answer: RecordedAnswer) -> float:
        matcher = difflib.SequenceMatcher(None, autojunk=False)
        matcher.set_seqs(answer.asked[:CASSETTE_COMPARED_CHARS].split(), shown.split())
        return 2.0 if answer.asked == asked else matcher.quick_ratio()

    return max(answers[-CASSETTE_COMPARED_PROMPTS:], key=likeness)


def _focus(old: str, new: str) -> tuple[str, str]:
    """Two lines, each around the place where they differ."""
    begin = _common_chars(old, new)
    end = _common_chars(old[begin:][::-1], new[begin:][::-1])
    first = max(0, begin - _CONTEXT_CHARS)
    shown = []
    for text in (old, new):
        last = min(len(text), len(text) - end + _CONTEXT_CHARS)
        shown.append(_cut(("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")))
    return shown[0], shown[1]


def _common_chars(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _cut(text: str) -> str:
    return text if len(text) <= CASSETTE_DIFF_CHARS else f"{text[:CASSETTE_DIFF_CHARS]}…"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


# --- the file ---------------------------------------------------------------------------------------------


def _line(entry: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a character: only escaped can it be written
        return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        advice = "Hand in what JSON can hold."
        raise UnstorableValue(path="the answer", reason=str(error), advice=advice) from None


def _lines(path: Path) -> Generator[bytes]:
    try:
        if path.stat().st_size > CASSETTE_BYTES:
            reason = f"it is larger than {CASSETTE_BYTES // MB} MB"
            raise BadCassette(place=path, reason=reason, advice=_AGAIN)
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        advice = "Record it with --record, or correct the path."
        raise BadCassette(place=path, reason="there is no such file", advice=advice) from None
    except (OSError, ValueError) as error:
        reason = f"it cannot be read ({getattr(error, 'strerror', None) or error})"
        raise BadCassette(place=path, reason=reason, advice=_AGAIN) from None


def _header(data: bytes | None, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(data or b"")
    except (ValueError, RecursionError):
        found = None
    version = found.get("cassette") if isinstance(found, dict) else None
    if not isinstance(version, int):
        raise BadCassette(
            place=path, reason="it is no cassette: its first line is no header", advice=_ANOTHER
        )
    if version > FORMAT:
        reason = f"it is of format {version} and this program reads up to {FORMAT}"
        raise BadCassette(place=path, reason=reason, advice="Use a newer version of orchestra.")
    assert isinstance(found, dict), "BUG: a version stands in a mapping"
    return found


def _answer(data: bytes, number: int, path: Path) -> RecordedAnswer:
    if not data.endswith(b"\n"):
        advice = f"The recording was cut off there: remove line {number}, or record it again."
        raise BadCassette(place=path, reason=f"line {number} is not complete", advice=advice)
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damage(path, number, f"is no JSON ({error})") from None
    if not isinstance(entry, dict):
        raise _damage(path, number, "is no answer")
    for key, kind in _ENTRY.items():
        if type(entry.get(key)) is not kind:
            raise _damage(path, number, f"has no `{key}`" if key not in entry else f"has a wrong `{key}`")
    return RecordedAnswer(**{key: entry[key] for key in _ENTRY})


def _damage(path: Path, number: int, what: str) -> BadCassette:
    advice = f"Restore the file, or record it again; line {number} may also be removed."
    return BadCassette(place=path, reason=f"line {number} {what}", advice=advice)


def _cut_torn_end(path: Path) -> None:
    """Remove the beginning of a line that nobody finished: its writer died, and nobody relied on it."""
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - AGENT_LINE_BYTES))
            tail = file.read()
            whole = tail.rfind(b"\n") + 1
            if whole and whole < len(tail):
                file.truncate(size - len(tail) + whole)
    except OSError as error:
        raise file_error(error, path) from None


def _open_end(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND)
    except OSError as error:
        raise file_error(error, path) from None


def _append(file: int, data: bytes, path: Path) -> None:
    """Write at the end of a file; after an error nothing of it is left there."""
    before = os.fstat(file).st_size
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError as error:
        os.ftruncate(file, before)
        raise file_error(error, path) from None
