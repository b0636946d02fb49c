"""What people, models and providers get wrong: told in one sentence, bounded, and nothing is lost."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.errors import BadCassette, BadWorkflow
from orchestra.limits import LLM_RETRIES
from orchestra.model.records import Failure
from tests.llm.talk import Talk, calls, decisions, open_talk, texts

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
TOOLS = '''
def note(text: str) -> str:
    """Note something."""
    return "noted " + text.upper()
'''
SCHEMA = "output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}"
ALWAYS: dict[str, Any] = {"times": None}


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    monkeypatch.setattr("orchestra.agents.llm.model.LLM_BACKOFF_SECONDS", 0.001)
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _failure(ending: Ending) -> Failure:
    failure = ending.state.tasks["work/talk"].failure
    assert failure is not None, ending.kind
    assert "\n" not in failure.message
    return failure


def _result(ending: Ending) -> Any:
    assert ending.kind == "completed", ending.state.failure
    value = ending.state.tasks["work/talk"].result
    assert value is not None
    return thaw(value)


# --- what people write


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ('model: "opnai:gpt-5"', "there is no provider `opnai`; did you mean `openai`?"),
        ("model: gtp-5", "`gtp-5` names no provider"),
        ('model: "anthropic:"', "`anthropic:` names no model"),
        ('model: "cohere:command-a"', "needs packages that are not installed: `pip install"),
        ("tools: nowhere.py", "there is no file `nowhere.py` for the tool"),
        ("tools: reed_file", "there is no tool `reed_file`; did you mean `read_file`?"),
        ("mcp: nowhere.json", "cannot be read as a file with `mcpServers`"),
        ("skills: nowhere", "nowhere"),
    ],
)
async def test_a_mistake_in_the_workflow_is_named_with_its_place(
    open_with: Opener, options: str, words: str
) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent(options)
        with pytest.raises(BadWorkflow) as caught:
            await talk.play()
        assert words in str(caught.value)
        assert "flow.yaml:4:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nmodel: test\nDo it.", "the front matter begins here and never ends"),
        ("---\nmodel: test\nmodel: test\n---\nDo it.", "`model` is given twice"),
        ("---\nmodel: test\n---\nSay {{ nothing.", "clerk.md"),
        ("---\nmodel: test\n---\nSay {{ unknown_name }}.", "unknown_name"),
        ("---\nmodel: test\noutput_schema: {type: object, properties: 5}\n---\nDo it.", "is no JSON Schema"),
        ("---\nmodel: caf\udce9\n---\nDo it.", "is not UTF-8"),
        ("x" * 10_000_000, "larger than 1 MB"),
    ],
    ids=["no end", "twice", "template", "unknown", "schema", "not UTF-8", "10 MB"],
)
async def test_a_mistake_in_the_agents_file_is_named_with_its_place(
    open_with: Opener, text: str, words: str
) -> None:
    async with open_with([{"text": "never"}]) as talk:
        talk.agent()
        (talk.folder / "clerk.md").write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(BadWorkflow) as caught:
            await talk.play()
        assert words in str(caught.value)
        assert "flow.yaml:4:" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\r\nmodel: MODEL\r\n---\r\nDo it.\r\n",
        "---\nmodel: MODEL\ndescription: Use when: x\n---\nDo it.",
        "---\nmodel:\tMODEL\ntools:\n\t- read_file\n---\nDo it.",
        "---\nmodel: MODEL\ncolor: blue\nhooks: {a: b}\n---\n",
    ],
    ids=["BOM and CRLF", "a colon", "tabs", "no text"],
)
async def test_files_as_people_have_them_are_played(open_with: Opener, text: str) -> None:
    async with open_with([{"text": "Done."}]) as talk:
        talk.agent()
        (talk.folder / "clerk.md").write_bytes(text.replace("MODEL", "openai-chat:scripted").encode())
        assert _result(await talk.play()) == "Done."


async def test_a_missing_key_is_waited_for(open_with: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_with([{"text": "Done."}]) as talk:
        talk.agent('model: "anthropic:scripted"')
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        ending = await talk.play()
        assert ending.kind == "waiting"
        (wait,) = ending.state.waits.values()
        assert (wait.kind, wait.text, wait.status) == ("dependency", "ANTHROPIC_API_KEY", "open")
        assert (await talk.play()).kind == "waiting", "as long as it is not there"
        monkeypatch.setenv("ANTHROPIC_API_KEY", "there it is")
        async with Orchestra(talk.store, project=talk.folder) as house:
            await house.provide("talk", "ANTHROPIC_API_KEY")
            assert _result(await house.resume("talk")) == "Done."


async def test_a_cassette_that_does_not_fit(open_with: Opener) -> None:
    async with open_with([{"text": "Done."}]) as talk:
        talk.agent()
        cassette = talk.folder / "answers.jsonl"
        await talk.play(record=cassette)
        whole = cassette.read_bytes()
        for data, words in (
            (whole.replace(b'"workflow":"talk"', b'"workflow":"other"'), "is of the workflow 'other'"),
            (whole[:-20], "line 2 is not complete"),
            (whole[:5], "its first line is no header"),
            (b"", "its first line is no header"),
        ):
            cassette.write_bytes(data)
            with pytest.raises(BadCassette, match=words):
                await Talk(folder=talk.folder, provider=talk.provider).play(replay=cassette)
        assert len(talk.provider.ledger.begun()) == 1


# --- what models do


async def test_a_model_that_goes_round_in_circles_is_stopped(open_with: Opener) -> None:
    note = {"calls": [{"name": "note", "arguments": {"text": "again"}}], "repeat": True}
    async with open_with([note]) as talk:
        talk.agent("limits: {requests: 4}", tools=TOOLS)
        ending = await talk.play()
        failure = _failure(ending)
        assert (failure.error, failure.recoverable) == ("BudgetExceeded", False)
        assert "requests: 5 of 4" in failure.message
        assert len(talk.provider.ledger.begun()) == 4


@pytest.mark.parametrize("schema", ["", SCHEMA], ids=["text", "schema"])
async def test_a_model_that_says_nothing(open_with: Opener, schema: str) -> None:
    async with open_with(
        [{"text": "never", "repeat": True, "faults": [{"kind": "empty", **ALWAYS}]}]
    ) as talk:
        talk.agent(matter=schema)
        failure = _failure(await talk.play())
        assert failure.error == "UnusableAnswer"
        assert len(talk.provider.ledger.begun()) < 10


@pytest.mark.parametrize(
    "call",
    [
        {"name": "note", "arguments": {}},
        {"name": "note", "arguments": {"text": 5}},
        {"name": "note", "arguments": {"text": {"deep": []}}},
        {"name": "nothing", "arguments": {}},
        {"name": "", "arguments": {}},
    ],
    ids=["too few", "a number", "a mapping", "no such tool", "no name"],
)
async def test_a_call_that_makes_no_sense_is_told_to_the_model(open_with: Opener, call: Any) -> None:
    async with open_with([{"calls": [call]}, {"text": "I see."}]) as talk:
        talk.agent(tools=TOOLS)
        assert _result(await talk.play()) == "I see."


@pytest.mark.parametrize("text", ["\x00", "x" * 3_000_000], ids=["zero", "3 MB"])
async def test_strange_text_in_a_call(open_with: Opener, text: str) -> None:
    call = {"calls": [{"name": "note", "arguments": {"text": text}}], "delta": 1_000_000}
    async with open_with([call, {"text": "I see."}]) as talk:
        talk.agent(tools=TOOLS)
        ending = await talk.play()
        assert _result(ending) == "I see."
        assert len(calls(ending.state)) == 1


async def test_an_answer_that_was_cut_short_is_not_taken_for_a_whole_one(open_with: Opener) -> None:
    """The JSON of an answer ends in the middle, and the provider does not say so: it is asked for again."""
    script = [{"output": {"n": 1}, "faults": [{"kind": "truncated"}]}, {"output": {"n": 2}}]
    async with open_with(script) as talk:
        talk.agent(matter=SCHEMA)
        assert _result(await talk.play()) in ({"n": 1}, {"n": 2})
        assert len(talk.provider.ledger.begun()) == 2


# --- what providers do


@pytest.mark.parametrize(
    ("fault", "error", "requests"),
    [
        ({"kind": "server_error"}, "ProviderFailed", LLM_RETRIES + 1),
        ({"kind": "bad_gateway"}, "ProviderFailed", LLM_RETRIES + 1),
        ({"kind": "unavailable"}, "ProviderUnavailable", LLM_RETRIES + 1),
        ({"kind": "drop"}, "ConnectionLost", LLM_RETRIES + 1),
        ({"kind": "drop", "after": 2}, "ConnectionLost", LLM_RETRIES + 1),
        ({"kind": "cut", "after": 2}, "ConnectionLost", LLM_RETRIES + 1),
        ({"kind": "malformed", "after": 2}, None, LLM_RETRIES + 1),
        ({"kind": "stream_error", "after": 2}, None, None),
        ({"kind": "rate_limit", "retry_after_ms": 1}, "RateLimited", LLM_RETRIES * 5 + 1),
        ({"kind": "rate_limit", "retry_after": 0}, "RateLimited", LLM_RETRIES * 5 + 1),
        ({"kind": "quota"}, "QuotaExceeded", 1),
        ({"kind": "bad_key"}, "KeyRefused", 1),
        ({"kind": "no_model"}, "UnknownModel", 1),
        ({"kind": "context_length"}, "ContextOverflow", 1),
        ({"kind": "content_filter"}, "ContentFiltered", 1),
    ],
    ids=lambda each: "-".join(map(str, each.values())) if isinstance(each, dict) else "",
)
async def test_a_provider_that_never_answers(
    open_with: Opener, fault: dict[str, Any], error: str | None, requests: int | None
) -> None:
    """It is asked a bounded number of times; every try is on the record, and the failure says what it was."""
    async with open_with([{"text": "a text of several pieces", "faults": [{**fault, **ALWAYS}]}]) as talk:
        talk.agent()
        ending = await talk.play()
        assert ending.kind == "failed"
        failure = _failure(ending)
        assert error in (None, failure.error)
        asked = len(talk.provider.ledger.begun())
        assert requests in (None, asked)
        tried = [status for role, status, _ in texts(ending.state) if role == "assistant"]
        assert tried == ["error"] * asked
        assert all(each.status == "closed" for each in ending.state.waits.values())


@pytest.mark.parametrize("kind", ["server_error", "no_model", "bad_key", "content_filter", "context_length"])
async def test_another_model_stands_in(open_with: Opener, kind: str) -> None:
    times = LLM_RETRIES + 1 if kind == "server_error" else 1
    async with open_with([{"text": "From the other.", "faults": [{"kind": kind, "times": times}]}]) as talk:
        talk.agent("model: [openai-chat:one, openai-chat:two]")
        ending = await talk.play()
        assert _result(ending) == "From the other."
        assert decisions(ending.state).count("model_fallback") == 1


async def test_a_text_that_is_cut_off_is_taken_on_the_record(open_with: Opener) -> None:
    async with open_with([{"text": "One, two and three.", "faults": [{"kind": "length"}]}]) as talk:
        talk.agent()
        ending = await talk.play()
        assert "One, two and three.".startswith(_result(ending))
        assert decisions(ending.state) == ["answer_cut"]


async def test_a_run_that_failed_for_its_provider_goes_on_when_that_is_back(open_with: Opener) -> None:
    """What was paid before is not paid again."""
    note = {"calls": [{"name": "note", "arguments": {"text": "one"}}]}
    down = {"text": "Done.", "faults": [{"kind": "server_error", "times": LLM_RETRIES + 1}]}
    async with open_with([note, down]) as talk:
        talk.agent(tools=TOOLS)
        assert (await talk.play()).kind == "failed"
        ending = await talk.play()
        assert _result(ending) == "Done."
        assert [len(talk.provider.ledger.completed(step=step)) for step in (0, 1)] == [1, 1]
        assert [(tool, status) for tool, status, _ in calls(ending.state)] == [("note", "done")]
        assert json.dumps(calls(ending.state)[0][2]) == '"noted ONE"'
