"""What the model of a test says: plain data, the same for every provider's dialect.

A script is a list of conversations; the first whose `match` stands in the system prompt or in the first user
message is played. A conversation is a list of turns; the one to play is the number of the model's turns in
the request, so a client that asks the same step again hears the same answer. A step may be a list of turns:
the first whose `when` stands in what the request brings newly.

Faults go by how often a step was asked: the first fault meets the first `times` requests, the next one those
that follow, then the turn is played as it is written. A gate holds an answer until somebody opens it.

    {"conversations": [{"name": "sums", "match": "You add", "turns": [
        {"reasoning": "Two sums.", "calls": [{"name": "add", "arguments": {"a": 1, "b": 2}},
                                             {"name": "add", "arguments": {"a": 3, "b": 4}}]},
        {"text": "3 and 7.", "faults": [{"kind": "rate_limit", "retry_after": 1}],
                             "gates": [{"name": "half", "after": 1}]}
    ]}]}

A list of turns alone is a script of one conversation that matches everything.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

import attrs

from tests.llm.asked import Json

HttpFault = Literal[
    "rate_limit",
    "quota",
    "server_error",
    "bad_gateway",
    "unavailable",
    "overloaded",
    "bad_key",
    "no_model",
    "context_length",
]
"""Refused before anything is said, with the status and body of the provider."""

StreamFault = Literal["drop", "cut", "malformed", "stream_error"]
"""The answer breaks off, after `after` deltas or one: `drop` closes the connection (without `after` before
the head), `cut` ends the body as if nothing were missing, `malformed` sends half an event, `stream_error`
the provider's own `error` inside the stream."""

AnswerFault = Literal["truncated", "length", "content_filter", "refusal", "empty"]
"""The answer is sent whole and is no good: `truncated` breaks off the last JSON or text and does not say so,
`length` breaks it off and says so."""

FaultKind = HttpFault | StreamFault | AnswerFault
HTTP_FAULTS: Final[frozenset[str]] = frozenset(get_args(HttpFault))
STREAM_FAULTS: Final[frozenset[str]] = frozenset(get_args(StreamFault))
ANSWER_FAULTS: Final[frozenset[str]] = frozenset(get_args(AnswerFault))


class BadScript(ValueError):
    """A script that cannot be played."""


@attrs.frozen(kw_only=True)
class Call:
    """A tool call. Without an id it gets one that depends only on conversation, step and place."""

    name: str
    arguments: Json = attrs.field(factory=dict)
    id: str | None = None


@attrs.frozen(kw_only=True)
class Gate:
    """Holds the answer before its head or after `after` deltas, for the first `times` requests or for all."""

    name: str
    after: int | None = None
    times: int | None = None


@attrs.frozen(kw_only=True)
class Fault:
    """Something that goes wrong the first `times` times a step is asked (None: always)."""

    kind: str = attrs.field(validator=attrs.validators.in_(HTTP_FAULTS | STREAM_FAULTS | ANSWER_FAULTS))
    times: int | None = 1
    after: int | None = None
    status: int | None = None
    retry_after: float | str | None = None
    retry_after_ms: int | None = None
    error: str = attrs.field(default="overloaded", validator=attrs.validators.in_(HTTP_FAULTS))
    words: str | None = None  # what the provider says of it, in the place of its own words


@attrs.frozen(kw_only=True)
class Turn:
    """One answer of the model. `output` is structured: text or the output tool, as the request wants it."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    output: Any = None
    delta: int = 8
    repeat: bool = False
    when: str = ""
    gates: tuple[Gate, ...] = ()
    faults: tuple[Fault, ...] = ()

    def fault_of(self, ask: int) -> Fault | None:
        """The fault that meets the request which asks this step for the `ask`th time, counted from 0."""
        for fault in self.faults:
            if fault.times is None or ask < fault.times:
                return fault
            ask -= fault.times
        return None

    def gates_of(self, ask: int) -> tuple[Gate, ...]:
        """The gates that hold that request, in the order in which it meets them."""
        held = (gate for gate in self.gates if gate.times is None or ask < gate.times)
        return tuple(sorted(held, key=_place))


def _place(gate: Gate) -> int:
    return -1 if gate.after is None else gate.after


@attrs.frozen(kw_only=True)
class Conversation:
    """What one agent's model says, step by step; each step has one turn or several to choose from."""

    name: str = "main"
    match: str = ""
    steps: tuple[tuple[Turn, ...], ...]

    def turn_at(self, step: int, latest: str) -> Turn | None:
        """The turn for a step, given what the request brings newly; None if the script says nothing to it."""
        if step >= len(self.steps):
            return next((turn for turn in self.steps[-1] if turn.repeat), None) if self.steps else None
        return next((turn for turn in self.steps[step] if turn.when in latest), None)


@attrs.frozen(kw_only=True)
class Script:
    """All conversations that a server knows."""

    conversations: tuple[Conversation, ...]

    def conversation_for(self, opening: str) -> Conversation | None:
        """The first conversation that matches how a request begins."""
        return next((each for each in self.conversations if each.match in opening), None)


def read_script(data: Any) -> Script:
    """A script from JSON data; raises BadScript for what nobody would understand."""
    try:
        return _script(data)
    except (TypeError, ValueError, KeyError) as error:
        raise BadScript(f"not a script: {error}") from error


def _script(data: Any) -> Script:
    if isinstance(data, list):
        data = {"turns": data}
    if "turns" in data:
        data = {"conversations": [data]}
    return Script(conversations=tuple(_conversation(each) for each in data["conversations"]))


def _conversation(data: Mapping[str, Any]) -> Conversation:
    rest = {name: value for name, value in data.items() if name != "turns"}
    return Conversation(**rest, steps=tuple(_step(each) for each in data["turns"]))


def _step(data: Any) -> tuple[Turn, ...]:
    return tuple(_turn(each) for each in (data if isinstance(data, list) else [data]))


def _turn(data: Mapping[str, Any]) -> Turn:
    parts: dict[str, Any] = {
        name: _each(kind, data[name])
        for name, kind in (("calls", Call), ("gates", Gate), ("faults", Fault))
        if name in data
    }
    return Turn(**{**data, **parts})


def _each(kind: type[Any], data: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    return tuple(kind(**each) for each in data)
