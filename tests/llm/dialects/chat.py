"""OpenAI's chat completions."""

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
    split,
)
from tests.llm.asked import Asked, Json, Objection, Said, Usage

CREATED: Final = 1_700_000_000
FINISH: Final[dict[Finish, str]] = {
    "stop": "stop",
    "calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "stop",
}
TROUBLES: Final = {
    "rate_limit": Trouble(
        status=429,
        type="requests",
        code="rate_limit_exceeded",
        message="Rate limit reached for requests. Please try again later.",
    ),
    "quota": Trouble(
        status=429,
        type="insufficient_quota",
        code="insufficient_quota",
        message="You exceeded your current quota, please check your plan and billing details.",
    ),
    "server_error": Trouble(
        status=500,
        type="server_error",
        message="The server had an error while processing your request. Sorry about that!",
    ),
    "bad_gateway": Trouble(status=502, type="server_error", message="Bad gateway."),
    "unavailable": Trouble(status=503, type="server_error", message="Service unavailable."),
    "overloaded": Trouble(
        status=503,
        type="service_unavailable_error",
        code="server_is_overloaded",
        message="The engine is currently overloaded, please try again later.",
    ),
    "bad_key": Trouble(
        status=401,
        type="invalid_request_error",
        code="invalid_api_key",
        message="Incorrect API key provided.",
    ),
    "no_model": Trouble(
        status=404,
        type="invalid_request_error",
        code="model_not_found",
        message="The model does not exist or you do not have access to it.",
    ),
    "context_length": Trouble(
        status=400,
        type="invalid_request_error",
        code="context_length_exceeded",
        message=(
            "This model's maximum context length is 8192 tokens. "
            "However, your messages resulted in 9000 tokens. Please reduce the length of the messages."
        ),
    ),
}


def trouble(kind: str) -> Trouble:
    """How OpenAI words a refusal."""
    return TROUBLES[kind]


def error(trouble: Trouble) -> Json:
    """The body of a refusal."""
    said = {"message": trouble.message, "type": trouble.type, "param": None, "code": trouble.code}
    return {"error": said}


def objection(found: Objection) -> str:
    """What is said to a history that does not hold together."""
    if found.unanswered:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(found.unanswered)
        )
    return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."


def read(body: Json) -> Asked:
    """What a request asks."""
    tools = body.get("tools") or []
    form = body.get("response_format") or {}
    return Asked(
        dialect="chat",
        model=body["model"],
        stream=bool(body.get("stream")),
        history=tuple(_said(each) for each in body["messages"]),
        tools=tuple(each["function"]["name"] for each in tools),
        tools_size=len(dumped(tools)) if tools else 0,
        schema=form.get("json_schema", {}).get("name") if form.get("type") == "json_schema" else None,
        wants_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _said(message: Json) -> Said:
    role, text = message["role"], text_of(message.get("content"))
    if role in ("system", "developer"):
        return Said(by="system", text=text)
    if role == "tool":
        return Said(by="user", text=text, results=(message["tool_call_id"],))
    if role == "user":
        return Said(by="user", text=text)
    calls = message.get("tool_calls") or []
    asked = [each["function"]["name"] + each["function"]["arguments"] for each in calls]
    return Said(by="model", text="".join([text, *asked]), calls=tuple(each["id"] for each in calls))


def text_of(content: Any) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(each.get("text") or "" for each in content)


def whole(reply: Reply) -> Json:
    """The answer in one piece."""
    pieces = reply.answer.pieces
    message: Json = {
        "role": "assistant",
        "content": "".join(each.text for each in pieces if isinstance(each, Text)) or None,
        "refusal": reply.answer.refusal or None,
    }
    if thought := "".join(each.text for each in pieces if isinstance(each, Reasoning)):
        message["reasoning_content"] = thought
    if calls := [_call(each) for each in pieces if isinstance(each, ToolCall)]:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH[reply.answer.finish]}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": usage(reply.usage)}


def _head(reply: Reply, kind: str) -> Json:
    return {"id": f"chatcmpl-{reply.label}", "object": kind, "created": CREATED, "model": reply.asked.model}


def _call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def usage(spent: Usage) -> Json:
    """The tokens as chat completions tell them."""
    return {
        "prompt_tokens": spent.input,
        "completion_tokens": spent.output,
        "total_tokens": spent.input + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cache_read, "cache_write_tokens": spent.cache_write},
        "completion_tokens_details": {"reasoning_tokens": spent.reasoning},
    }


def frames(reply: Reply) -> list[Frame]:
    """The answer as a stream."""
    return [*_frames(reply), Frame(None, "[DONE]")]


def _frames(reply: Reply) -> Iterator[Frame]:
    head = _head(reply, "chat.completion.chunk")
    if reply.asked.wants_usage:
        head["usage"] = None

    def chunk(delta: Json, finish: str | None = None, *, is_delta: bool = False) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Frame(None, dumped({**head, "choices": [choice]}), is_delta)

    answer = reply.answer
    yield chunk({"role": "assistant", "content": "", "refusal": None})
    number = -1
    for piece in answer.pieces:
        number += isinstance(piece, ToolCall)
        if isinstance(piece, ToolCall):
            yield chunk({"tool_calls": [{"index": number, **_call(ToolCall(piece.name, "", piece.id))}]})
        for text in split(piece.text, answer.delta):
            yield chunk(_delta(piece, text, number), is_delta=True)
    for text in split(answer.refusal, answer.delta):
        yield chunk({"refusal": text}, is_delta=True)
    yield chunk({}, FINISH[answer.finish])
    if reply.asked.wants_usage:
        yield Frame(None, dumped({**head, "choices": [], "usage": usage(reply.usage)}))


def _delta(piece: Piece, text: str, number: int) -> Json:
    match piece:
        case Reasoning():
            return {"reasoning_content": text}
        case Text():
            return {"content": text}
        case ToolCall():
            return {"tool_calls": [{"index": number, "function": {"arguments": text}}]}


def failure(reply: Reply, trouble: Trouble, number: int) -> Frame:
    """The error that ends a stream."""
    return Frame(None, dumped(error(trouble)))


CHAT: Final = Dialect(
    name="chat",
    path="/v1/chat/completions",
    count_path=None,
    read=read,
    whole=whole,
    frames=frames,
    trouble=trouble,
    error=error,
    failure=failure,
    objection=objection,
)
