"""Spans and metrics of conversations with a scripted provider."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.engine.settings import EngineSettings
from orchestra.limits import TELEMETRY_CONTENT_CHARS
from orchestra.telemetry import names
from tests.llm.talk import KEY, Talk, calls, open_talk
from tests.unit.telemetry.support import by_name, metrics, spans

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
WORDS = "a sentence that nobody else is to read"
ARGUMENT = "what the tool is told"
RESULT = "what the tool says"
TOOLS = f'''
def note(text: str) -> str:
    """Note something."""
    return "{RESULT} " + "x" * 20_000

def fails(why: str) -> str:
    """Fail."""
    raise ValueError("{RESULT}")
'''
NOTE = {"calls": [{"name": "note", "arguments": {"text": ARGUMENT}}]}
FAILS = {"calls": [{"name": "fails", "arguments": {"why": ARGUMENT}}]}


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    monkeypatch.setattr("orchestra.agents.llm.model.LLM_BACKOFF_SECONDS", 0.001)
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _parents(found: list[dict[str, Any]], name: str) -> set[str]:
    known = {each["spanId"]: each["name"] for each in found}
    return {known[each["parentSpanId"]] for each in by_name(found, name)}


async def test_requests_and_tool_calls_are_spans_below_the_attempt(open_with: Opener) -> None:
    async with open_with([NOTE, FAILS, {"text": WORDS}]) as talk:
        talk.agent("temperature: 0.5, max_tokens: 500", tools=TOOLS)
        await talk.play(telemetry=True)
        usage = talk.provider.ledger.usage()
    found = spans(talk.folder, "talk")
    assert _parents(found, "chat scripted") == _parents(found, "execute_tool note") == {"invoke_agent talk"}
    asked = by_name(found, "chat scripted")
    told = asked[0]["attributes"]
    assert told[names.OPERATION] == "chat"
    assert told[names.PROVIDER] == "openai"
    assert (told[names.MODEL], told[names.TEMPERATURE], told[names.MAX_TOKENS]) == ("scripted", 0.5, 500)
    assert told[names.CONVERSATION] == "/".join(("talk", "work/talk"))
    assert told[names.FINISH] == ["tool_call"]
    assert told[names.RESPONSE_MODEL]
    assert told[names.RESPONSE_ID]
    assert {each["kind"] for each in asked} == {3}
    assert sum(each["attributes"][names.TOKENS_IN] for each in asked) == usage.input
    assert sum(each["attributes"][names.TOKENS_OUT] for each in asked) == usage.output
    (attempt,) = by_name(found, "invoke_agent talk")
    assert attempt["attributes"][names.TOKENS_IN] == usage.input, "the attempt sums its requests up"
    (noted,) = by_name(found, "execute_tool note")
    assert noted["attributes"][names.TOOL_NAME] == "note"
    assert noted["attributes"][names.TOOL_TYPE] == "function"
    assert noted["attributes"][names.TOOL_CALL]
    assert (noted["kind"], noted["attributes"][names.STATUS]) == (1, "completed")
    (failed,) = by_name(found, "execute_tool fails")
    assert failed["attributes"][names.ERROR_TYPE] == "ValueError"
    assert failed["status"]["code"] == 2


async def test_no_content_unless_it_is_asked_for(open_with: Opener) -> None:
    async with open_with([NOTE, FAILS, {"text": WORDS}]) as talk:
        talk.agent(tools=TOOLS)
        await talk.play(telemetry=True)
    text = (talk.folder / "outputs" / "talk" / "telemetry" / "otlp.jsonl").read_text()
    assert [word for word in (WORDS, ARGUMENT, RESULT, "You are a clerk", KEY) if word in text] == []


async def test_content_is_redacted_and_cut(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": f"{WORDS} {KEY}"}]) as talk:
        talk.agent(tools=TOOLS)
        await talk.play(telemetry=True, engine=EngineSettings(telemetry_content=True))
    found = spans(talk.folder, "talk")
    first, last = (each["attributes"] for each in by_name(found, "chat scripted"))
    assert "You are a clerk" in first[names.INPUT_MESSAGES]
    assert "Do what is to be done" in first[names.INPUT_MESSAGES]
    assert ARGUMENT in first[names.OUTPUT_MESSAGES]
    assert WORDS in last[names.OUTPUT_MESSAGES]
    (noted,) = by_name(found, "execute_tool note")
    assert ARGUMENT in noted["attributes"][names.TOOL_ARGUMENTS]
    assert RESULT in noted["attributes"][names.TOOL_RESULT]
    assert len(noted["attributes"][names.TOOL_RESULT]) <= TELEMETRY_CONTENT_CHARS + 2
    assert KEY not in (talk.folder / "outputs" / "talk" / "telemetry" / "otlp.jsonl").read_text()


async def test_a_request_that_failed_is_a_span_without_its_message(open_with: Opener) -> None:
    fault = {"kind": "server_error", "retry_after_ms": 1}
    async with open_with([{"text": WORDS, "faults": [fault]}]) as talk:
        talk.agent()
        await talk.play(telemetry=True)
    first, second = by_name(spans(talk.folder, "talk"), "chat scripted")
    assert first["attributes"][names.ERROR_TYPE] == first["status"]["message"] == "ModelServerError"
    assert names.TOKENS_IN not in first["attributes"]
    assert "status" not in second


async def test_what_is_replayed_makes_no_span(open_with: Opener) -> None:
    """The second attempt goes through the first answer and the first call again, from the record."""
    never = {"kind": "context_length"}
    async with open_with([NOTE, {"text": WORDS, "faults": [never]}]) as talk:
        talk.agent(tools=TOOLS, attempts=1)
        assert (await talk.play(telemetry=True)).kind == "failed"
        ending = await talk.play(telemetry=True)
        assert ending.kind == "completed"
        assert calls(ending.state)[0][:2] == ("note", "done")
    found = spans(talk.folder, "talk")
    assert len(by_name(found, "execute_tool note")) == 1
    asked = by_name(found, "chat scripted")
    assert [each["attributes"][names.STEP] for each in asked] == [1, 2, 2]
    assert [each["attributes"][names.STATUS] for each in asked] == ["completed", "failed", "completed"]
    assert len(by_name(found, "invoke_agent talk")) == 2


async def test_tokens_and_durations_are_measured_by_model(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": WORDS}]) as talk:
        talk.agent(tools=TOOLS)
        await talk.play(telemetry=True)
        usage = talk.provider.ledger.usage()
    found = metrics(talk.folder, "talk")
    points = found[names.TOKEN_USAGE]["histogram"]["dataPoints"]
    told = [{each["key"]: each["value"]["stringValue"] for each in point["attributes"]} for point in points]
    assert [each[names.TOKEN_TYPE] for each in told] == ["input", "output"]
    assert {(each[names.PROVIDER], each[names.MODEL]) for each in told} == {("openai", "scripted")}
    assert [(point["count"], point["sum"]) for point in points] == [
        ("2", float(usage.input)),
        ("2", float(usage.output)),
    ]
    (duration,) = found[names.REQUEST_DURATION]["histogram"]["dataPoints"]
    assert duration["count"] == "2"
    assert duration["sum"] > 0
