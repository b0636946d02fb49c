"""`model: test`: a model that makes its answers up, from nothing but what it was asked.

It calls each tool once, with arguments that fit, and then answers: with a text, or with what the schema asks
for. The same question has the same answer in every process, and a question that differs by a letter another.
"""

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Final

from anyio.lowlevel import checkpoint
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.tools import ToolDefinition

from orchestra.agents.llm.offline.model import CallPiece, EndPiece, OfflineModel, Piece, Question, TextPiece
from orchestra.agents.llm.schemas import sample_value

_PROFILE: Final = ModelProfile(
    supports_tools=True, supports_json_schema_output=True, supports_inline_system_prompts=True
)
_SHOWN_WORDS: Final = 12
_TOKEN_CHARS: Final = 4
_PIECES: Final = re.compile(r"\s*\S{1,24}|\s+$")  # a text as a model would send it, word by word


class RehearsalModel(OfflineModel):
    """The model `test`."""

    def __init__(self, *, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__("test", settings=settings, profile=_PROFILE)

    async def answer(self, question: Question) -> AsyncGenerator[Piece]:
        """Call the tools that were not called yet, or say the end."""
        digest = digest_of(question)
        calls = list(_tool_calls(question, digest)) or list(_output_call(question, digest))
        text = "" if calls else _text(question, digest)
        for part in _PIECES.findall(text):
            await checkpoint()
            yield TextPiece(part)
        for call in calls:
            await checkpoint()
            yield CallPiece(call.call_id, call.tool, "")
            for part in _PIECES.findall(call.arguments):
                await checkpoint()
                yield CallPiece(call.call_id, call.tool, part)
        made = text + "".join(call.arguments for call in calls)
        yield EndPiece(
            tokens_in=_tokens("".join(turn.text for turn in question.turns)),
            tokens_out=_tokens(made),
            reason="tool_call" if calls else "stop",
        )


def digest_of(question: Question) -> str:
    """A short digest of everything an answer depends on: what was said, and what may be answered."""
    tools = [tool.name for tool in question.parameters.declared_function_tools]
    outputs = [tool.parameters_json_schema for tool in question.parameters.output_tools]
    said = [[turn.role, turn.tool, turn.text] for turn in question.turns]
    whole = [said, tools, outputs, question.answer_schema, question.settings.get("seed")]
    text = json.dumps(whole, sort_keys=True, default=str)  # escaped: no half characters in it
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _tool_calls(question: Question, digest: str) -> Iterator[CallPiece]:
    """A call of each tool that was never called in this conversation."""
    if question.settings.get("tool_choice") == "none":
        return
    known = {turn.tool for turn in question.turns if turn.role == "assistant"}
    for tool in question.parameters.declared_function_tools:
        if tool.name not in known:
            yield from _call(tool, digest, full=False)


def _output_call(question: Question, digest: str) -> Iterator[CallPiece]:
    """The call that hands in the answer, where answers are handed in so."""
    wanted = question.parameters.output_tools
    if wanted and not question.parameters.allow_text_output:
        yield from _call(wanted[0], digest, full=True)


def _call(tool: ToolDefinition, digest: str, *, full: bool) -> Iterator[CallPiece]:
    try:
        value = sample_value(tool.parameters_json_schema, f"{digest} {tool.name}", full=full)
    except ValueError:  # nothing finite fits: the tool cannot be called
        return
    yield CallPiece(f"test_{digest}_{tool.name}", tool.name, json.dumps(value))


def _text(question: Question, digest: str) -> str:
    schema = question.answer_schema
    if schema is not None:
        return json.dumps(sample_value(schema, digest), indent=1)
    asked = next((turn.text for turn in reversed(question.turns) if turn.role == "user"), "nothing")
    words = asked.split()
    shown = " ".join(words[:_SHOWN_WORDS]) + (" …" if len(words) > _SHOWN_WORDS else "")
    used = dict.fromkeys(turn.tool for turn in question.turns if turn.role == "tool")
    tools = f"\nTools used: {', '.join(used)}." if used else ""
    return f"Test answer {digest[:6]} to: {shown}{tools}"


def _tokens(text: str) -> int:
    return -(-len(text) // _TOKEN_CHARS)
