"""Every fault of the provider, and what the model library makes of it: an exception, or a response.

The tables say what orchestra has to expect from the library. Faults within a stream come after the head of an
answer; a client that does not stream meets them as something else.
"""

from collections.abc import AsyncIterable
from typing import Any

import attrs
import httpx
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    IncompleteToolCall,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.settings import ModelSettings

from tests.llm.clients import DIALECTS, SETTINGS, ask, open_model
from tests.llm.provider import Ledger, serve_provider

pytestmark = pytest.mark.anyio
EITHER = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH = pytest.mark.parametrize("dialect", DIALECTS)
PROMPT: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Please add.")], instructions="You add.")]
TURN = {
    "reasoning": "A sum.",
    "text": "Let me add the numbers.",
    "calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}],
}


@attrs.frozen
class Refused:
    """An error status: the library's class for it, and what it tells of the provider's words."""

    kind: type[ModelAPIError]
    status: int
    code: str | None = None
    type: str | None = None


OPENAI = {
    "rate_limit": Refused(ModelRateLimitError, 429, "rate_limit_exceeded", "requests"),
    "quota": Refused(ModelQuotaExceededError, 429, "insufficient_quota", "insufficient_quota"),
    "server_error": Refused(ModelServerError, 500, None, "server_error"),
    "bad_gateway": Refused(ModelServerError, 502),
    "unavailable": Refused(ModelUnavailableError, 503, None, "server_error"),
    "overloaded": Refused(ModelOverloadedError, 503, "server_is_overloaded", "service_unavailable_error"),
    "bad_key": Refused(ModelAuthenticationError, 401, "invalid_api_key", "invalid_request_error"),
    "no_model": Refused(ModelNotFoundError, 404, "model_not_found", "invalid_request_error"),
    "context_length": Refused(
        ModelContextWindowExceededError, 400, "context_length_exceeded", "invalid_request_error"
    ),
}
ANTHROPIC = {
    "rate_limit": Refused(ModelRateLimitError, 429, None, "rate_limit_error"),
    "quota": Refused(ModelQuotaExceededError, 400, None, "invalid_request_error"),
    "server_error": Refused(ModelServerError, 500, None, "api_error"),
    "bad_gateway": Refused(ModelServerError, 502),
    "unavailable": Refused(ModelUnavailableError, 503, None, "api_error"),
    "overloaded": Refused(ModelOverloadedError, 529, None, "overloaded_error"),
    "bad_key": Refused(ModelAuthenticationError, 401, None, "authentication_error"),
    "no_model": Refused(ModelNotFoundError, 404, None, "not_found_error"),
    "context_length": Refused(ModelContextWindowExceededError, 400, None, "invalid_request_error"),
}
REFUSALS = {"chat": OPENAI, "responses": OPENAI, "messages": ANTHROPIC}


class Verdict(BaseModel):
    """A structured answer."""

    score: int
    reason: str


async def asked(dialect: str, fault: dict[str, Any], *, stream: bool) -> tuple[Any, Ledger]:
    """What becomes of a request that meets a fault: its response or its exception, and the ledger."""
    async with serve_provider([{**TURN, "faults": [fault]}]) as provider:
        async with open_model(dialect, provider.url(dialect)) as model:
            try:
                found: Any = await ask(model, PROMPT, stream=stream)
            except Exception as error:
                found = error
            again = await ask(model, PROMPT, stream=stream)
        ledger = await provider.settle()
    assert again.text == TURN["text"], "a fault comes once"
    assert [each["fault"] for each in ledger.begun()] == [fault["kind"], None]
    assert ledger.ended()[1]["completed"]
    return found, ledger


@pytest.mark.parametrize("kind", OPENAI)
@EITHER
@EACH
async def test_refusals(dialect: str, stream: bool, kind: str) -> None:
    expected = REFUSALS[dialect][kind]
    error, ledger = await asked(dialect, {"kind": kind}, stream=stream)
    assert isinstance(error, ModelHTTPError)
    assert isinstance(error, expected.kind)
    assert type(error).__name__ == expected.kind.__name__
    found = (error.status_code, error.provider_error_code, error.provider_error_type)
    assert found == (expected.status, expected.code, expected.type)
    assert (error.retry_after, error.in_stream) == (None, False)
    ended = ledger.ended()[0]
    assert (ended["status"], ended["sent"], ended["completed"]) == (expected.status, True, False)
    assert ended["usage"] is None


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ({"retry_after": 2}, 2.0),
        ({"retry_after": 0.25}, None),  # the library reads whole seconds only; the header is there to read
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry_after_ms": 1500}, 1.5),
        ({"retry_after": 9, "retry_after_ms": 1500}, 1.5),
    ],
)
@EITHER
@EACH
async def test_when_to_come_back(
    dialect: str, stream: bool, told: dict[str, Any], seconds: float | None
) -> None:
    error, _ = await asked(dialect, {"kind": "rate_limit", **told}, stream=stream)
    assert isinstance(error, ModelRateLimitError)
    assert isinstance(error, ModelHTTPError)
    assert error.retry_after == seconds
    assert {name.replace("-", "_") for name in error.headers or ()} >= told.keys()


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 529])
@EACH
async def test_any_status_of_a_server_in_trouble(dialect: str, status: int) -> None:
    error, _ = await asked(dialect, {"kind": "unavailable", "status": status}, stream=True)
    assert isinstance(error, ModelServerError | ModelUnavailableError)
    assert isinstance(error, ModelHTTPError)
    assert error.status_code == status


@pytest.mark.parametrize("after", [None, 0, 1, 3, 99])
@EITHER
@EACH
async def test_a_connection_that_is_dropped(dialect: str, stream: bool, after: int | None) -> None:
    error, ledger = await asked(dialect, {"kind": "drop", "after": after}, stream=stream)
    assert type(error) is ModelConnectionError
    assert (error.phase, error.in_stream, error.retry_after) == ("read", False, None)
    ended = ledger.ended()[0]
    assert (ended["sent"], ended["completed"]) == (False, False)
    assert ended["deltas"] == (min(after, 6) if after and stream else 0)


@EITHER
@EACH
async def test_half_an_event(dialect: str, stream: bool) -> None:
    error, _ = await asked(dialect, {"kind": "malformed", "after": 2}, stream=stream)
    assert type(error) is ModelAPIError
    assert error.message.startswith("Failed to decode response as JSON")
    assert not error.in_stream


@pytest.mark.parametrize("kind", ["overloaded", "rate_limit", "server_error"])
@EITHER
@EACH
async def test_an_error_within_the_stream(dialect: str, stream: bool, kind: str) -> None:
    """It has the status that the same error has before a stream."""
    fault = {"kind": "stream_error", "after": 2, "error": kind}
    error, _ = await asked(dialect, fault, stream=stream)
    assert isinstance(error, REFUSALS[dialect][kind].kind)
    assert isinstance(error, ModelHTTPError)
    assert (error.status_code, error.in_stream) == (REFUSALS[dialect][kind].status, stream)


@EACH
async def test_a_body_that_ends_too_early_in_one_piece(dialect: str) -> None:
    error, _ = await asked(dialect, {"kind": "cut"}, stream=False)
    assert type(error) is ModelAPIError
    assert error.message.startswith("Failed to decode response as JSON")


@pytest.mark.parametrize("after", [2, 99])
@EACH
async def test_a_stream_that_ends_too_early_is_taken_for_whole(dialect: str, after: int) -> None:
    """The trap: nothing is raised. Only the finish reason, the state or the usage give it away."""
    response, ledger = await asked(dialect, {"kind": "cut", "after": after}, stream=True)
    assert isinstance(response, ModelResponse)
    reason = (response.provider_details or {}).get("finish_reason")
    signs = (response.finish_reason, reason, response.state, response.usage.unmeasured_requests)
    expected = {
        "chat": ("stop", None, "complete", 1),
        "responses": (None, None, "incomplete", 1),
        "messages": (None, None, "complete", 0),
    }
    assert signs == expected[dialect]
    assert len(response.parts) == (3 if after == 99 else 2)
    assert not ledger.ended()[0]["completed"]


ENDS: dict[str, dict[str, str | None]] = {
    "truncated": {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"},
    "length": {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens"},
    "content_filter": {"chat": "content_filter", "responses": "content_filter", "messages": "refusal"},
    "refusal": {"chat": None, "responses": None, "messages": "refusal"},
    "empty": {"chat": "stop", "responses": "completed", "messages": "end_turn"},
}
FINISHES = {
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "empty": "stop",
}


@pytest.mark.parametrize("kind", ENDS)
@EITHER
@EACH
async def test_answers_that_are_whole_and_no_good(dialect: str, stream: bool, kind: str) -> None:
    response, ledger = await asked(dialect, {"kind": kind}, stream=stream)
    assert isinstance(response, ModelResponse)
    calls = {"chat": "tool_call", "responses": "stop", "messages": "tool_call"}
    assert response.finish_reason == (calls[dialect] if kind == "truncated" else FINISHES[kind])
    details = response.provider_details or {}
    assert details.get("finish_reason") == ENDS[kind][dialect]
    assert details.get("refusal") == ("I cannot help with that." if kind == "refusal" else None)
    ended = ledger.ended()[0]
    assert ended["completed"]
    assert (ended["usage"]["input"], ended["usage"]["output"]) == (
        response.usage.input_tokens,
        response.usage.output_tokens,
    )
    if kind not in ("truncated", "length"):
        assert response.parts == []
        return
    call = response.parts[-1]
    assert isinstance(call, ToolCallPart)
    lost = dialect == "messages" and not stream  # its arguments are an object, which cannot be half
    assert call.args == ({} if lost else '{"a":1,')


async def run(dialect: str, script: list[Any], *, stream: bool, output: Any = str) -> tuple[Any, Ledger]:
    """What becomes of an agent's run: its result or its exception, and the ledger."""

    async def listen(_context: Any, events: AsyncIterable[Any]) -> None:
        async for _ in events:
            pass

    async with serve_provider(script) as provider, open_model(dialect, provider.url(dialect)) as model:
        agent: Agent[None, Any] = Agent(
            model, instructions="You add.", model_settings=SETTINGS, output_type=output
        )

        @agent.tool_plain
        async def add(a: int, b: int) -> int:
            return a + b

        handler = listen if stream else None
        try:
            result: Any = (await agent.run("Please add.", event_stream_handler=handler)).output
        except AgentRunError as error:
            result = error
        return result, provider.ledger


@pytest.mark.parametrize("kind", ["content_filter", "refusal"])
@EITHER
@EACH
async def test_an_agent_stops_at_a_content_filter(dialect: str, stream: bool, kind: str) -> None:
    error, ledger = await run(dialect, [{"text": "x", "faults": [{"kind": kind}]}], stream=stream)
    assert isinstance(error, ContentFilterError)
    assert isinstance(error, UnexpectedModelBehavior)
    assert len(ledger.begun()) == 1


@EITHER
@EACH
async def test_an_agent_asks_again_after_an_empty_answer(dialect: str, stream: bool) -> None:
    """The empty turn leaves no trace in the request: the same step is asked, and paid, a second time."""
    result, ledger = await run(dialect, [{"text": "Three.", "faults": [{"kind": "empty"}]}], stream=stream)
    assert result == "Three."
    assert [(each["step"], each["ask"]) for each in ledger.completed()] == [(0, 0), (0, 1)]
    always = [{"text": "Three.", "faults": [{"kind": "empty", "times": None}]}]
    error, ledger = await run(dialect, always, stream=stream)
    assert type(error) is UnexpectedModelBehavior
    assert len(ledger.completed()) == 2


@EACH
async def test_an_agent_whose_call_is_cut_by_the_token_limit(dialect: str) -> None:
    """The model may repair it; only when the retries are used up it is an error of its own."""
    cut = {**TURN, "faults": [{"kind": "length"}]}
    result, _ = await run(dialect, [cut, TURN, {"text": "Three."}], stream=True)
    assert result == "Three."
    error, ledger = await run(dialect, [cut, cut], stream=True)
    assert isinstance(error, IncompleteToolCall)
    assert isinstance(error, UnexpectedModelBehavior)
    assert len(ledger.completed()) == 2


@EACH
async def test_an_agent_lets_the_model_repair_truncated_arguments(dialect: str) -> None:
    script = [{**TURN, "faults": [{"kind": "truncated"}]}, TURN, {"text": "Three."}]
    result, ledger = await run(dialect, script, stream=True)
    assert result == "Three."
    assert [each["step"] for each in ledger.completed()] == [0, 1, 2]


@EITHER
@EACH
async def test_an_agent_lets_the_model_repair_a_truncated_answer(dialect: str, stream: bool) -> None:
    answer = {"output": {"score": 7, "reason": "sound"}}
    script = [{**answer, "faults": [{"kind": "truncated"}]}, answer]
    result, ledger = await run(dialect, script, stream=stream, output=NativeOutput(Verdict))
    assert result == Verdict(score=7, reason="sound")
    assert len(ledger.completed()) == 2


@EITHER
@EACH
async def test_a_model_that_keeps_a_client_waiting(dialect: str, stream: bool) -> None:
    script = [{"text": "Late.", "gates": [{"name": "never"}]}]
    impatient = ModelSettings(max_tokens=1000, timeout=httpx.Timeout(60, read=0.1))
    async with serve_provider(script) as provider, open_model(dialect, provider.url(dialect)) as model:
        with pytest.raises(ModelTimeoutError) as caught:
            await ask(model, PROMPT, stream=stream, settings=impatient)
        (ended,) = (await provider.settle()).ended()
    assert caught.value.phase == "read"
    assert not ended["completed"]


@EACH
async def test_nobody_is_there(dialect: str) -> None:
    async with serve_provider([TURN]) as provider:
        url = provider.url(dialect)
    async with open_model(dialect, url) as model:
        with pytest.raises(ModelConnectionError) as caught:
            await ask(model, PROMPT, stream=True)
    assert caught.value.phase == "connect"
