"""The test model: the same answer to the same question, tools once, and always what the schema asks for."""

import json
import subprocess
import sys
from typing import Any

import anyio
import pytest
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, StructuredDict, ToolOutput
from pydantic_ai.messages import ModelResponse, ToolCallPart
from typing_extensions import TypedDict

from orchestra.agents.llm.models import open_model

SCHEMA = {
    "type": "object",
    "properties": {
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "reasons": {"type": "array", "items": {"type": "string"}, "minItems": 2},
    },
    "required": ["score", "reasons"],
}


async def _ask(prompt: str, **more: Any) -> str:
    agent: Agent[None, str] = Agent(open_model("test"), **more)
    return (await agent.run(prompt)).output


@pytest.mark.anyio
async def test_the_same_question_has_the_same_answer() -> None:
    first = await _ask("What is it?", instructions="Be kind.")
    assert first == await _ask("What is it?", instructions="Be kind.")
    assert first.endswith("to: What is it?")
    assert first != await _ask("What is it?", instructions="Be kind!")
    assert first != await _ask("What was it?", instructions="Be kind.")


def test_and_in_every_process() -> None:
    code = (
        "import anyio\nfrom pydantic_ai import Agent\nfrom orchestra.agents.llm.models import open_model\n"
        "print(anyio.run(Agent(open_model('test')).run, 'Hello').output)"
    )
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert run.stdout.decode().strip() == anyio.run(_ask, "Hello")


@pytest.mark.anyio
async def test_samples_differ_by_seed() -> None:
    agent: Agent[None, str] = Agent(open_model("test"))
    said = {(await agent.run("x", model_settings={"seed": seed})).output for seed in range(5)}
    assert len(said) == 5


@pytest.mark.anyio
async def test_every_tool_is_called_once_with_arguments_that_fit() -> None:
    called: list[tuple[Any, ...]] = []

    def search(query: str, limit: int = 3) -> str:
        called.append(("search", type(query), limit))
        return "found"

    async def fetch(addresses: list[str], depth: int) -> str:
        called.append(("fetch", type(addresses), type(depth)))
        return "fetched"

    agent: Agent[None, str] = Agent(open_model("test"), tools=[search, fetch])
    result = await agent.run("Do it")
    assert sorted(called) == [("fetch", list, int), ("search", str, 3)]
    assert result.output.endswith("Tools used: search, fetch.")
    calls = [
        part
        for message in result.all_messages()
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    again = await agent.run("Do it")
    assert [(part.tool_call_id, part.args) for part in calls] == [
        (part.tool_call_id, part.args)
        for message in again.all_messages()
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    await agent.run("And more", message_history=result.all_messages())
    assert len(called) == 4  # twice by two runs, and not in a conversation that has them


@pytest.mark.anyio
async def test_tools_can_be_forbidden() -> None:
    def broken() -> str:
        raise AssertionError

    agent: Agent[None, str] = Agent(open_model("test"), tools=[broken])
    assert (await agent.run("x", model_settings={"tool_choice": "none"})).output.startswith("Test answer")


@pytest.mark.anyio
async def test_a_tool_that_asks_for_another_try_is_left_alone() -> None:
    def picky(word: str) -> str:
        raise ModelRetry("not that one")

    agent: Agent[None, str] = Agent(open_model("test"), tools=[picky])
    assert "Tools used: picky." in (await agent.run("x")).output


@pytest.mark.anyio
@pytest.mark.parametrize("way", [lambda each: each, NativeOutput, PromptedOutput, ToolOutput])
async def test_answers_fit_the_schema(way: Any) -> None:
    def search(query: str) -> str:
        return query

    agent: Agent[None, Any] = Agent(
        open_model("test"), output_type=way(StructuredDict(SCHEMA)), tools=[search]
    )
    result = await agent.run("Judge it")
    assert 0.75 <= result.output["score"] <= 1
    assert len(result.output["reasons"]) == 2
    assert result.output == (await agent.run("Judge it")).output
    assert result.usage.tool_calls == 1


@pytest.mark.anyio
async def test_a_refused_answer_is_followed_by_another() -> None:
    agent: Agent[None, Any] = Agent(
        open_model("test"), output_type=ToolOutput(StructuredDict(SCHEMA)), retries={"output": 3}
    )
    seen: list[str] = []

    @agent.output_validator
    def validate(output: Any) -> Any:
        seen.append(json.dumps(output))
        if len(seen) < 3:
            raise ModelRetry("another")
        return output

    await agent.run("Judge it")
    assert len(set(seen)) == 3


class Endless(TypedDict):
    below: "Endless"


@pytest.mark.anyio
async def test_a_tool_whose_arguments_have_no_end_is_not_called() -> None:
    def endless(tree: Endless) -> str:
        raise AssertionError

    agent: Agent[None, str] = Agent(open_model("test"), tools=[endless])
    assert (await agent.run("x")).output.startswith("Test answer")


@pytest.mark.anyio
async def test_answers_are_streamed() -> None:
    agent: Agent[None, str] = Agent(open_model("test"))
    async with agent.run_stream("one two three four") as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert len(pieces) > 5
    assert "".join(pieces) == await _ask("one two three four")
    assert stream.usage == (await agent.run("one two three four")).usage
    assert stream.usage.output_tokens > 0


@pytest.mark.anyio
async def test_a_stream_can_be_cancelled() -> None:
    agent: Agent[None, str] = Agent(open_model("test"))
    async with agent.run_stream("one two three four") as stream:
        async for _ in stream.stream_text(delta=True, debounce_by=None):
            await stream.cancel()
    response = stream.response
    assert response.state == "interrupted"
    assert len(response.text or "") < len(await _ask("one two three four"))
