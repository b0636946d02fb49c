"""Conversations over the HTTP API: who has one, messages and their snapshots, what was cut, approvals."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from orchestra.app.orchestra import Orchestra
from orchestra.web import shapes
from tests.llm.talk import Talk, open_talk
from tests.llm.test_compaction import LONG as COMPACTED
from tests.llm.test_compaction import TOOLS as LOOK
from tests.web.support import Visitor, served

pytestmark = pytest.mark.anyio
TOOLS = '''
def note(text: str) -> str:
    """Note something."""
    return "noted " + text

def fails(why: str) -> str:
    """Fail."""
    raise ValueError(why)
'''
LONG = "much " * 2000
REPORT = "word " * 5000
SCRIPT = [
    {
        "reasoning": "It has to be noted.",
        "calls": [
            {"name": "note", "arguments": {"text": LONG}},
            {"name": "fails", "arguments": {"why": "no"}},
        ],
    },
    {"text": REPORT, "faults": [{"kind": "drop", "after": 2}]},
]
NOTE = [{"calls": [{"name": "note", "arguments": {"text": "one"}}]}, {"text": "It is noted."}]
WHERE = "/runs/talk/snapshots"


@asynccontextmanager
async def _talk(script: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    monkeypatch.setattr("orchestra.agents.llm.model.LLM_BACKOFF_SECONDS", 0.001)
    async with open_talk(script, folder, monkeypatch) as talk:
        yield talk


async def _all(visitor: Visitor, at: int | str = "head", **query: Any) -> Any:
    return await visitor.get(f"{WHERE}/{at}/conversation", who="talk", **query)


async def test_messages_and_calls_with_what_they_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(SCRIPT, tmp_path, monkeypatch) as talk:
        talk.agent(tools=TOOLS)
        ending = await talk.play()
        async with served(talk.store) as visitor:
            (listed,) = (await visitor.get(f"{WHERE}/head/conversations"))["conversations"]
            found = await _all(visitor)
            by_task = await visitor.get(f"{WHERE}/head/conversation", who="work/talk")
            (agent,) = (await visitor.get("/runs/talk"))["agents"]
            messages = found["messages"]
            longest = messages[-1]["parts"][-1]
            whole = await visitor.get(f"{WHERE}/head/state", path=longest["path"])
            for each in messages:
                then = await _all(visitor, each["snapshot"]["seq"])
                assert each["message"] in [one["message"] for one in then["messages"]]
                assert each["snapshot"]["run"] == "talk"
    TypeAdapter(shapes.ConversationOut).validate_python(found, strict=True)
    TypeAdapter(shapes.TalkOut).validate_python(listed, strict=True)
    held = list(ending.state.messages.values())
    assert (listed["agent"], listed["tasks"], listed["messages"]) == ("talk", ["work/talk"], len(held))
    assert listed["tokens"] == ending.state.metrics.tokens
    assert (agent["agent"], agent["messages"]) == ("talk", len(held))
    assert {**found, "who": "work/talk"} == by_task
    assert [(each["role"], each["status"], each["superseded"]) for each in messages] == [
        ("system", "complete", False),
        ("user", "complete", False),
        ("assistant", "complete", False),
        ("assistant", "error", True),
        ("assistant", "complete", False),
    ]
    asked = messages[2]
    assert asked["parts"][0]["text"] == "It has to be noted."
    note, fails = (part["call"] for part in asked["parts"] if part["call"])
    assert note["arguments"]["text"]["$cut"]["size"] == len(LONG)
    assert note["result"]["$cut"]["size"] == len(f"noted {LONG}")
    assert (fails["status"], fails["error"], fails["attempts"]) == ("failed", "ValueError: no", 1)
    assert asked["generation"]["tokens_in"] > 0
    assert longest["text"]["$cut"]["size"] == len(REPORT)
    assert whole["value"] == REPORT


async def test_it_is_paged_and_ends_at_the_snapshot_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(NOTE, tmp_path, monkeypatch) as talk:
        talk.agent(tools=TOOLS)
        await talk.play()
        async with served(talk.store) as visitor:
            names = [each["message"] for each in (await _all(visitor))["messages"]]
            newest = await _all(visitor, limit=2)
            middle = await _all(visitor, first=1, limit=2)
            beyond = await _all(visitor, first=100)
            nobody = await visitor.get(f"{WHERE}/head/conversation", who="nobody")
            began = await _all(visitor, 0)
            tag = (await visitor.client.get(f"/api{WHERE}/2/conversation?who=talk")).headers["etag"]
            again = await visitor.client.get(
                f"/api{WHERE}/2/conversation?who=talk", headers={"If-None-Match": tag}
            )
            status, _ = await visitor.refused(f"{WHERE}/head/conversation")
    assert len(names) == 4
    assert ([each["message"] for each in newest["messages"]], newest["first"]) == (names[2:], 2)
    assert ([each["message"] for each in middle["messages"]], middle["count"]) == (names[1:3], 4)
    assert (beyond["first"], beyond["messages"]) == (4, [])
    assert (nobody["count"], began["count"]) == (0, 0)
    assert again.status_code == 304
    assert status == 422


async def test_a_field_that_goes_back_to_its_default_is_changed_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(NOTE, tmp_path, monkeypatch) as talk:
        talk.agent(tools=TOOLS)
        await talk.play()
        async with served(talk.store) as visitor:
            answered = (await _all(visitor))["messages"][2]["snapshot"]["seq"]
            changes = (await visitor.get(f"{WHERE}/{answered}/changes"))["changes"]
            diff = await visitor.get("/diff", from_=f"talk@{answered - 1}", to=f"talk@{answered}")
    assert changes == diff["changes"]
    (streams,) = [each for each in changes if each["path"] == ["agents", "talk", "message"]]
    assert (streams["kind"], streams["before"], streams["after"]) == ("changed", "work/talk#2", None)
    assert "removed" not in {each["kind"] for each in changes}


async def test_a_fork_of_a_message_keeps_its_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(NOTE, tmp_path, monkeypatch) as talk:
        talk.agent(tools=TOOLS)
        await talk.play()
        async with (
            Orchestra(talk.store, project=tmp_path) as house,
            served(talk.store, house) as visitor,
        ):
            messages = (await _all(visitor))["messages"]
            at = messages[2]["snapshot"]["seq"]
            made = (await visitor.post("/runs/talk/fork", at=at))["run"]
            theirs = await visitor.get(f"/runs/{made}/snapshots/head/conversation", who="talk")
    assert [each["snapshot"] for each in theirs["messages"]] == [each["snapshot"] for each in messages[:3]]


async def test_an_approval_stands_beside_its_call_until_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(NOTE, tmp_path, monkeypatch) as talk:
        talk.agent("risky: [note]", tools=TOOLS)
        assert (await talk.play()).kind == "waiting"
        async with Orchestra(talk.store, project=tmp_path) as house, served(talk.store, house) as visitor:
            (call,) = _calls(await _all(visitor))
            assert (call["status"], call["risky"]) == ("waiting", True)
            (question,) = call["questions"]
            assert (question["status"], question["text"]) == ("open", "May talk call note?")
            changed = {"choice": "approve", "arguments": {"text": "two"}}
            await visitor.post("/runs/talk/answer", 409, wait=question["wait"], value={"choice": "perhaps"})
            await visitor.post("/runs/talk/answer", wait=question["wait"], value=changed, play=True)
            await visitor.until("talk", status="completed")
            (call,) = _calls(await _all(visitor))
    assert (call["status"], call["result"]) == ("done", "noted two")
    assert call["arguments"] == {"text": "two"}
    (question,) = call["questions"]
    assert (question["status"], question["answer"]) == ("closed", changed)


def _calls(found: Any) -> list[Any]:
    return [part["call"] for each in found["messages"] for part in each["parts"] if part["call"]]


async def test_what_a_summary_stands_for_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _talk(COMPACTED, tmp_path, monkeypatch) as talk:
        talk.agent("compact_at: 320", tools=LOOK)
        await talk.play()
        async with served(talk.store) as visitor:
            found = await _all(visitor)
    TypeAdapter(shapes.ConversationOut).validate_python(found, strict=True)
    told = {each["message"]: each for each in found["messages"]}
    gone = ["work/talk#2", "work/talk#3"]
    assert [name for name, each in told.items() if each["compacted"]] == gone
    assert [each["stands_for"] for each in told.values() if each["stands_for"]] == [gone]
