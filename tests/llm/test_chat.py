"""`orchestra chat` over conversations that were really played against a scripted provider."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from orchestra.cli.dispatch import run_command_line
from orchestra.codec.values import thaw
from orchestra.stores.registry import open_store
from tests.llm.provider import ROOT
from tests.llm.talk import Talk, open_talk
from tests.llm.test_compaction import LONG as COMPACTED
from tests.llm.test_compaction import TOOLS as LOOK

pytestmark = pytest.mark.anyio
TOOLS = '''
def note(text: str) -> str:
    """Note something."""
    return "noted " + text

def fails(why: str) -> str:
    """Fail."""
    raise ValueError(why)
'''
LONG = "much " * 200
SCRIPT = [
    {
        "reasoning": "It has to be noted.",
        "calls": [
            {"name": "note", "arguments": {"text": LONG}},
            {"name": "fails", "arguments": {"why": "no"}},
        ],
    },
    {"text": "# Done\n\nAll is **noted**.", "faults": [{"kind": "drop", "after": 2}]},
]


class Terminal:
    """Calls commands on the store of a talk."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        assert run_command_line(arguments) == code, self._capsys.readouterr()
        return self._capsys.readouterr().out


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("ORCHESTRA_STORE", f"sqlite:{tmp_path}/talk.db")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("orchestra.agents.llm.model.LLM_BACKOFF_SECONDS", 0.001)
    return Terminal(capsys)


@asynccontextmanager
async def _talk(script: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    """A talk whose store is a file, so that commands can look into it."""
    async with open_talk(script, folder, monkeypatch) as talk:
        with open_store(f"sqlite:{folder}/talk.db", create=True) as store:
            talk.store = store  # type: ignore[assignment]
            yield talk


async def test_a_conversation_is_shown_as_people_read_one(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(SCRIPT, tmp_path, monkeypatch) as talk:
        talk.agent(tools=TOOLS)
        await talk.play()
        shown, whole = terminal("chat", "talk"), terminal("chat", "talk", "talk", "--full")
        by_task = terminal("chat", "talk@head", "work/talk")
    lines = shown.splitlines()
    assert lines[:6] == ["work/talk", "", "system", "  You are a clerk.", "  talk@1", ""]
    assert "assistant  step 1  openai-chat:scripted" in lines
    assert "  It has to be noted." in lines
    assert '  → fails  {"why": "no"}' in lines
    assert "  ← fails  failed: ValueError: no" in lines
    assert all(line in lines for line in ("  # Done", "  All is **noted**."))
    assert any(line.startswith("  error · superseded · talk@") for line in lines)
    assert any(" tokens in, " in line and " ms · talk@" in line for line in lines)
    assert shown == by_task
    assert "--full shows all" in shown
    assert LONG.strip() not in shown
    assert LONG.strip() in whole
    assert not any(line != line.rstrip() for line in lines)


async def test_json_has_everything_and_the_snapshots_are_those_of_the_messages(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(SCRIPT, tmp_path, monkeypatch) as talk:
        talk.agent(tools=TOOLS)
        ending = await talk.play()
        document = json.loads(terminal("chat", "talk", "--json"))
        messages = document["messages"]
        assert [each["superseded"] for each in messages] == [False, False, False, True, False]
        assert [each["status"] for each in messages] == [
            held.status for held in ending.state.messages.values()
        ]
        for each in messages:
            found = json.loads(terminal("blame", "talk", f'messages["{each["message"]}"]', "--json"))
            assert each["snapshot"] == found["snapshot"]["reference"]
        then = json.loads(terminal("chat", messages[2]["snapshot"], "--json"))
        assert [each["message"] for each in then["messages"]] == [each["message"] for each in messages[:3]]
        assert then["messages"][2]["parts"][-1]["call"]["status"] == "asked"
        await anyio.to_thread.run_sync(terminal, "fork", messages[2]["snapshot"], "--id", "other")
        inherited = json.loads(terminal("chat", "other", "--json"))["messages"]
        assert [each["snapshot"] for each in inherited] == [each["snapshot"] for each in messages[:3]]
    calls = [part["call"] for part in messages[2]["parts"] if part["call"]]
    assert [(call["tool"], call["status"], call["error"]) for call in calls] == [
        ("note", "done", ""),
        ("fails", "failed", "ValueError: no"),
    ]
    assert calls[0]["result"] == f"noted {LONG}"
    page = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
    told = json.loads(page.read_text().partition("```json chat\n")[2].partition("```")[0])
    (example,) = told["messages"]
    assert told.keys() == document.keys()
    assert told["agents"][0].keys() == document["agents"][0].keys()
    assert example.keys() == messages[2].keys()
    assert example["generation"].keys() == messages[2]["generation"].keys()
    assert example["parts"][0].keys() == messages[2]["parts"][0].keys()
    assert example["parts"][0]["call"].keys() == calls[0].keys()


async def test_it_is_followed_while_it_streams(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestra.agents.llm.journal.LLM_STREAM_SECONDS", 0.001)
    said = "One sentence of it. And another one, which comes later."
    async with _talk(
        [{"text": said, "gates": [{"name": "half", "after": 3}]}], tmp_path, monkeypatch
    ) as talk:
        talk.agent()
        async with anyio.create_task_group() as group:
            group.start_soon(talk.play)
            await talk.provider.wait_for("half")
            command = [sys.executable, "-m", "orchestra", "chat", "talk", "talk", "--follow"]
            async with await anyio.open_process(command, cwd=ROOT, stderr=None) as process:
                assert process.stdout is not None
                shown = b""
                while b"\n  One" not in shown:  # the answer is not complete: the gate holds it
                    shown += await process.stdout.receive()
                assert b"later." not in shown
                talk.provider.open_gate("half")
                async for piece in process.stdout:
                    shown += piece
                assert await process.wait() == 0
    lines = shown.decode().splitlines()
    assert f"  {said}" in lines
    assert lines[-1].endswith("completed  nobody plays it now")
    assert lines.count("assistant  step 1  openai-chat:scripted") == 1


async def test_who_is_meant(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _talk([{"text": "Yes."}], tmp_path, monkeypatch) as talk:
        talk.agent()
        flow = (tmp_path / "flow.yaml").read_text()
        second = "      talk: {agent: clerk, task"
        talk.write(flow__yaml=flow.replace(second, second.replace("talk", "more") + ": More.}\n" + second))
        await talk.play()
        listed = terminal("chat", "talk").splitlines()
        assert sorted(line.split()[:2] for line in listed) == [
            ["agent", "messages"],
            ["more", "3"],
            ["talk", "3"],
        ]
        assert json.loads(terminal("chat", "talk", "--json"))["messages"] == []
        assert "More." in terminal("chat", "talk", "more")
        assert "has talked to a language model" in terminal("chat", "talk@0")
        terminal("chat", "talk", "nobody", code=2)
        terminal("chat", "talk", "nobody", "--follow", code=2)
        terminal("chat", "talk@1", "--follow", code=2)
        lines = terminal("chat", "talk", "more", "--follow", "--json").splitlines()
        assert [json.loads(line)["role"] for line in lines] == ["system", "user", "assistant"]


NOTE = {"calls": [{"name": "note", "arguments": {"text": "one"}}]}


async def test_what_a_tool_is_called_with_is_changed_on_the_command_line(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk([NOTE, {"text": "Done."}], tmp_path, monkeypatch) as talk:
        talk.agent("risky: note", tools=TOOLS)
        assert (await talk.play()).kind == "waiting"
        refused = partial(terminal, code=2)
        for wrong in ("tool=send", "call=x", "arguments.text.deep=x"):
            await anyio.to_thread.run_sync(refused, "answer", "talk", "approve", "--set", wrong)
        said = await anyio.to_thread.run_sync(
            terminal, "answer", "talk", "approve", "--set", "arguments.text=two words"
        )
        assert "changed arguments" in said
        ending = await talk.play()
        assert ending.kind == "completed"
        (call,) = ending.state.tool_calls.values()
        assert call.result is not None
        assert thaw(call.result) == "noted two words"


async def test_what_a_model_no_longer_sees_is_marked_and_kept(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _talk(COMPACTED, tmp_path, monkeypatch) as talk:
        talk.agent("compact_at: 320", tools=LOOK)
        await talk.play()
        shown, whole = terminal("chat", "talk"), json.loads(terminal("chat", "talk", "--json"))
        assert "assistant  step 4  sums up 2 messages  openai-chat:scripted" in shown.splitlines()
        told = {each["message"]: each for each in whole["messages"]}
        assert [name for name, each in told.items() if each["compacted"]] == ["work/talk#2", "work/talk#3"]
        assert told["work/talk#5"]["stands_for"] == ["work/talk#2", "work/talk#3"]
        assert not any(each["superseded"] for each in told.values())
        assert shown.count("  summed up since · ") == 2
        assert "in a there is much" in shown
        terminal("verify")
