"""What to do with a request: the whole decision, before a byte is sent. Pure; the server only plays it."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import attrs

from tests.llm.answers import Dialect, Frame, Reply, Trouble, answer_of, bend, dumped
from tests.llm.asked import Asked, Usage, objection_to
from tests.llm.script import HTTP_FAULTS, STREAM_FAULTS, Conversation, Fault, Gate, Script, Turn

Ending = Literal["whole", "cut", "drop"]
JSON_TYPE: Final = "application/json"
STREAM_TYPE: Final = "text/event-stream; charset=utf-8"
GATEWAY_PAGE: Final = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@attrs.frozen
class Part:
    """Bytes that go out together."""

    data: bytes
    is_delta: bool = False


@attrs.frozen(kw_only=True)
class Outgoing:
    """What goes out: nothing without a status. Only an answer that ends `whole` has usage to report."""

    status: int | None
    media_type: str = JSON_TYPE
    headers: dict[str, str] = attrs.field(factory=dict)
    parts: tuple[Part, ...] = ()
    chunked: bool = False
    missing: int = 0
    ending: Ending = "whole"
    usage: Usage | None = None

    @property
    def length(self) -> int:
        """How many bytes the head promises, those that never come included."""
        return sum(len(part.data) for part in self.parts) + self.missing

    @property
    def deltas(self) -> int:
        """How many pieces of content it brings."""
        return sum(part.is_delta for part in self.parts)


@attrs.frozen(kw_only=True)
class Plan:
    """A request's place in the script, and what it is answered."""

    conversation: str
    step: int
    ask: int = 0
    fault: str | None = None
    gates: tuple[Gate, ...] = ()
    outgoing: Outgoing


def plan_for(
    asked: Asked, dialect: Dialect, script: Script, asks: Callable[[str, int], int], *, has_key: bool
) -> Plan:
    """What a request is answered; `asks` knows how often a conversation's step was asked before."""
    conversation = script.conversation_for(asked.opening)
    name = "" if conversation is None else conversation.name
    ask = asks(name, asked.step)
    refused = _refusal_of_request(asked, dialect, has_key=has_key)
    turn = None if conversation is None else conversation.turn_at(asked.step, asked.latest)
    if refused is not None:
        kind, outgoing = refused
        return Plan(conversation=name, step=asked.step, ask=ask, fault=kind, outgoing=outgoing)
    if conversation is None or turn is None:
        return Plan(
            conversation=name,
            step=asked.step,
            ask=ask,
            fault="unscripted",
            outgoing=_rejection(dialect, f"the script has no turn {asked.step} in conversation {name!r}"),
        )
    return _planned_turn(turn, conversation, asked, dialect, ask)


def _planned_turn(turn: Turn, conversation: Conversation, asked: Asked, dialect: Dialect, ask: int) -> Plan:
    fault = turn.fault_of(ask)
    label = f"{conversation.name}-{asked.step}"
    answer = answer_of(turn, asked, label)
    if fault is not None:
        answer = bend(answer, fault)
    reply = Reply(asked=asked, answer=answer, usage=answer.usage_for(asked), label=label)
    return Plan(
        conversation=conversation.name,
        step=asked.step,
        ask=ask,
        fault=None if fault is None else fault.kind,
        gates=turn.gates_of(ask),
        outgoing=outgoing_for(reply, dialect, fault),
    )


def _refusal_of_request(asked: Asked, dialect: Dialect, *, has_key: bool) -> tuple[str, Outgoing] | None:
    if not has_key:
        return "bad_key", refusal(dialect, dialect.trouble("bad_key"))
    found = objection_to(asked.history, earlier_calls=asked.steps_before > 0)
    return None if found is None else ("bad_history", _rejection(dialect, dialect.objection(found)))


def _rejection(dialect: Dialect, message: str) -> Outgoing:
    return refusal(dialect, Trouble(status=400, type="invalid_request_error", message=message))


def refusal(dialect: Dialect, trouble: Trouble, fault: Fault | None = None) -> Outgoing:
    """An error status with the provider's own body."""
    headers: dict[str, str] = {"x-request-id": "req_test"}
    if fault is not None and fault.retry_after is not None:
        headers["retry-after"] = str(fault.retry_after)
    if fault is not None and fault.retry_after_ms is not None:
        headers["retry-after-ms"] = str(fault.retry_after_ms)
    if fault is not None and fault.words is not None:
        trouble = attrs.evolve(trouble, message=fault.words)
    status = trouble.status if fault is None or fault.status is None else fault.status
    if trouble.status == 502:
        return Outgoing(status=status, media_type="text/html", headers=headers, parts=(Part(GATEWAY_PAGE),))
    return Outgoing(status=status, headers=headers, parts=(_json(dialect.error(trouble)),))


def outgoing_for(reply: Reply, dialect: Dialect, fault: Fault | None) -> Outgoing:
    """What goes out for an answer and the fault that meets it."""
    if fault is not None and fault.kind in HTTP_FAULTS:
        return refusal(dialect, dialect.trouble(fault.kind), fault)
    if fault is not None and fault.kind == "drop" and fault.after is None:
        return Outgoing(status=None, ending="drop")
    if fault is not None and fault.kind in STREAM_FAULTS:
        return (
            _unfinished_stream(reply, dialect, fault)
            if reply.asked.stream
            else _unfinished(reply, dialect, fault)
        )
    if not reply.asked.stream:
        return Outgoing(status=200, parts=(_json(dialect.whole(reply)),), usage=reply.usage)
    sent = reply.usage if reply.asked.wants_usage else None
    return _stream(dialect.frames(reply), "whole", sent)


def _unfinished(reply: Reply, dialect: Dialect, fault: Fault) -> Outgoing:
    """An answer in one piece that is not whole."""
    text = dumped(dialect.whole(reply)).encode()
    half = Part(text[: len(text) // 2])
    match fault.kind:
        case "drop":
            return Outgoing(status=200, parts=(half,), missing=len(text) - len(half.data), ending="drop")
        case "cut":
            return Outgoing(status=200, parts=(half,), ending="cut")
        case "malformed":
            return Outgoing(status=200, parts=(Part(b"   \n   upstream connect error"),), ending="cut")
        case _:
            return refusal(dialect, dialect.trouble(fault.error), fault)


def _unfinished_stream(reply: Reply, dialect: Dialect, fault: Fault) -> Outgoing:
    """A stream that breaks off after some deltas."""
    frames = dialect.frames(reply)
    begun = until_delta(frames, 1 if fault.after is None else fault.after)
    match fault.kind:
        case "malformed":
            broken = frames[len(begun)] if len(begun) < len(frames) else frames[-1]
            half = attrs.evolve(broken, data=broken.data[: max(2, len(broken.data) // 2)], is_delta=False)
            return _stream([*begun, half], "cut")
        case "stream_error":
            said = dialect.failure(reply, dialect.trouble(fault.error), len(begun))
            return _stream([*begun, said], "cut")
        case "drop":
            return _stream(begun, "drop")
        case _:
            return _stream(begun, "cut")


def until_delta(frames: Sequence[Frame], deltas: int) -> list[Frame]:
    """The events up to the last of so many deltas; never the end of the answer."""
    taken: list[Frame] = []
    places = [number for number, frame in enumerate(frames) if frame.is_delta][:deltas]
    if places:
        taken.extend(frames[: places[-1] + 1])
    return taken


def _stream(frames: Sequence[Frame], ending: Ending, usage: Usage | None = None) -> Outgoing:
    parts = tuple(Part(frame.encoded(), frame.is_delta) for frame in frames)
    return Outgoing(status=200, media_type=STREAM_TYPE, parts=parts, chunked=True, ending=ending, usage=usage)


def _json(data: Any) -> Part:
    return Part(dumped(data).encode())
