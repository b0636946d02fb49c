"""Tools of real MCP servers, over stdio and HTTP, and what becomes of a call when its server dies."""

import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.codec.values import thaw
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


# --- in a run


@asynccontextmanager
async def _server(talk: Talk, folder: Path, transport: str) -> AsyncIterator[None]:
    """A server for a talk. One over HTTP is started again when it has died, at the same place."""
    if transport == "stdio":
        _servers(talk, **server_entry(folder))
        yield
        return
    async with anyio.create_task_group() as group:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        _servers(talk, url=f"http://127.0.0.1:{port}/mcp")

        async def keep() -> None:
            while True:
                with mcp_process(folder, port=port) as server:
                    started.set()
                    await anyio.to_thread.run_sync(server.process.wait, abandon_on_cancel=True)

        started = anyio.Event()
        group.start_soon(keep)
        await started.wait()
        yield
        group.cancel_scope.cancel()


CRASH = {"calls": [{"name": "sums_crash", "arguments": {"name": "boom", "times": 1}}]}
EITHER = pytest.mark.parametrize("transport", ["stdio", "http"])


@EITHER
@pytest.mark.parametrize(
    ("course", "answer", "ended", "runs"),
    [
        ("rerun", None, "done", 2),
        ("fail", None, "failed", 1),
        ("ask", "run it again", "done", 2),
        ("ask", "do not run it", "failed", 1),
    ],
)
async def test_a_run_recovers_from_the_death_of_a_server_by_policy(
    open_with: Opener, tmp_path: Path, transport: str, course: str, answer: str | None, ended: str, runs: int
) -> None:
    async with open_with([CRASH, DONE]) as talk, _server(talk, tmp_path, transport):
        talk.agent(f'mcp: mcp.json, tools: "mcp:sums", on_unknown: {course}', attempts=9)
        ending = await talk.play(*([] if answer is None else [answer]))
        assert ending.kind == "completed", ending.state.failure
        assert [status for _, status, _ in calls(ending.state)] == [ended]
        assert decisions(ending.state).count("unknown_tool_call") == 1
        assert len(read_calls(tmp_path, tool="crash", event="begin")) == runs
        assert len(talk.provider.ledger.completed()) == 2, "no answer of the model is paid again"


@EITHER
async def test_a_server_that_dies_between_calls_is_used_again(
    open_with: Opener, tmp_path: Path, transport: str
) -> None:
    """A call that had ended is not made again, whatever became of its server."""
    count = {"calls": [{"name": "sums_count", "arguments": {"name": "one"}}]}
    async with open_with([count, CRASH, DONE]) as talk, _server(talk, tmp_path, transport):
        talk.agent('mcp: mcp.json, tools: "mcp:sums"', attempts=9)
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert [status for _, status, _ in calls(ending.state)] == ["done", "done"]
        assert len(read_calls(tmp_path, tool="count", event="begin")) == 1


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "no-such-program"}, "No such file"),
        ({"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}, "Connection closed"),
        ({"url": "http://127.0.0.1:9/mcp"}, "connect"),
    ],
    ids=["missing", "dying", "nobody there"],
)
async def test_a_server_that_does_not_start_is_named(open_with: Opener, entry: Any, words: str) -> None:
    async with open_with([DONE]) as talk:
        talk.agent('mcp: mcp.json, tools: "mcp:sums"')
        _servers(talk, **entry)
        ending = await talk.play()
        failure = ending.state.tasks["work/talk"].failure
        assert failure is not None
        assert failure.error == "NoServer"
        assert failure.message.startswith("the MCP server `sums` cannot be used: ")
        assert words in failure.message
        assert "\n" not in failure.message
        assert talk.provider.ledger.begun() == []


async def test_a_server_whose_tools_have_changed_when_the_run_goes_on(
    open_with: Opener, tmp_path: Path
) -> None:
    """A call that had ended stays as it is; one of a tool that is gone is told to the model."""
    fail = {"calls": [{"name": "sums_fail", "arguments": {"message": "x"}}]}
    script = [ADD, {"calls": [{"name": "note", "arguments": {}}]}, fail, DONE]
    async with open_with(script) as talk:
        talk.agent('mcp: mcp.json, tools: ["mcp:sums", tools.py], risky: note', attempts=3)
        talk.write(tools__py='def note() -> str:\n    """Note."""\n    return ""\n')
        _servers(talk, **server_entry(tmp_path, "v1"))
        assert (await talk.play()).kind == "waiting"
        _servers(talk, **server_entry(tmp_path, "v2"))
        ending = await talk.play("approve", accept_changes=True)
        assert ending.kind == "completed", ending.state.failure
        ended = [(tool, status) for tool, status, _ in calls(ending.state)]
        assert ended == [("sums_add", "done"), ("note", "done")]
        assert len(read_calls(tmp_path, tool="add", event="begin")) == 1
        parts = [part for each in ending.state.messages.values() for part in each.parts]
        assert any("sums_fail" in str(thaw(part.data)) for part in parts if part.data is not None)


async def test_two_servers_with_tools_of_one_name(open_with: Opener, tmp_path: Path) -> None:
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
    both = [{"name": f"{name}_count", "arguments": {"name": "x"}} for name in ("left", "right")]
    async with open_with([{"calls": both}, DONE]) as talk:
        talk.agent('mcp: mcp.json, tools: ["mcp:left", "mcp:right"]')
        entries = {name: server_entry(tmp_path / name) for name in ("left", "right")}
        talk.write(mcp__json=json.dumps({"mcpServers": entries}))
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert [len(read_calls(tmp_path / name, tool="count", event="end")) for name in entries] == [1, 1]


async def test_a_tool_of_ours_with_the_name_of_a_servers(open_with: Opener, tmp_path: Path) -> None:
    async with open_with([DONE]) as talk:
        talk.agent('mcp: mcp.json, tools: ["mcp:sums", tools.py]')
        talk.write(tools__py='def sums_add() -> str:\n    """Add."""\n    return ""\n')
        _servers(talk, **server_entry(tmp_path))
        failure = (await talk.play()).state.tasks["work/talk"].failure
        assert failure is not None
        assert "sums_add" in failure.message
        assert not failure.recoverable
        assert talk.provider.ledger.begun() == []


async def test_a_variable_that_a_server_needs_is_a_dependency(
    open_with: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORK_TOKEN", raising=False)
    async with open_with([ADD, DONE]) as talk:
        talk.agent('mcp: mcp.json, tools: "mcp:sums"')
        entry = server_entry(tmp_path)
        _servers(talk, **{**entry, "env": {**entry["env"], "WORK_TOKEN": "${WORK_TOKEN}"}})
        ending = await talk.play()
        assert ending.kind == "waiting"
        (wait,) = ending.state.waits.values()
        assert (wait.kind, wait.text) == ("dependency", "WORK_TOKEN")
        monkeypatch.setenv("WORK_TOKEN", "quite-secret-indeed")
        async with Orchestra(talk.store, project=talk.folder) as house:
            await house.provide("talk", "WORK_TOKEN")
            ending = await house.resume("talk")
        assert ending.kind == "completed", ending.state.failure
