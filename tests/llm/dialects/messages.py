"""Anthropic's messages."""

from collections.abc import Iterator
from typing import Any, Final

from tests.llm.answers import (
    Dialect,
    Finish,
    Frame,
    Piece,
    Reasoning,
    Reply,
    Text,
    ToolCall,
    Trouble,
    dumped,
    parsed_arguments,
    signature_of,
    split,
)
from tests.llm.asked import Asked, Json, Objection, Said, Usage

FINISH: Final[dict[Finish, str]] = {
    "stop": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
TROUBLES: Final = {
    "rate_limit": Trouble(
        status=429,
        type="rate_limit_error",
        message="This request would exceed your organization's rate limit.",
    ),
    "quota": Trouble(
        status=400,
        type="invalid_request_error",
        message="Your credit balance is too low to access the API.",
    ),
    "server_error": Trouble(status=500, type="api_error", message="Internal server error"),
    "bad_gateway": Trouble(status=502, type="api_error", message="Bad gateway"),
    "unavailable": Trouble(status=503, type="api_error", message="Service unavailable"),
    "overloaded": Trouble(status=529, type="overloaded_error", message="Overloaded"),
    "bad_key": Trouble(status=401, type="authentication_error", message="invalid x-api-key"),
    "no_model": Trouble(status=404, type="not_found_error", message="model: no such model"),
    "context_length": Trouble(
        status=400,
        type="invalid_request_error",
        message="prompt is too long: 200001 tokens > 200000 maximum",
    ),
}


def trouble(kind: str) -> Trouble:
    """How Anthropic words a refusal."""
    return TROUBLES[kind]


def error(trouble: Trouble) -> Json:
    """The body of a refusal."""
    said = {"type": trouble.type, "message": trouble.message}
    return {"type": "error", "error": said, "request_id": "req_test"}


def objection(found: Objection) -> str:
    """What is said to a history that does not hold together."""
    if found.unanswered:
        return (
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: "
            + ", ".join(found.unanswered)
            + ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
    if found.unasked:
        return (
            f"messages: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(found.unasked)}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    return "messages: Invalid `signature` in `thinking` block"


def read(body: Json) -> Asked:
    """What a request asks."""
    tools = [each for each in body.get("tools") or [] if "input_schema" in each]
    form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    system = _text(body.get("system") or "")
    return Asked(
        dialect="messages",
        model=body["model"],
        stream=bool(body.get("stream")),
        history=(
            *([Said(by="system", text=system)] if system else []),
            *(_said(each) for each in body["messages"]),
        ),
        tools=tuple(each["name"] for each in tools),
        tools_size=len(dumped(tools)) if tools else 0,
        schema="output" if form.get("type") == "json_schema" else None,
    )


def _said(message: Json) -> Said:
    content = message["content"]
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(_text([block]) for block in blocks)
    match message["role"]:
        case "assistant":
            calls = tuple(each["id"] for each in blocks if each["type"] == "tool_use")
            return Said(by="model", text=text, calls=calls, forged=any(_is_forged(each) for each in blocks))
        case "system":
            return Said(by="system", text=text)
        case _:
            results = tuple(each["tool_use_id"] for each in blocks if each["type"] == "tool_result")
            return Said(by="user", text=text, results=results)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_block_text(block) for block in content or ())


def _block_text(block: Json) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "thinking":
            return str(block["thinking"])
        case "tool_use":
            return str(block["name"]) + dumped(block["input"])
        case "tool_result":
            return _text(block.get("content"))
        case _:
            return ""


def _is_forged(block: Json) -> bool:
    return block["type"] == "thinking" and bool(block["signature"] != signature_of(block["thinking"]))


def whole(reply: Reply) -> Json:
    """The answer in one piece."""
    content = [_block(piece) for piece in reply.answer.pieces]
    return {**_message(reply, content), **_end(reply), "usage": usage(reply.usage)}


def _message(reply: Reply, content: list[Json]) -> Json:
    return {
        "id": f"msg_{reply.label}",
        "type": "message",
        "role": "assistant",
        "model": reply.asked.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _end(reply: Reply) -> Json:
    end: Json = {"stop_reason": FINISH[reply.answer.finish], "stop_sequence": None}
    if reply.answer.refusal:
        end["stop_details"] = {"type": "refusal", "category": None, "explanation": reply.answer.refusal}
    return end


def usage(spent: Usage) -> Json:
    """The tokens as messages tell them: the input without what touched the cache."""
    return {
        "input_tokens": spent.input - spent.cache_read - spent.cache_write,
        "cache_creation_input_tokens": spent.cache_write,
        "cache_read_input_tokens": spent.cache_read,
        "output_tokens": spent.output,
        "output_tokens_details": {"thinking_tokens": spent.reasoning},
    }


def _block(piece: Piece) -> Json:
    match piece:
        case Reasoning():
            return {"type": "thinking", "thinking": piece.text, "signature": signature_of(piece.text)}
        case Text():
            return {"type": "text", "text": piece.text}
        case ToolCall():
            arguments = parsed_arguments(piece.text)
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": arguments}


def frames(reply: Reply) -> list[Frame]:
    """The answer as a stream."""
    return [Frame(each["type"], dumped(each), _is_delta(each)) for each in _events(reply)]


def _is_delta(event: Json) -> bool:
    return event["type"] == "content_block_delta" and bool(event["delta"]["type"] != "signature_delta")


def _events(reply: Reply) -> Iterator[Json]:
    spent = usage(reply.usage)
    begun = {**_message(reply, []), "usage": {**spent, "output_tokens": 1, "output_tokens_details": None}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for number, piece in enumerate(reply.answer.pieces):
        yield {"type": "content_block_start", "index": number, "content_block": _opening(piece)}
        for delta in _deltas(piece, reply.answer.delta):
            yield {"type": "content_block_delta", "index": number, "delta": delta}
        yield {"type": "content_block_stop", "index": number}
    yield {"type": "message_delta", "delta": _end(reply), "usage": spent}
    yield {"type": "message_stop"}


def _opening(piece: Piece) -> Json:
    match piece:
        case Reasoning():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case Text():
            return {"type": "text", "text": ""}
        case ToolCall():
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}


def _deltas(piece: Piece, size: int) -> Iterator[Json]:
    for text in split(piece.text, size):
        match piece:
            case Reasoning():
                yield {"type": "thinking_delta", "thinking": text}
            case Text():
                yield {"type": "text_delta", "text": text}
            case ToolCall():
                yield {"type": "input_json_delta", "partial_json": text}
    if isinstance(piece, Reasoning):
        yield {"type": "signature_delta", "signature": signature_of(piece.text)}


def failure(reply: Reply, trouble: Trouble, number: int) -> Frame:
    """The error that ends a stream."""
    return Frame("error", dumped(error(trouble)))


MESSAGES: Final = Dialect(
    name="messages",
    path="/v1/messages",
    count_path="/v1/messages/count_tokens",
    read=read,
    whole=whole,
    frames=frames,
    trouble=trouble,
    error=error,
    failure=failure,
    objection=objection,
)
