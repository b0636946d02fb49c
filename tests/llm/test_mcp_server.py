"""The MCP server is a real one: the model library lists and calls its tools, and sees it die."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.mcp import MCPToolset, load_mcp_toolsets

from tests.llm.clients import open_model
from tests.llm.mcp_server import Tools, mcp_process, read_calls, server_entry, wait_for_file
from tests.llm.provider import serve_provider

pytestmark = pytest.mark.anyio
EITHER = pytest.mark.parametrize("transport", ["stdio", "http"])
NAMES = {"v1": ["add", "big", "count", "crash", "fail", "slow"]}
NAMES["v2"] = ["add", "big", "count", "crash", "slow", "subtract"]


def over_stdio(folder: Path, tools: Tools = "v1") -> MCPToolset[None]:
    """A toolset that starts the server itself."""
    entry = server_entry(folder, tools)
    transport = StdioTransport(**entry, keep_alive=False)
    return MCPToolset(transport, id="workshop", tool_error_behavior="error")


def over_http(url: str) -> MCPToolset[None]:
    """A toolset that speaks to a server that is there already."""
    return MCPToolset(url, id="workshop", tool_error_behavior="error")


@asynccontextmanager
async def connected(transport: str, folder: Path, tools: Tools = "v1") -> AsyncIterator[MCPToolset[None]]:
    """A toolset that is connected to a server of its own."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            toolset = over_stdio(folder, tools)
        else:
            process = stack.enter_context(mcp_process(folder, tools))
            toolset = over_http(process.url)
        yield await stack.enter_async_context(toolset)


@pytest.mark.parametrize("tools", ["v1", "v2"])
@EITHER
async def test_its_tools_and_what_they_answer(transport: str, tools: Tools, tmp_path: Path) -> None:
    async with connected(transport, tmp_path, tools) as server:
        listed = {tool.name: tool for tool in await server.list_tools()}
        assert sorted(listed) == NAMES[tools]
        assert await server.direct_call_tool("add", {"a": 1, "b": 2}) == 3
        assert len(await server.direct_call_tool("big", {"size": 100_000})) == 100_000
        assert [await server.direct_call_tool("count", {"name": "runs"}) for _ in range(3)] == [1, 2, 3]
        with pytest.raises(ToolError, match="Unknown tool: nothing"):
            await server.direct_call_tool("nothing", {})
        if tools == "v1":
            with pytest.raises(ToolError, match="Error executing tool fail: no paper"):
                await server.direct_call_tool("fail", {"message": "no paper"})
        else:
            assert await server.direct_call_tool("add", {"a": 1, "b": 2, "c": 3}) == 6
    assert (tmp_path / "runs.count").read_text() == "x\n" * 3
    ends = [each["outcome"] for each in read_calls(tmp_path, event="end")]
    assert ends[:6] == ["returned"] * 5 + ["failed"]


@EITHER
async def test_a_slow_tool_goes_on_when_it_is_let(transport: str, tmp_path: Path) -> None:
    async with connected(transport, tmp_path) as server, anyio.create_task_group() as group:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await server.direct_call_tool("slow", {"name": "paint"}))

        group.start_soon(call)
        await wait_for_file(tmp_path / "paint.started")
        assert [each["event"] for each in read_calls(tmp_path, tool="slow")] == ["begin"]
        (tmp_path / "paint.go").touch()
    assert answers == ["paint went on"]


@EITHER
async def test_what_is_told_beside_a_call_is_written_down(transport: str, tmp_path: Path) -> None:
    async with connected(transport, tmp_path) as server:
        await server.direct_call_tool("add", {"a": 1, "b": 2}, metadata={"idempotency": "run-1/2"})
    (begun,) = read_calls(tmp_path, event="begin")
    assert begun["meta"]["idempotency"] == "run-1/2"


async def test_death_in_mid_call_over_stdio(tmp_path: Path) -> None:
    """The call fails at once, and so do all others until the toolset is entered anew."""
    toolset = over_stdio(tmp_path)
    async with toolset:
        for tool, arguments in (("crash", {"name": "c"}), ("add", {"a": 1, "b": 2})):
            with pytest.raises(MCPError, match="Connection closed") as caught:
                await toolset.direct_call_tool(tool, arguments)
            assert caught.value.error.code == -32000
    async with toolset:
        assert await toolset.direct_call_tool("crash", {"name": "c"}) == "c survived"
    _assert_crashed_once(tmp_path)


async def test_death_in_mid_call_over_http(tmp_path: Path) -> None:
    """The call fails at once and its session is lost: what follows fails, leaving it as well."""
    with mcp_process(tmp_path) as server:
        toolset = over_http(server.url)
        await toolset.__aenter__()
        with pytest.raises(MCPError, match="Connection closed"):
            await toolset.direct_call_tool("crash", {"name": "c"})
        assert server.process.wait() == 9
    with mcp_process(tmp_path, port=server.port):
        with pytest.raises(httpx2.TransportError):
            await toolset.direct_call_tool("add", {"a": 1, "b": 2})
        with pytest.raises(httpx2.TransportError):
            await toolset.__aexit__(None, None, None)
        async with over_http(server.url) as anew:
            assert await anew.direct_call_tool("crash", {"name": "c"}) == "c survived"
    _assert_crashed_once(tmp_path)


async def test_death_between_calls_over_http(tmp_path: Path) -> None:
    """Another server at the same address is used without being asked to."""
    with mcp_process(tmp_path) as server:
        async with over_http(server.url) as toolset:
            assert await toolset.direct_call_tool("add", {"a": 1, "b": 2}) == 3
            server.process.kill()
            server.process.wait()
            with mcp_process(tmp_path, "v2", port=server.port):
                assert await toolset.direct_call_tool("subtract", {"a": 3, "b": 2}) == 1


async def test_the_library_would_tell_the_model_of_a_death(tmp_path: Path) -> None:
    """The trap: unless it is told otherwise, the library takes a dead server for a mistake of the model."""
    async with connected("stdio", tmp_path) as server:
        server.tool_error_behavior = "retry"
        with pytest.raises(ModelRetry, match="Connection closed"):
            await server.direct_call_tool("crash", {"name": "c"})


def _assert_crashed_once(folder: Path) -> None:
    calls = read_calls(folder, tool="crash")
    assert [each["event"] for each in calls] == ["begin", "begin", "end"]
    assert len({each["pid"] for each in calls}) == 2


@EITHER
async def test_a_server_that_is_killed_in_mid_call(transport: str, tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        failures: list[Exception] = []

        async def call() -> None:
            try:
                async with connected(transport, tmp_path) as server:
                    await server.direct_call_tool("slow", {"name": "paint"})
            except Exception as error:
                failures.append(error)

        group.start_soon(call)
        await wait_for_file(tmp_path / "paint.started")
        (begun,) = read_calls(tmp_path, tool="slow")
        await anyio.run_process(["kill", "-9", str(begun["pid"])])
    assert isinstance(failures[0], MCPError | httpx2.TransportError)


async def test_an_agent_uses_it_from_a_file_of_servers(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"work": server_entry(tmp_path)}}))
    calls = [{"name": "work_count", "arguments": {"name": name}} for name in ("one", "two")]
    script = [{"calls": calls}, {"text": "Counted."}]
    async with serve_provider(script) as provider, open_model("chat", provider.url("chat")) as model:
        agent: Agent[None, str] = Agent(model, toolsets=load_mcp_toolsets(file))
        async with agent:
            result = await agent.run("Count.")
        assert "work_count" in provider.ledger.begun()[0]["tools"]
    assert result.output == "Counted."
    assert len(read_calls(tmp_path, tool="count", event="end")) == 2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"command": "no-such-program"}, RuntimeError, "Client failed to connect: .*No such file"),
        ({"args": ["-c", "raise SystemExit(3)"]}, MCPError, "Connection closed"),
    ],
    ids=["missing", "dying"],
)
async def test_a_server_that_does_not_start(
    change: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    toolset: MCPToolset[None] = MCPToolset(StdioTransport(**{**server_entry(tmp_path), **change}), id="x")
    with pytest.raises(error, match=words):
        await toolset.__aenter__()


async def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    with pytest.raises(RuntimeError, match="Client failed to connect") as caught:
        await over_http(url).__aenter__()
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
