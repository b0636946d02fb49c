"""A real MCP server for tests, over stdio or streamable HTTP, with tools that are slow, large or deadly.

    python -m tests.llm.mcp_server --transport stdio --folder DIR
    python -m tests.llm.mcp_server --transport http --folder DIR --port 0     # prints its address

Its folder is how a test and the tools speak to one another, also over the death of a server:

    calls.jsonl     a line when a call begins, and one when it ends: what the server saw on the wire
    NAME.started    made by `slow(NAME)` when it runs; it returns when NAME.go appears
    NAME.count      a line for every run of `count(NAME)`
    NAME.crashes    a line for every run of `crash(NAME)`; the first ones end the server

`--tools v2` is the same server a week later: `add` takes a third number, `fail` is gone, `subtract` is new.
"""

import argparse
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Final, Literal

import anyio
import attrs

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = "tests.llm.mcp_server"
Tools = Literal["v1", "v2"]


@attrs.frozen
class Workshop:
    """What the tools do, and where they leave their traces."""

    folder: Path

    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def add_three(self, a: int, b: int, c: int = 0) -> int:
        """Add up to three numbers."""
        return a + b + c

    async def subtract(self, a: int, b: int) -> int:
        """Take one number from another."""
        return a - b

    async def slow(self, name: str) -> str:
        """Wait until somebody lets it go on."""
        (self.folder / f"{name}.started").touch()
        await wait_for_file(self.folder / f"{name}.go")
        return f"{name} went on"

    async def crash(self, name: str, times: int = 1) -> str:
        """End the whole server in the middle of the call, so many times."""
        if add_line(self.folder / f"{name}.crashes", "x") <= times:
            os._exit(9)
        return f"{name} survived"

    async def big(self, size: int) -> str:
        """Answer with so many bytes."""
        return "x" * size

    async def fail(self, message: str) -> str:
        """Raise an error."""
        from mcp.server.mcpserver.exceptions import ToolError

        raise ToolError(message)

    async def count(self, name: str) -> int:
        """Say how often it was called with this name."""
        return add_line(self.folder / f"{name}.count", "x")

    def tools(self, version: Tools) -> dict[str, Callable[..., Any]]:
        """The tools that the server offers, by name."""
        own: dict[str, Callable[..., Any]] = {"add": self.add, "fail": self.fail}
        if version == "v2":
            own = {"add": self.add_three, "subtract": self.subtract}
        return {**own, "slow": self.slow, "crash": self.crash, "big": self.big, "count": self.count}

    async def note(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Write down every call as it comes over the wire, and how it ends."""
        if ctx.method != "tools/call":
            return await call_next(ctx)
        call = dict(ctx.params or {})
        entry = {"tool": call.get("name"), "arguments": call.get("arguments"), "meta": call.get("_meta")}
        self._write({"event": "begin", **entry})
        outcome = "raised"
        try:
            result = await call_next(ctx)
            outcome = "failed" if result.get("isError") else "returned"
            return result
        finally:
            self._write({"event": "end", **entry, "outcome": outcome})

    def _write(self, entry: dict[str, Any]) -> None:
        add_line(self.folder / "calls.jsonl", json.dumps({**entry, "pid": os.getpid()}, default=repr))


def add_line(path: Path, line: str) -> int:
    """Append a line to a file; the number of lines it has then."""
    with path.open("a") as file:
        file.write(line + "\n")
    return len(path.read_text().splitlines())


async def wait_for_file(path: Path) -> None:
    """Return as soon as a file is there."""
    while not path.exists():  # noqa: ASYNC110, ASYNC240 (there is no event for a file that appears)
        await anyio.sleep(0.01)


def read_calls(folder: Path, **wanted: Any) -> list[dict[str, Any]]:
    """The calls that came over the wire, as wanted: `read_calls(folder, tool="add", event="begin")`."""
    path = folder / "calls.jsonl"
    entries = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [each for each in entries if all(each.get(name) == value for name, value in wanted.items())]


def server_entry(folder: Path, tools: Tools = "v1") -> dict[str, Any]:
    """The server over stdio, as an entry of an `mcpServers` file."""
    return {
        "command": sys.executable,
        "args": ["-m", MODULE, "--transport", "stdio", "--folder", str(folder), "--tools", tools],
        "env": {"PYTHONPATH": str(ROOT)},
        "cwd": str(ROOT),
    }


@attrs.frozen
class McpProcess:
    """A server over HTTP, in a process of its own."""

    url: str
    process: Popen[str]

    @property
    def port(self) -> int:
        """Where it listens, so that another one can take its place."""
        return int(self.url.split("/")[2].rpartition(":")[2])


@contextmanager
def mcp_process(folder: Path, tools: Tools = "v1", *, port: int = 0) -> Iterator[McpProcess]:
    """A server over HTTP until the end of the block."""
    command = [sys.executable, "-m", MODULE, "--transport", "http", "--folder", str(folder)]
    command += ["--tools", tools, "--port", str(port), "--leave-with-stdin"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Popen(command, cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, "the MCP server did not start"
        try:
            yield McpProcess(url, process)
        finally:
            process.kill()


async def _serve(transport: str, folder: Path, tools: Tools, port: int, *, leave_with_stdin: bool) -> None:
    from mcp.server.mcpserver import MCPServer

    workshop = Workshop(folder)
    server: Any = MCPServer("workshop", version=tools, log_level="CRITICAL", middleware=[workshop.note])
    for name, tool in workshop.tools(tools).items():
        server.add_tool(tool, name=name)
    if transport == "stdio":
        await server.run_stdio_async()
        return
    listener = socket.create_server(("127.0.0.1", port))
    async with anyio.create_task_group() as group:
        group.start_soon(_serve_http, server, listener)
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        if leave_with_stdin:
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
            os._exit(0)


async def _serve_http(server: Any, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    await uvicorn.Server(config).serve(sockets=[listener])


def main() -> None:
    """Serve until the client or the test leaves."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}")
    parser.add_argument("--transport", choices=["stdio", "http"], required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where the tools write what they did")
    parser.add_argument("--tools", choices=["v1", "v2"], default="v1", help="which tools there are")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--leave-with-stdin", action="store_true", help="over HTTP: end when stdin does")
    given = parser.parse_args()

    async def serve() -> None:
        await _serve(
            given.transport, given.folder, given.tools, given.port, leave_with_stdin=given.leave_with_stdin
        )

    anyio.run(serve)


if __name__ == "__main__":
    main()
