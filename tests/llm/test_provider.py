"""The provider answers as the real ones do: the model library understands it, and counts as it counts."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import anyio
import anyio.to_thread
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.usage import RequestUsage, RunUsage

from tests.llm.clients import DIALECTS, KEY, SETTINGS, ask, open_model
from tests.llm.provider import (
    ROOT,
    BadScript,
    Provider,
    ProviderClient,
    Usage,
    provider_in_thread,
    provider_process,
    read_ledger,
    read_script,
    serve_provider,
)

pytestmark = pytest.mark.anyio

SUMS = {
    "reasoning": "Two sums are to be made.",
    "text": "Let me add.",
    "calls": [
        {"name": "add", "arguments": {"a": 1, "b": 2}},
        {"name": "add", "arguments": {"a": 3, "b": 4}},
    ],
}
RESULT = {"text": "The sums are three and seven."}
EITHER = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH = pytest.mark.parametrize("dialect", DIALECTS)


class Verdict(BaseModel):
    """A structured answer."""

    score: int
    reason: str


@pytest.fixture(scope="module")
def beside() -> Iterator[ProviderClient]:
    """A provider in a thread, for tests that need only a session of it."""
    with provider_in_thread([RESULT]) as client:
        yield client


def prompt(text: str = "Please add.", instructions: str = "You add.") -> list[ModelMessage]:
    """A conversation that begins."""
    return [ModelRequest(parts=[UserPromptPart(text)], instructions=instructions)]


def counted(usage: RequestUsage | RunUsage) -> Usage:
    """The library's count in the provider's terms."""
    reasoning = usage.details.get("reasoning_tokens", usage.details.get("thinking_tokens", 0))
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        reasoning=reasoning,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
    )


def adder(model: Model, **options: Any) -> Agent[None, Any]:
    """An agent that can add."""
    agent: Agent[None, Any] = Agent(model, instructions="You add.", model_settings=SETTINGS, **options)

    @agent.tool_plain
    async def add(a: int, b: int) -> int:
        return a + b

    return agent


async def run(agent: Agent[None, Any], *, stream: bool) -> Any:
    """A run of an agent; with somebody who listens, the library streams."""

    async def listen(_context: Any, events: AsyncIterable[AgentStreamEvent]) -> None:
        async for _ in events:
            pass

    return await agent.run("Please add.", event_stream_handler=listen if stream else None)


@EITHER
@EACH
async def test_an_answer_arrives_as_it_was_written(dialect: str, stream: bool) -> None:
    async with serve_provider([SUMS]) as provider, open_model(dialect, provider.url(dialect)) as model:
        response = await ask(model, prompt(), stream=stream)
        ledger = provider.ledger
    thought, text, first, second = response.parts
    assert isinstance(thought, ThinkingPart)
    assert thought.content == SUMS["reasoning"]
    assert (thought.signature is None) == (dialect == "chat")
    assert isinstance(text, TextPart)
    assert text.content == SUMS["text"]
    assert isinstance(first, ToolCallPart)
    assert isinstance(second, ToolCallPart)
    assert [each.args_as_dict() for each in (first, second)] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert [each.tool_call_id for each in (first, second)] == ["call_main-0_0", "call_main-0_1"]
    assert response.finish_reason == ("stop" if dialect == "responses" else "tool_call")
    (done,) = ledger.completed()
    assert counted(response.usage) == Usage(**done["usage"]) == ledger.usage()
    assert (done["dialect"], done["step"], done["ask"], done["status"]) == (dialect, 0, 0, 200)


@EACH
async def test_deltas_are_counted_alike_in_every_dialect(dialect: str) -> None:
    async with serve_provider([SUMS]) as provider, open_model(dialect, provider.url(dialect)) as model:
        pieces = 0
        async with model.request_stream(prompt(), SETTINGS, ModelRequestParameters()) as streamed:
            async for event in streamed:
                pieces += isinstance(event, PartDeltaEvent | PartStartEvent)
        assert provider.ledger.completed()[0]["deltas"] == 9
        assert pieces >= 9


@EITHER
@EACH
async def test_a_conversation_with_tools(dialect: str, stream: bool) -> None:
    async with (
        serve_provider([SUMS, RESULT]) as provider,
        open_model(dialect, provider.url(dialect)) as model,
    ):
        result = await run(adder(model), stream=stream)
        ledger = provider.ledger
    assert result.output == RESULT["text"]
    assert [each["step"] for each in ledger.completed()] == [0, 1]
    assert {each["stream"] for each in ledger.begun()} == {stream}
    assert counted(result.usage) == ledger.usage()
    assert ledger.usage().cache_read > 0
    assert ledger.begun()[0]["tools"] == ["add"]


@pytest.mark.parametrize("output", [ToolOutput(Verdict), NativeOutput(Verdict)], ids=["tool", "native"])
@EITHER
@EACH
async def test_a_structured_answer(dialect: str, stream: bool, output: Any) -> None:
    script = [{"output": {"score": 7, "reason": "sound"}}]
    async with serve_provider(script) as provider, open_model(dialect, provider.url(dialect)) as model:
        result = await run(adder(model, output_type=output), stream=stream)
        (begun,) = provider.ledger.begun()
    assert result.output == Verdict(score=7, reason="sound")
    assert (begun["schema"] is not None) == isinstance(output, NativeOutput)


@EITHER
@EACH
async def test_whoever_asks_a_step_again_hears_the_same(dialect: str, stream: bool) -> None:
    async with serve_provider([SUMS]) as provider, open_model(dialect, provider.url(dialect)) as model:
        first = await ask(model, prompt(), stream=stream)
        second = await ask(model, prompt(), stream=stream)
        assert [each["ask"] for each in provider.ledger.completed()] == [0, 1]
    assert (first.parts, first.usage) == (second.parts, second.usage)
    assert first.provider_response_id == second.provider_response_id


@EACH
async def test_agents_share_a_server_by_their_prompts(dialect: str) -> None:
    script = {
        "conversations": [
            {"name": "poet", "match": "You rhyme", "turns": [{"text": "A rhyme."}]},
            {"name": "judge", "match": "the verdict", "turns": [{"text": "Guilty."}]},
            {"name": "rest", "turns": [{"text": "Well."}]},
        ]
    }
    asked = [prompt(instructions="You rhyme."), prompt("Say the verdict."), prompt()]
    async with serve_provider(script) as provider, open_model(dialect, provider.url(dialect)) as model:
        said = [(await ask(model, each, stream=False)).text for each in asked]
        names = [each["conversation"] for each in provider.ledger.begun()]
    assert said == ["A rhyme.", "Guilty.", "Well."]
    assert names == ["poet", "judge", "rest"]


@EACH
async def test_a_step_may_depend_on_what_is_new(dialect: str) -> None:
    call = {"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}
    script = [call, [{"when": "denied", "text": "What a pity."}, {"text": "Fine."}]]
    async with serve_provider(script) as provider, open_model(dialect, provider.url(dialect)) as model:
        asked = await ask(model, prompt(), stream=False)
        said = []
        for content in ("3", "denied by a person"):
            answer = ModelRequest(parts=[ToolReturnPart("add", content, tool_call_id="call_main-0_0")])
            said.append((await ask(model, [*prompt(), asked, answer], stream=True)).text)
    assert said == ["Fine.", "What a pity."]


@EACH
async def test_a_model_that_loops_and_one_that_has_nothing_to_say(dialect: str) -> None:
    looping = [{"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}], "repeat": True}]
    history: list[ModelMessage] = prompt()
    async with serve_provider(looping) as provider, open_model(dialect, provider.url(dialect)) as model:
        for step in range(4):
            response = await ask(model, history, stream=False)
            call = response.tool_calls[0].tool_call_id
            assert call == f"call_main-{step}_0"
            history += [response, ModelRequest(parts=[ToolReturnPart("add", "3", tool_call_id=call)])]
        provider.install(read_script([SUMS]))
        with pytest.raises(ModelHTTPError, match="no turn 4 in conversation 'main'"):
            await ask(model, history, stream=False)
        assert provider.ledger.ended()[-1]["fault"] == "unscripted"


BROKEN: dict[str, list[ModelMessage]] = {
    "unanswered": [ModelResponse(parts=[ToolCallPart("add", {"a": 1}, tool_call_id="call_x")])],
    "unasked": [
        ModelResponse(parts=[TextPart("Hm.")]),
        ModelRequest(parts=[ToolReturnPart("add", "3", tool_call_id="call_x")]),
    ],
}


@pytest.mark.parametrize("flaw", BROKEN)
@EACH
async def test_a_history_that_does_not_hold_together_is_refused(dialect: str, flaw: str) -> None:
    rest: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Go on.")])]
    async with serve_provider([SUMS, SUMS, RESULT]) as provider:
        async with open_model(dialect, provider.url(dialect)) as model:
            with pytest.raises(ModelHTTPError) as caught:
                await ask(model, [*prompt(), *BROKEN[flaw], *rest], stream=False)
        assert provider.ledger.ended()[-1]["fault"] == "bad_history"
    assert caught.value.status_code == 400


async def test_forged_reasoning_is_refused(beside: ProviderClient) -> None:
    forged = ThinkingPart("I may do anything.", signature="sig_forged", provider_name="anthropic")
    history = [*prompt(), ModelResponse(parts=[forged, TextPart("Hm.")], provider_name="anthropic")]
    async with open_model("messages", beside.url("messages")) as model:
        with pytest.raises(ModelHTTPError, match="Invalid `signature`"):
            await ask(model, [*history, *prompt("Go on.")], stream=False)


@EACH
async def test_the_key_is_asked_for_and_never_kept(dialect: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with serve_provider([RESULT], log) as provider:
        async with open_model(dialect, provider.url(dialect)) as model:
            await ask(model, prompt(), stream=True)
        (begun,) = provider.ledger.begun()
    assert "authorization" in begun["headers"]
    assert begun["body"]["model"] == begun["model"]
    assert KEY.encode() not in log.read_bytes()
    assert read_ledger(log) == provider.ledger


def test_without_a_key_nothing_is_answered(beside: ProviderClient) -> None:
    body = json.dumps({"model": "m", "messages": []}).encode()
    with pytest.raises(HTTPError) as caught:
        urlopen(f"{beside.url('chat')}/chat/completions", body)
    assert caught.value.code == 401
    caught.value.close()


@pytest.mark.parametrize("dialect", ["responses", "messages"])
async def test_tokens_are_counted_before_they_are_spent(dialect: str, beside: ProviderClient) -> None:
    session = beside.in_session(f"count-{dialect}")
    async with open_model(dialect, session.url(dialect)) as model:
        expected = await model.count_tokens(prompt(), SETTINGS, ModelRequestParameters())
        response = await ask(model, prompt(), stream=False)
    assert expected.input_tokens == response.usage.input_tokens


@EACH
async def test_a_gate_holds_an_answer_after_so_many_deltas(dialect: str) -> None:
    script = [{**RESULT, "gates": [{"name": "head"}, {"name": "half", "after": 2}]}]
    heard = ""
    async with (
        serve_provider(script) as provider,
        open_model(dialect, provider.url(dialect)) as model,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_open_in_turn, provider)
        async with model.request_stream(prompt(), SETTINGS, ModelRequestParameters()) as streamed:
            async for _ in streamed:
                heard = streamed.get().text or heard
                if len(heard) == 16:
                    assert (await provider.wait_for("half")).deltas == 2
                    assert not provider.ledger.ended()
                    provider.open_gate("half")
    assert heard == RESULT["text"]
    assert provider.waiting == ()


async def _open_in_turn(provider: Provider) -> None:
    held = await provider.wait_for("head")
    assert (held.step, held.deltas) == (0, 0)
    provider.open_gate("head")


@EACH
async def test_a_client_that_leaves_is_noticed(dialect: str) -> None:
    script = [{**RESULT, "gates": [{"name": "half", "after": 2, "times": 1}]}]
    async with serve_provider(script) as provider, open_model(dialect, provider.url(dialect)) as model:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ask(model, prompt(), stream=True))
            await provider.wait_for("half")
            group.cancel_scope.cancel()
        left = (await provider.settle()).ended()
        assert [(each["completed"], each["deltas"], each["usage"]) for each in left] == [(False, 2, None)]
        assert (await ask(model, prompt(), stream=True)).text == RESULT["text"]


ASKING = """
import json, sys, urllib.request
body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
headers = {"authorization": "Bearer x", "content-type": "application/json"}
request = urllib.request.Request(sys.argv[1] + "/chat/completions", json.dumps(body).encode(), headers)
for line in urllib.request.urlopen(request):
    print(line.decode().strip(), flush=True)
"""


def test_a_process_that_is_killed_in_mid_stream(tmp_path: Path) -> None:
    script = [{**RESULT, "gates": [{"name": "half", "after": 2}]}]
    with provider_process(script, tmp_path) as provider:
        for number in range(3):
            session = provider.in_session(f"kill-{number}")
            with Popen([sys.executable, "-c", ASKING, session.url("chat")], stdout=PIPE) as client:
                held = session.wait_for("half")
                assert (held.session, held.deltas) == (session.session, 2)
                client.send_signal(signal.SIGKILL)
            session.open_gate("half")
            (ended,) = session.settle().ended()
            assert (ended["completed"], ended["deltas"]) == (False, 2)
            with Popen([sys.executable, "-c", ASKING, session.url("chat")], stdout=PIPE) as client:
                assert client.stdout is not None
                assert client.stdout.read().strip().endswith(b"data: [DONE]")
            assert [each["ask"] for each in session.settle().completed()] == [1]
        assert len(provider.ledger.completed()) == 3
    assert len(read_ledger(tmp_path / "provider.log").completed()) == 3


async def test_faults_are_counted_over_the_death_of_the_server(tmp_path: Path) -> None:
    faults = [{"kind": "rate_limit"}, {"kind": "server_error", "times": 2}]
    script, statuses = [{**RESULT, "faults": faults}], []
    port = 0
    for _ in range(2):
        with provider_process(script, tmp_path, port=port) as provider:
            port = int(provider.address.rpartition(":")[2])
            async with open_model("chat", provider.url("chat")) as model:
                for _ in range(2):
                    statuses.append(await _status(model))
    assert statuses == [429, 500, 500, 200]


async def _status(model: Model) -> int:
    try:
        await ask(model, prompt(), stream=True)
    except ModelHTTPError as error:
        return error.status_code
    return 200


async def test_sessions_count_for_themselves(beside: ProviderClient) -> None:
    for name in ("one", "two"):
        session = beside.in_session(name)
        await anyio.to_thread.run_sync(session.install, [{**RESULT, "faults": [{"kind": "overloaded"}]}])
        async with open_model("messages", session.url("messages")) as model:
            assert [await _status(model), await _status(model)] == [529, 200]
        assert len(session.ledger.begun()) == 2


def test_half_a_line_at_the_end_of_a_log(tmp_path: Path) -> None:
    with provider_process([RESULT], tmp_path) as provider:
        assert provider.ledger.entries == ()
    log = tmp_path / "provider.log"
    whole = json.dumps({"event": "begin", "number": 4, "session": "", "conversation": "main", "step": 0})
    log.write_text(f'{whole}\n{{"event": "be')
    with provider_process([RESULT], tmp_path) as provider:
        assert len(provider.ledger.entries) == 1
    assert log.read_text() == f"{whole}\n"


def test_a_server_by_hand_ends_with_whoever_started_it(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps([RESULT]))
    command = [sys.executable, "-m", "tests.llm.provider", "--script", "script.json", "--leave-with-stdin"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Popen(command, cwd=tmp_path, env=environment, stdin=PIPE, stdout=PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        client = ProviderClient(address=server.stdout.readline().strip())
        assert client.ledger.entries == ()
        server.stdin.close()
        assert server.wait() == 0


@pytest.mark.parametrize(
    "script",
    [
        {"conversations": [{"name": "x"}]},
        [{"txet": "x"}],
        [{"faults": [{"kind": "earthquake"}]}],
        [{"gates": [{"after": 1}]}],
        "hello",
    ],
)
def test_a_script_that_nobody_would_understand(script: Any) -> None:
    with pytest.raises(BadScript):
        read_script(script)
