"""The digest of what is asked: the same for the same, another for anything else, and cheap at any length."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from orchestra.agents.llm import messages
from orchestra.agents.llm.messages import AskedDigest, token_count


def _conversation(steps: int) -> list[ModelMessage]:
    """A prompt, and so many answers, each with a call that was answered."""
    said: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content="Begin.")], instructions="Be kind.")
    ]
    for number in range(steps):
        call = ToolCallPart(tool_name="look", args={"at": number}, tool_call_id=f"call_{number}")
        found = ToolReturnPart(tool_name="look", content=f"found {number}", tool_call_id=f"call_{number}")
        said.append(ModelResponse(parts=[TextPart(content=f"I look at {number}."), call]))
        said.append(ModelRequest(parts=[found], instructions="Be kind."))
    return said


def test_the_same_is_asked_when_all_is_equal() -> None:
    said = _conversation(3)
    assert AskedDigest().of(said) == AskedDigest().of(deepcopy(said))


@pytest.mark.parametrize("at", range(7))
def test_a_change_anywhere_is_something_else(at: int) -> None:
    said, digest = _conversation(3), AskedDigest()
    before, tokens = digest.of(said), digest.tokens
    message: Any = said[at]
    first, *others = message.parts
    changed = replace(first, content="something else, and longer")
    said[at] = replace(message, parts=[changed, *others])
    after = digest.of(said)
    assert after not in (before, b"")
    assert after == AskedDigest().of(said)
    assert digest.tokens > tokens
    assert digest.tokens == token_count(said)


def test_other_instructions_are_something_else() -> None:
    said = _conversation(1)
    changed = [*said[:-1], ModelRequest(parts=said[-1].parts, instructions="Be short.")]  # type: ignore[arg-type]
    assert AskedDigest().of(said) != AskedDigest().of(changed)


def test_only_what_is_new_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the library makes the first and the last message anew for each request, as it does."""
    looked, asked = 0, messages._asked

    def count(message: ModelMessage) -> Any:
        nonlocal looked
        looked += 1
        return asked(message)

    monkeypatch.setattr(messages, "_asked", count)
    said, digest = _conversation(50), AskedDigest()
    for end in range(3, len(said) + 1, 2):
        digest.of([deepcopy(said[0]), *said[1 : end - 1], deepcopy(said[end - 1])])
    assert looked == len(said)
    assert digest.tokens == token_count(said)


def test_a_shorter_conversation_forgets_the_rest() -> None:
    said, digest = _conversation(4), AskedDigest()
    digest.of(said)
    tokens = digest.tokens
    assert digest.of(said[:3]) == AskedDigest().of(said[:3])
    assert digest.tokens < tokens
