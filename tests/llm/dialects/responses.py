"""OpenAI's responses."""

from collections.abc import Iterator
from typing import Final

import attrs

from tests.llm.answers import (
    Dialect,
    Frame,
    Piece,
    Reasoning,
    Reply,
    Text,
    ToolCall,
    Trouble,
    dumped,
    signature_of,
    split,
)
from tests.llm.asked import Asked, Json, Objection, Said, Usage
from tests.llm.dialects import chat

INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


def trouble(kind: str) -> Trouble:
    """How OpenAI words a refusal here."""
    found = chat.trouble(kind)
    if kind != "context_length":
        return found
    return attrs.evolve(
        found,
        message="Your input exceeds the context window of this model. Please adjust your input.",
    )


def objection(found: Objection) -> str:
    """What is said to a history that does not hold together."""
    if found.unanswered:
        return f"No tool output found for function call {found.unanswered[0]}."
    if found.unasked:
        return f"No tool call found for function call output with call_id {found.unasked[0]}."
    return "The encrypted content could not be verified."


def read(body: Json) -> Asked:
    """What a request asks; where it only names the response before it, the step stands in that id."""
    tools = [each for each in body.get("tools") or [] if each.get("type") == "function"]
    form = (body.get("text") or {}).get("format") or {}
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    instructions = [Said(by="system", text=body["instructions"])] if body.get("instructions") else []
    previous = body.get("previous_response_id")
    return Asked(
        dialect="responses",
        model=body["model"],
        stream=bool(body.get("stream")),
        history=(*instructions, *(_said(each) for each in items)),
        tools=tuple(each["name"] for each in tools),
        tools_size=len(dumped(tools)) if tools else 0,
        schema=form.get("name") if form.get("type") == "json_schema" else None,
        steps_before=int(previous.rpartition("-")[2]) + 1 if previous else 0,
    )


def _said(item: Json) -> Said:
    match item.get("type", "message"):
        case "function_call":
            return Said(by="model", text=item["name"] + item["arguments"], calls=(item["call_id"],))
        case "function_call_output":
            return Said(by="user", text=chat.text_of(item["output"]), results=(item["call_id"],))
        case "reasoning":
            text = "".join(each["text"] for each in item["summary"])
            sealed = item.get("encrypted_content")
            return Said(by="model", text=text, forged=sealed is not None and sealed != signature_of(text))
        case _:
            text = chat.text_of(item["content"])
            match item["role"]:
                case "assistant":
                    return Said(by="model", text=text)
                case "system" | "developer":
                    return Said(by="system", text=text)
                case _:
                    return Said(by="user", text=text)


def whole(reply: Reply) -> Json:
    """The answer in one piece."""
    return _response(reply, _output(reply), reply.usage)


def _output(reply: Reply) -> list[Json]:
    items = [_item(reply, number, piece, "completed") for number, piece in enumerate(reply.answer.pieces)]
    if reply.answer.refusal:
        items.append(_message(reply, len(items), [{"type": "refusal", "refusal": reply.answer.refusal}]))
    return items


def _response(reply: Reply, output: list[Json], spent: Usage | None) -> Json:
    reason = INCOMPLETE.get(reply.answer.finish) if spent else None
    ended = "incomplete" if reason else "completed"
    return {
        "id": f"resp_{reply.label}",
        "object": "response",
        "created_at": chat.CREATED,
        "status": ended if spent else "in_progress",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": reply.asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage(spent) if spent else None,
    }


def usage(spent: Usage) -> Json:
    """The tokens as responses tell them."""
    return {
        "input_tokens": spent.input,
        "input_tokens_details": {"cached_tokens": spent.cache_read, "cache_write_tokens": spent.cache_write},
        "output_tokens": spent.output,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning},
        "total_tokens": spent.input + spent.output,
    }


def _item(reply: Reply, number: int, piece: Piece, status: str) -> Json:
    """An item of the output; while it is in progress its content is still to come."""
    text = piece.text if status == "completed" else ""
    match piece:
        case Reasoning():
            item: Json = {"type": "reasoning", "id": _id("rs", reply, number), "summary": []}
            if text:
                item |= {"summary": [_part(piece, text)], "encrypted_content": signature_of(text)}
            return item
        case Text():
            return _message(reply, number, [_part(piece, text)] if text else [], status)
        case ToolCall():
            return {
                "type": "function_call",
                "id": _id("fc", reply, number),
                "call_id": piece.id,
                "name": piece.name,
                "arguments": text,
                "status": status,
            }


def _id(prefix: str, reply: Reply, number: int) -> str:
    return f"{prefix}_{reply.label}_{number}"


def _message(reply: Reply, number: int, content: list[Json], status: str = "completed") -> Json:
    name = _id("msg", reply, number)
    return {"type": "message", "id": name, "role": "assistant", "status": status, "content": content}


def _part(piece: Reasoning | Text, text: str) -> Json:
    if isinstance(piece, Reasoning):
        return {"type": "summary_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": []}


def frames(reply: Reply) -> list[Frame]:
    """The answer as a stream."""
    return [_frame(number, event) for number, event in enumerate(_events(reply))]


def _frame(number: int, event: Json) -> Frame:
    return Frame(
        event["type"], dumped({**event, "sequence_number": number}), event["type"].endswith(".delta")
    )


def _events(reply: Reply) -> Iterator[Json]:
    begun = _response(reply, [], None)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for number, piece in enumerate(reply.answer.pieces):
        yield {
            "type": "response.output_item.added",
            "output_index": number,
            "item": _item(reply, number, piece, "in_progress"),
        }
        yield from _content(reply, number, piece)
        yield {
            "type": "response.output_item.done",
            "output_index": number,
            "item": _item(reply, number, piece, "completed"),
        }
    if reply.answer.refusal:
        yield from _refusal(reply, len(reply.answer.pieces))
    response = whole(reply)
    yield {"type": f"response.{response['status']}", "response": response}


def _content(reply: Reply, number: int, piece: Piece) -> Iterator[Json]:
    texts = split(piece.text, reply.answer.delta)
    match piece:
        case Reasoning():
            place = {"item_id": _id("rs", reply, number), "output_index": number, "summary_index": 0}
            kind = "response.reasoning_summary"
            yield {"type": f"{kind}_part.added", **place, "part": _part(piece, "")}
            for text in texts:
                yield {"type": f"{kind}_text.delta", **place, "delta": text}
            yield {"type": f"{kind}_text.done", **place, "text": piece.text}
            yield {"type": f"{kind}_part.done", **place, "part": _part(piece, piece.text)}
        case Text():
            place = {"item_id": _id("msg", reply, number), "output_index": number, "content_index": 0}
            yield {"type": "response.content_part.added", **place, "part": _part(piece, "")}
            for text in texts:
                yield {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}
            yield {"type": "response.output_text.done", **place, "text": piece.text, "logprobs": []}
            yield {"type": "response.content_part.done", **place, "part": _part(piece, piece.text)}
        case ToolCall():
            place = {"item_id": _id("fc", reply, number), "output_index": number}
            kind = "response.function_call_arguments"
            for text in texts:
                yield {"type": f"{kind}.delta", **place, "delta": text}
            yield {"type": f"{kind}.done", **place, "name": piece.name, "arguments": piece.text}


def _refusal(reply: Reply, number: int) -> Iterator[Json]:
    words = reply.answer.refusal
    place = {"item_id": _id("msg", reply, number), "output_index": number, "content_index": 0}
    yield {
        "type": "response.output_item.added",
        "output_index": number,
        "item": _message(reply, number, [], "in_progress"),
    }
    yield {"type": "response.content_part.added", **place, "part": {"type": "refusal", "refusal": ""}}
    for text in split(words, reply.answer.delta):
        yield {"type": "response.refusal.delta", **place, "delta": text}
    yield {"type": "response.refusal.done", **place, "refusal": words}
    yield {"type": "response.content_part.done", **place, "part": {"type": "refusal", "refusal": words}}
    item = _message(reply, number, [{"type": "refusal", "refusal": words}])
    yield {"type": "response.output_item.done", "output_index": number, "item": item}


def failure(reply: Reply, trouble: Trouble, number: int) -> Frame:
    """The event that ends a response that failed."""
    said = {"code": trouble.code or trouble.type, "message": trouble.message}
    response = {**_response(reply, [], None), "status": "failed", "error": said}
    return _frame(number, {"type": "response.failed", "response": response})


RESPONSES: Final = Dialect(
    name="responses",
    path="/v1/responses",
    count_path="/v1/responses/input_tokens",
    read=read,
    whole=whole,
    frames=frames,
    trouble=trouble,
    error=chat.error,
    failure=failure,
    objection=objection,
)
