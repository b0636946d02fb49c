"""Messages of the model library as those of the record, and back; and the digest of what is asked.

A response is stored in parts that people read; what a provider needs to have back (signatures, its own ids)
stands beside them as data. So a stored response is the one that came.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
)
from pydantic_ai.usage import RequestUsage

from orchestra.codec.address import Addresser
from orchestra.codec.values import address_of, spell_surrogates
from orchestra.ids import Digest
from orchestra.model.records import MessageRole, PartKind, TokenPrice
from orchestra.ports.agent import ChatGeneration, ChatMessage, ChatPart

_TEXTS: Final = {"text": "text", "thinking": "reasoning"}
_PARTS: Final = {kind: part for part, kind in _TEXTS.items()}
_ASKED: Final = ("part_kind", "content", "args", "tool_name", "tool_call_id", "outcome")
"""What of a part a model sees."""
_ROLES: Final[Mapping[str, MessageRole]] = {"system-prompt": "system", "user-prompt": "user"}
_OWN: Final = frozenset({"parts", "kind", "usage", "timestamp", "model_name", "finish_reason", "run_id"})
"""Fields of a response that stand elsewhere in the record, or change from run to run."""


def plain_message(message: ModelMessage) -> dict[str, Any]:
    """A message as plain data, without what was not set."""
    dumped: dict[str, Any] = ModelMessagesTypeAdapter.dump_python([message], mode="json", exclude_none=True)[
        0
    ]
    return dumped


# --- responses


def chat_parts(response: ModelResponse, forms: Collection[str] = ()) -> tuple[ChatPart, ...]:
    """The parts of a response; a call of one of the forms is the answer itself, and no tool runs for it."""
    return tuple(_chat_part(part, forms) for part in plain_message(response)["parts"])


def _chat_part(part: Mapping[str, Any], forms: Collection[str]) -> ChatPart:
    rest = {name: held for name, held in part.items() if name != "part_kind" and held not in (None, {}, [])}
    match part["part_kind"]:
        case "text" | "thinking" as kind:
            text = spell_surrogates(rest.pop("content", ""))
            return ChatPart(kind=_TEXTS[kind], text=text, data=rest or None)  # type: ignore[arg-type]
        case "tool-call":
            named = {"id": rest.pop("tool_call_id"), "name": rest.pop("tool_name")}
            what: PartKind = "answer" if named["name"] in forms else "tool_call"
            return ChatPart(kind=what, data={**named, "arguments": rest.pop("args", None), **rest})
        case _:
            return ChatPart(kind="other", data=dict(part))


def with_own_ids(response: ModelResponse, taken: Collection[str]) -> ModelResponse:
    """A response in which every tool call has an id that no other has: some models count anew each time."""
    seen = set(taken)
    parts = list(response.parts)
    for at, part in enumerate(parts):
        if not isinstance(part, ToolCallPart):
            continue
        wanted = (f"{part.tool_call_id}~{number}" for number in count(2))
        own = next(each for each in chain([part.tool_call_id], wanted) if each not in seen)
        seen.add(own)
        parts[at] = part if own == part.tool_call_id else replace(part, tool_call_id=own)
    return replace(response, parts=parts)


def provider_facts(response: ModelResponse, asked: str) -> dict[str, Any]:
    """What a provider says of a response beside its parts, and which model it was, if it has another name."""
    facts = {name: held for name, held in plain_message(response).items() if name not in _OWN and held}
    other = response.model_name and response.model_name != _asked_model(asked)
    return {**facts, "model_name": response.model_name} if other else facts


def _asked_model(name: str) -> str:
    """What a provider calls a model of this name."""
    return name.partition(":")[2] or name


def response_of(message: ChatMessage) -> ModelResponse:
    """The response that is stored in a message."""
    facts = message.generation
    assert facts is not None, "BUG: a response has the request that it answers"
    stored = {
        **facts.provider,
        "kind": "response",
        "parts": [_stored_part(part) for part in message.parts],
        "model_name": facts.provider.get("model_name", _asked_model(facts.model)),
        "finish_reason": facts.finish or None,
    }
    response = stored_response(stored)
    response.usage = RequestUsage(
        input_tokens=facts.tokens_in,
        output_tokens=facts.tokens_out,
        cache_read_tokens=facts.cache_read,
        cache_write_tokens=facts.cache_write,
    )
    return response


def stored_response(plain: Mapping[str, Any]) -> ModelResponse:
    """A response from its plain data."""
    (response,) = ModelMessagesTypeAdapter.validate_python([plain])
    assert isinstance(response, ModelResponse), "BUG: a stored response is none"
    return response


def _stored_part(part: ChatPart) -> dict[str, Any]:
    data = dict(part.data or {})
    if part.kind in _PARTS:
        return {**data, "part_kind": _PARTS[part.kind], "content": part.text}
    if part.kind in ("tool_call", "answer"):
        named = {"tool_call_id": data.pop("id"), "tool_name": data.pop("name")}
        return {**data, "part_kind": "tool-call", **named, "args": data.pop("arguments", None)}
    return data


# --- requests


def request_parts(request: ModelRequest) -> Iterable[tuple[MessageRole, ChatPart]]:
    """What a request says to the model beside the results of tools, which have records of their own."""
    if request.instructions:
        yield "system", ChatPart(kind="text", text=spell_surrogates(request.instructions))
    for part in plain_message(request)["parts"]:
        if part["part_kind"] == "tool-return":
            continue
        content = part.get("content", "")
        told = part.get("tool_name")
        data = {"tool": told} if told else None
        if isinstance(content, str):
            text = spell_surrogates(content)
        else:
            text, data = "", {**(data or {}), "content": content}
        yield _ROLES.get(part["part_kind"], "user"), ChatPart(kind="text", text=text, data=data)


class AskedDigest:
    """Digests of what is asked: instructions and all messages so far. Only what is new costs time."""

    def __init__(self) -> None:
        self._seen: list[ModelMessage] = []
        self._chain: list[tuple[bytes, int]] = [(b"", 0)]  # a digest and a size for each beginning of it

    def of(self, messages: Sequence[ModelMessage]) -> Digest:
        """The digest of a request: equal when the model would be asked the same again."""
        same = 0
        for seen, message in zip(self._seen, messages, strict=False):
            if seen is not message and seen != message:  # some are made anew for each request
                break
            same += 1
        del self._seen[same:], self._chain[same + 1 :]
        for message in messages[same:]:
            asked, (before, size) = _asked(message), self._chain[-1]
            self._seen.append(message)
            self._chain.append((_digest([before, asked]), size + len(json.dumps(asked))))
        last = messages[-1]
        instructions = last.instructions if isinstance(last, ModelRequest) else None
        return _digest([self._chain[-1][0], spell_surrogates(instructions or "")])

    @property
    def tokens(self) -> int:
        """About how many the last request has: four bytes of text are one, which errs upwards for English."""
        return self._chain[-1][1] // 4 + 1


def tool_digest(tool: str, arguments: Any) -> Digest:
    """The digest of a tool call: equal when the same is asked of the same tool."""
    return _digest([tool, arguments])


def _asked(message: ModelMessage) -> list[list[Any]]:
    return [[part.get(name) for name in _ASKED] for part in plain_message(message)["parts"]]


def _digest(plain: Any) -> Digest:
    return address_of(plain, Addresser())


def token_count(messages: Sequence[ModelMessage]) -> int:
    """About how many tokens a request has: four bytes of text are one, which errs upwards for English."""
    return sum(len(json.dumps(_asked(message))) for message in messages) // 4 + 1


def generation_of(
    response: ModelResponse,
    *,
    model: str,
    asked: Digest,
    cost_micros: int | None,
    price: TokenPrice | None,
    latency_us: int,
    settings: Any,
) -> ChatGeneration:
    """What is recorded of the request that a response answers."""
    usage = response.usage
    return ChatGeneration(
        model=model,
        asked=asked,
        settings=settings,
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        cost_micros=cost_micros,
        price=price,
        latency_us=latency_us,
        finish=response.finish_reason or "",
        provider=provider_facts(response, model),
    )
