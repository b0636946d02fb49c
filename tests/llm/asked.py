"""A request to a model, whatever provider it was meant for: who said what, and what is asked for."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Literal

import attrs

Json = dict[str, Any]
TOKEN_CHARACTERS = 4


@attrs.frozen(kw_only=True)
class Said:
    """A message, or a part of one: its text, the ids of tool calls it makes and of those it answers."""

    by: Literal["system", "user", "model"]
    text: str = ""
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    forged: bool = False


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens of a request: `input` counts all of it, what came from or went to the cache included."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: value + getattr(other, name) for name, value in attrs.asdict(self).items()})


@attrs.frozen(kw_only=True)
class Asked:
    """What a request asks."""

    dialect: str
    model: str
    stream: bool
    history: tuple[Said, ...]
    tools: tuple[str, ...] = ()
    tools_size: int = 0
    schema: str | None = None
    wants_usage: bool = True
    steps_before: int = 0

    @property
    def step(self) -> int:
        """How many turns of the model the request knows already."""
        return self.steps_before + len(
            [True for said, before in _pairs(self.history) if _begins(said, before)]
        )

    @property
    def opening(self) -> str:
        """The system prompt and the first user message; what the system says later is no part of it."""
        begun = tuple(takewhile(lambda said: said.by != "model", self.history))
        system = [said.text for said in begun if said.by == "system"]
        first = next((said.text for said in begun if said.by == "user"), "")
        return "\n".join([*system, first])

    @property
    def latest(self) -> str:
        """What was said since the model's last turn."""
        return "\n".join(said.text for said in self.history[self._settled() :])

    @property
    def output_tool(self) -> str | None:
        """The tool by which the client wants its structured answer, if it is by a tool."""
        return next((name for name in self.tools if name.startswith("final_result")), None)

    def _settled(self) -> int:
        spoken = [number for number, said in enumerate(self.history) if said.by == "model"]
        return spoken[-1] + 1 if spoken else 0

    def usage(self, output: int, reasoning: int) -> Usage:
        """What it costs to answer so many characters. Later steps read the past from the cache."""
        system = self.tools_size + _size(said for said in self.history if said.by == "system")
        told = _size(said for said in self.history[: self._settled()] if said.by != "system")
        new = _size(said for said in self.history[self._settled() :] if said.by != "system")
        read, write = (tokens(system + told), 0) if self.step else (0, tokens(system))
        return Usage(
            input=read + write + tokens(new),
            output=tokens(output + reasoning),
            reasoning=tokens(reasoning),
            cache_read=read,
            cache_write=write,
        )


def tokens(characters: int) -> int:
    """How many tokens so many characters are said to be."""
    return -(-characters // TOKEN_CHARACTERS)


def _size(messages: Iterator[Said]) -> int:
    return sum(len(said.text) for said in messages)


def _pairs(history: Sequence[Said]) -> Iterator[tuple[Said, Said | None]]:
    return zip(history, (None, *history), strict=False)


def _begins(said: Said, before: Said | None) -> bool:
    """Whether a turn of the model begins here: in some dialects a turn is many items in a row."""
    return said.by == "model" and (before is None or before.by != "model")


@attrs.frozen(kw_only=True)
class Objection:
    """Why a provider refuses a history: calls without results, results without calls, forged reasoning."""

    unanswered: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    forged: bool = False


def objection_to(history: Sequence[Said], *, earlier_calls: bool = False) -> Objection | None:
    """What is wrong with a history. With `earlier_calls` results may answer calls that it does not show."""
    pending: list[str] = []
    for said, before in _pairs(history):
        if _begins(said, before) and pending:
            break
        pending.extend(said.calls)
        unasked = tuple(each for each in said.results if each not in pending)
        if unasked and not earlier_calls:
            return Objection(unasked=unasked)
        pending = [each for each in pending if each not in said.results]
    if pending:
        return Objection(unanswered=tuple(pending))
    return Objection(forged=True) if any(said.forged for said in history) else None
