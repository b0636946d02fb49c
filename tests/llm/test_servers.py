"""Tools of real MCP servers, over stdio and HTTP, and what becomes of a call when its server dies."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.errors import BadWorkflow
from tests.llm.mcp_server import mcp_process, read_calls, server_entry
from tests.llm.talk import Talk, calls, decisions, open_talk

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
ADD = {"calls": [{"name": "sums_add", "arguments": {"a": 2, "b": 3}}]}
DONE = {"text": "Five."}


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _servers(talk: Talk, **entry: Any) -> None:
    talk.write(mcp__json=json.dumps({"mcpServers": {"sums": entry}}))


async def test_a_server_over_stdio(open_with: Opener, tmp_path: Path) -> None:
    async with open_with([ADD, DONE]) as talk:
        talk.agent('mcp: mcp.json, tools: "mcp:sums"')
        _servers(talk, **server_entry(tmp_path))
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        ((tool, status, result),) = calls(ending.state)
        assert (tool, status) == ("sums_add", "done")
        assert "5" in json.dumps(result)


async def test_a_server_over_http(open_with: Opener, tmp_path: Path) -> None:
    async with open_with([ADD, DONE]) as talk:
        talk.agent('mcp: mcp.json, tools: "mcp:sums"')
        with mcp_process(tmp_path) as server:
            _servers(talk, url=server.url)
            ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert [status for _, status, _ in calls(ending.state)] == ["done"]


@pytest.mark.parametrize(("course", "ended"), [("rerun", "done"), ("fail", "failed")])
async def test_a_server_that_dies_in_a_call_is_started_again_and_the_policy_decides(
    open_with: Opener, tmp_path: Path, course: str, ended: str
) -> None:
    crash = {"calls": [{"name": "sums_crash", "arguments": {"name": "boom", "times": 1}}]}
    async with open_with([crash, DONE]) as talk:
        talk.agent(f'mcp: mcp.json, tools: "mcp:sums", on_unknown: {course}', attempts=3)
        _servers(talk, **server_entry(tmp_path))
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert [(tool, status) for tool, status, _ in calls(ending.state)] == [("sums_crash", ended)]
        assert decisions(ending.state).count("unknown_tool_call") == 1
        assert len(talk.provider.ledger.completed()) == 2, "no answer of the model is paid again"
        runs = len(read_calls(tmp_path, tool="crash", event="begin"))
        assert runs == (2 if course == "rerun" else 1)


async def test_a_server_that_nobody_knows_is_a_mistake(open_with: Opener) -> None:
    async with open_with([DONE]) as talk:
        talk.agent('mcp: mcp.json, tools: "mcp:other"')
        _servers(talk, command="true")
        with pytest.raises(BadWorkflow, match="no MCP server is called `other`; there are: sums"):
            await talk.play()
