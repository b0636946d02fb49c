"""An answer before it is put into a provider's words: its pieces, its end, and what a fault makes of it."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import attrs

from tests.llm.asked import Asked, Json, Objection, Usage
from tests.llm.script import Fault, Turn

Finish = Literal["stop", "calls", "length", "content_filter", "refusal"]
REFUSAL = "I cannot help with that."


@attrs.frozen
class Reasoning:
    """What the model thinks."""

    text: str


@attrs.frozen
class Text:
    """What the model says."""

    text: str


@attrs.frozen
class ToolCall:
    """A tool the model calls; `text` are its arguments, which need not be good JSON."""

    name: str
    text: str
    id: str


Piece = Reasoning | Text | ToolCall


@attrs.frozen(kw_only=True)
class Answer:
    """Everything the model answers to a request."""

    pieces: tuple[Piece, ...]
    finish: Finish
    delta: int = 8

    @property
    def refusal(self) -> str:
        """The words of a refusal, or nothing."""
        return REFUSAL if self.finish == "refusal" else ""

    def usage_for(self, asked: Asked) -> Usage:
        """What request and answer cost together."""
        thought = sum(len(piece.text) for piece in self.pieces if isinstance(piece, Reasoning))
        said = sum(_size(piece) for piece in self.pieces if not isinstance(piece, Reasoning))
        return asked.usage(output=said + len(self.refusal), reasoning=thought)


def _size(piece: Piece) -> int:
    return len(piece.text) + (len(piece.name) if isinstance(piece, ToolCall) else 0)


@attrs.frozen(kw_only=True)
class Reply:
    """An answer to a request, ready to be worded. `label` depends on conversation and step only."""

    asked: Asked
    answer: Answer
    usage: Usage
    label: str


@attrs.frozen
class Frame:
    """One server-sent event. Only pieces of content count as deltas, in every dialect the same."""

    name: str | None
    data: str
    is_delta: bool = False

    def encoded(self) -> bytes:
        """As it stands in the stream."""
        head = "" if self.name is None else f"event: {self.name}\n"
        return f"{head}data: {self.data}\n\n".encode()


@attrs.frozen(kw_only=True)
class Trouble:
    """How a provider words an error."""

    status: int
    type: str
    code: str | None = None
    message: str


@attrs.frozen(kw_only=True)
class Dialect:
    """One provider's way to be asked and to answer."""

    name: str
    path: str
    count_path: str | None
    read: Callable[[Json], Asked]
    whole: Callable[[Reply], Json]
    frames: Callable[[Reply], list[Frame]]
    trouble: Callable[[str], Trouble]
    error: Callable[[Trouble], Json]
    failure: Callable[[Reply, Trouble, int], Frame]
    objection: Callable[[Objection], str]


def answer_of(turn: Turn, asked: Asked, label: str) -> Answer:
    """What a turn of a script answers to a request."""
    pieces = tuple(_pieces(turn, asked, label))
    calls = any(isinstance(piece, ToolCall) for piece in pieces)
    return Answer(pieces=pieces, finish="calls" if calls else "stop", delta=turn.delta)


def _pieces(turn: Turn, asked: Asked, label: str) -> Iterator[Piece]:
    if turn.reasoning:
        yield Reasoning(turn.reasoning)
    if turn.text:
        yield Text(turn.text)
    for number, call in enumerate(turn.calls):
        yield ToolCall(call.name, dumped(call.arguments), call.id or f"call_{label}_{number}")
    if turn.output is not None:
        yield _structured(turn.output, asked, f"call_{label}_{len(turn.calls)}")


def _structured(output: Any, asked: Asked, call_id: str) -> Piece:
    if asked.schema is None and asked.output_tool is not None:
        return ToolCall(asked.output_tool, dumped(output), call_id)
    return Text(dumped(output))


def bend(answer: Answer, fault: Fault) -> Answer:
    """The answer as an answer fault leaves it; other faults leave it alone."""
    match fault.kind:
        case "truncated":
            return attrs.evolve(answer, pieces=_broken_off(answer.pieces))
        case "length":
            return attrs.evolve(answer, pieces=_broken_off(answer.pieces), finish="length")
        case "content_filter":
            return attrs.evolve(answer, pieces=(), finish="content_filter")
        case "refusal":
            return attrs.evolve(answer, pieces=(), finish="refusal")
        case "empty":
            return attrs.evolve(answer, pieces=(), finish="stop")
        case _:
            return answer


def _broken_off(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """All pieces, the last one only half."""
    if not pieces:
        return ()
    last = pieces[-1]
    half = last.text[: (len(last.text) + 1) // 2]
    return (*pieces[:-1], attrs.evolve(last, text=half))


def split(text: str, size: int) -> list[str]:
    """A text in pieces of a size, as a stream delivers it."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def dumped(data: Any) -> str:
    """JSON without blanks."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def parsed_arguments(text: str) -> Json:
    """Arguments as an object: empty if they broke off, for a provider that has no place for broken JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def signature_of(text: str) -> str:
    """The signature of a piece of reasoning, by which a server knows its own words again."""
    return "sig_" + hashlib.sha256(text.encode()).hexdigest()[:24]
