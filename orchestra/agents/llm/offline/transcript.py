"""A conversation as plain turns of text: what an offline model reads of pydantic-ai's messages."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import attrs
from pydantic_ai.messages import (
    BaseToolCallPart,
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters

_LEFT_OUT: Final = "(something that is no text)"


@attrs.frozen
class ChatTurn:
    """What one side said: a text, the call of a tool, or what a tool returned."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tool: str = ""  # that was called, or returned this


def turns_of(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> list[ChatTurn]:
    """The turns of a conversation, the instructions first."""
    turns = [ChatTurn("system", text) for text in _instructions(messages, parameters) if text]
    for message in messages:
        said = _said(message) if isinstance(message, ModelResponse) else _heard(message.parts)
        turns += [turn for turn in said if turn.text or turn.tool]
    return turns


def _instructions(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> list[str]:
    if parameters.instruction_parts is not None:
        return [part.content for part in parameters.instruction_parts]
    last = (each.instructions for each in reversed(messages) if not isinstance(each, ModelResponse))
    return [next((text for text in last if text), "")]


def _said(response: ModelResponse) -> Iterable[ChatTurn]:
    for part in response.parts:
        match part:
            case TextPart():
                yield ChatTurn("assistant", part.content)
            case BaseToolCallPart():
                yield ChatTurn("assistant", part.args_as_json_str(), part.tool_name)
            case _:
                pass  # thoughts, files and what other providers' models did by themselves


def _heard(parts: Sequence[Any]) -> Iterable[ChatTurn]:
    for part in parts:
        match part:
            case SystemPromptPart():
                yield ChatTurn("system", part.content)
            case UserPromptPart():
                yield ChatTurn("user", _user_text(part.content))
            case ToolReturnPart():
                yield ChatTurn("tool", part.model_response_str(), part.tool_name)
            case _:
                yield ChatTurn("user", _other_text(part))


def _user_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    pieces = (each if isinstance(each, str) else getattr(each, "content", None) for each in content)
    return "\n".join(each if isinstance(each, str) else _LEFT_OUT for each in pieces)


def _other_text(part: Any) -> str:
    """A part of a kind that is rarely met: what it says, if it says something."""
    respond = getattr(part, "model_response", None)
    if callable(respond):
        return str(respond())
    content = getattr(part, "content", "")
    return content if isinstance(content, str) else json.dumps(content, default=str)
