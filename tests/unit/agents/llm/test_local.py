"""The local model is a real one: what it says is asserted by shape alone.

Without the packages of the extra `local` these tests are skipped.
"""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import pytest
from pydantic_ai import Agent, NativeOutput, StructuredDict, ToolOutput
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from orchestra.agents.llm.models import missing_extra, open_model
from orchestra.agents.llm.offline.local import chat_messages, choices
from orchestra.agents.llm.offline.model import Question
from orchestra.agents.llm.offline.transcript import ChatTurn
from orchestra.errors import BadModel
from tests.unit.agents.llm.test_schemas import FITTING

real = pytest.mark.skipif(missing_extra("local") is not None, reason=f"needs {missing_extra('local')}")

SCHEMA = {
    "type": "object",
    "properties": {
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "reason": {"type": "string", "maxLength": 20},
        "kind": {"enum": ["good", "bad"]},
    },
    "required": ["score", "reason", "kind"],
}


def _agent(**more: Any) -> Agent[None, Any]:
    return Agent(open_model("local", settings={"max_tokens": 200}), **more)


def search(query: str) -> str:
    """Look something up."""
    return "The sky is blue."


def note(text: str, stars: int) -> str:
    """Write something down."""
    return "noted"


# --- what it is told, and may do --------------------------------------------------------------------------


def test_a_conversation_as_templates_know_it() -> None:
    turns = [
        ChatTurn("system", "Be kind."),
        ChatTurn("user", "Find it."),
        ChatTurn("assistant", "I will."),
        ChatTurn("assistant", '{"query": "it"}', "search"),
        ChatTurn("tool", "found", "search"),
        ChatTurn("system", "Be brief."),
        ChatTurn("user", "And now?"),
    ]
    assert chat_messages(turns) == [
        {"role": "system", "content": "Be kind.\n\nBe brief."},
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": 'I will.\n\nsearch({"query": "it"})'},
        {"role": "user", "content": "The tool search returned: found\n\nAnd now?"},
    ]
    assert chat_messages([]) == [{"role": "user", "content": "Begin."}]
    assert chat_messages(turns[:1])[-1]["role"] == "user"


@pytest.mark.parametrize(
    ("called", "wanted", "names", "may_answer"),
    [
        ([], None, {"a", "b"}, False),
        (["a"], None, {"b"}, True),
        (["a", "b"], None, set(), True),
        (["a"], "required", {"b"}, False),
        (["a", "b"], "required", set(), True),
        ([], "none", set(), True),
        ([], ["b"], {"b"}, False),
        ([], ["c"], {"a", "b"}, False),
    ],
)
def test_tools_come_first_and_once(called: list[str], wanted: Any, names: set[str], may_answer: bool) -> None:
    turns = [ChatTurn("user", "x"), *(ChatTurn("assistant", "{}", name) for name in called)]
    parameters = ModelRequestParameters(function_tools=[ToolDefinition(name="a"), ToolDefinition(name="b")])
    tools, may = choices(Question(turns, parameters, {"tool_choice": wanted}))
    assert (set(tools), may) == (names, may_answer)


def test_a_new_prompt_may_call_them_again() -> None:
    turns = [ChatTurn("user", "x"), ChatTurn("assistant", "{}", "a"), ChatTurn("user", "y")]
    question = Question(turns, ModelRequestParameters(function_tools=[ToolDefinition(name="a")]), {})
    assert set(choices(question)[0]) == {"a"}


# --- the model itself -------------------------------------------------------------------------------------


@real
@pytest.mark.anyio
async def test_text() -> None:
    result = await _agent(instructions="You are brief.").run(
        "What is the sky?", model_settings={"max_tokens": 20}
    )
    assert result.output.strip()
    assert 0 < result.usage.output_tokens <= 20
    assert result.usage.input_tokens > 10
    assert result.response.finish_reason in ("stop", "length")


@real
@pytest.mark.anyio
async def test_text_is_streamed() -> None:
    async with _agent().run_stream("Count to ten.", model_settings={"max_tokens": 20}) as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert len(pieces) > 5
    assert stream.usage.output_tokens > 0


@real
@pytest.mark.anyio
@pytest.mark.parametrize("way", [lambda each: each, NativeOutput, ToolOutput])
@pytest.mark.parametrize("tools", [[], [search]])
async def test_answers_fit_the_schema(way: Any, tools: list[Any]) -> None:
    result = await _agent(output_type=way(StructuredDict(SCHEMA)), tools=tools).run("Judge the weather.")
    jsonschema_rs.Draft202012Validator(SCHEMA).validate(result.output)
    assert result.usage.tool_calls == len(tools)


@real
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("schema", FITTING, ids=range(len(FITTING)))
async def test_every_schema_can_be_followed(schema: dict[str, Any]) -> None:
    result = await _agent(output_type=NativeOutput(StructuredDict(schema))).run("Give an example.")
    if "uniqueItems" not in str(schema):  # grammars cannot tell what was there already
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(result.output)


@real
@pytest.mark.anyio
async def test_tools_are_called() -> None:
    result = await _agent(tools=[search, note]).run("Find out about the sky and note it.")
    assert 1 <= result.usage.tool_calls <= 2
    assert isinstance(result.output, str)
    assert 2 <= result.usage.requests <= 3


@real
@pytest.mark.anyio
async def test_a_cancelled_answer_stops_and_the_next_one_comes() -> None:
    agent = _agent()
    async with agent.run_stream("Tell a very long story.", model_settings={"max_tokens": 4000}) as stream:
        async for _ in stream.stream_text(delta=True, debounce_by=None):
            await stream.cancel()
    assert stream.response.state == "interrupted"
    await _end_of_work()
    assert (await agent.run("Hello.", model_settings={"max_tokens": 5})).output


@real
@pytest.mark.anyio
async def test_a_cancelled_task_stops_the_model() -> None:
    agent = _agent()
    with anyio.CancelScope() as scope:
        async with agent.run_stream("Tell a very long story.", model_settings={"max_tokens": 4000}) as stream:
            async for _ in stream.stream_text(delta=True, debounce_by=None):
                scope.cancel()
    assert scope.cancelled_caught
    await _end_of_work()


async def _end_of_work() -> None:
    """Wait until no thread asks the model any more."""
    for thread in threading.enumerate():
        if thread.name == "local-model":
            await anyio.to_thread.run_sync(thread.join)


@real
@pytest.mark.anyio
async def test_several_agents_take_turns() -> None:
    said: list[str] = []

    async def ask(prompt: str) -> None:
        said.append((await _agent().run(prompt, model_settings={"max_tokens": 5})).output)

    async with anyio.create_task_group() as group:
        for prompt in ("One.", "Two.", "Three."):
            group.start_soon(ask, prompt)
    assert len(said) == 3


@real
@pytest.mark.anyio
async def test_a_conversation_that_is_too_long() -> None:
    with pytest.raises(ModelContextWindowExceededError) as caught:
        await _agent().run("word " * 10_000)
    assert isinstance(caught.value, ModelHTTPError)
    assert caught.value.status_code == 400


@real
@pytest.mark.anyio
async def test_weights_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "junk.gguf"
    file.write_bytes(b"GGUF" + b"junk" * 100)
    agent: Agent[None, str] = Agent(open_model(f"local:{file}"))
    with pytest.raises(BadModel, match=r"junk\.gguf cannot be loaded"):
        await agent.run("Hello.")


@real
def test_a_process_may_end_in_the_middle() -> None:
    code = (
        "import anyio\nfrom pydantic_ai import Agent\nfrom orchestra.agents.llm.models import open_model\n"
        "async def main():\n"
        "    settings = {'max_tokens': 4000}\n"
        "    agent = Agent(open_model('local'))\n"
        "    async with agent.run_stream('A story.', model_settings=settings) as stream:\n"
        "        async for _ in stream.stream_text(delta=True, debounce_by=None):\n"
        "            raise SystemExit(7)\n"
        "anyio.run(main)"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert run.returncode == 7, run.stderr
