"""A provider of language models on loopback, for tests: real HTTP, scripted answers, scripted faults.

It speaks OpenAI's chat completions and responses and Anthropic's messages, streamed and whole. What it says
is a script (`script.py`), what it was asked is in its ledger (`ledger.py`). Three ways to have one:

    async with serve_provider(script) as provider: ...      # in the loop of a test; a `Provider`
    with provider_in_thread(script) as provider: ...        # beside a test; a `ProviderClient`
    with provider_process(script, folder) as provider: ...  # in a process of its own; a `ProviderClient`

or by hand: `python -m tests.llm.provider --port 0 --script FILE --log FILE`. That prints its address; given
the log of an earlier one, it goes on counting where that one ended.

One server has room for many tests: whatever stands under `/s/NAME` is a session with its own counts, gates
and, if it was given one, its own script.

    POST /v1/chat/completions, /v1/responses, /v1/messages     the models
    POST /gate/NAME         opens a gate, for good
    GET  /waiting           who is held now; /waiting/NAME answers as soon as somebody is held there
    GET  /log               the ledger; /settled the same, as soon as no answer is under way
    PUT  /script            a script for this session
"""

import argparse
import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Final
from urllib.request import Request, urlopen

import attrs

from tests.llm.asked import Usage
from tests.llm.ledger import Ledger, read_ledger
from tests.llm.script import BadScript, Script, read_script
from tests.llm.server import Provider, Waiting, base_url

__all__ = [
    "BadScript",
    "Ledger",
    "Provider",
    "ProviderClient",
    "Script",
    "Usage",
    "Waiting",
    "base_url",
    "provider_in_thread",
    "provider_process",
    "read_ledger",
    "read_script",
    "serve_provider",
]

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 180.0


@asynccontextmanager
async def serve_provider(script: Any, log: Path | None = None) -> AsyncIterator[Provider]:
    """A provider in the loop that runs now; the script is a Script or its JSON data."""
    provider = Provider(_as_script(script), log)
    await provider.start()
    try:
        yield provider
    finally:
        await provider.stop()


def _as_script(script: Any) -> Script:
    return script if isinstance(script, Script) else read_script(script)


@attrs.frozen(kw_only=True)
class ProviderClient:
    """Speaks to a provider in another thread or process. It blocks: in a loop, call it in a thread."""

    address: str
    session: str = ""

    def in_session(self, session: str) -> "ProviderClient":
        """The same provider, seen from a session."""
        return attrs.evolve(self, session=session)

    def url(self, dialect: str) -> str:
        """The base address to give to a client of a dialect: `chat`, `responses` or `messages`."""
        return base_url(self.address, dialect, self.session)

    def install(self, script: Any) -> None:
        """Play another script, given as JSON data, in this session."""
        self._ask("PUT", "/script", json.dumps(script).encode())

    def open_gate(self, name: str) -> None:
        """Let go what is held at a gate, and whatever comes by later."""
        self._ask("POST", f"/gate/{name}", b"")

    def wait_for(self, gate: str) -> Waiting:
        """The first answer that is held at a gate, as soon as there is one."""
        return Waiting(**self._ask("GET", f"/waiting/{gate}"))

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The answers that are held now, in all sessions."""
        return tuple(Waiting(**each) for each in self._ask("GET", "/waiting"))

    @property
    def ledger(self) -> Ledger:
        """What the session was asked and answered up to now."""
        return Ledger(tuple(self._ask("GET", "/log")))

    def settle(self) -> Ledger:
        """The same, once no answer is under way: also those whose client has died."""
        return Ledger(tuple(self._ask("GET", "/settled")))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        prefix = f"/s/{self.session}" if self.session else ""
        request = Request(f"{self.address}{prefix}{path}", data=body, method=method)
        with closing(urlopen(request, timeout=PATIENCE)) as answer:
            return json.load(answer)


@contextmanager
def provider_in_thread(script: Any, log: Path | None = None) -> Iterator[ProviderClient]:
    """A provider in a thread with a loop of its own, until the end of the block."""
    played, started, stop = _as_script(script), Future[str](), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def live() -> None:
        async with serve_provider(played, log) as provider:
            started.set_result(provider.address)
            await stop.wait()

    def run() -> None:
        with closing(loop):
            loop.run_until_complete(live())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ProviderClient(address=started.result(PATIENCE))
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def provider_process(script: Any, folder: Path, *, port: int = 0) -> Iterator[ProviderClient]:
    """A provider in a process of its own, until the end of the block; its log stays in the folder."""
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    command = [sys.executable, "-m", "tests.llm.provider", "--leave-with-stdin", "--port", str(port)]
    command += ["--script", str(path), "--log", str(folder / "provider.log")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Popen(command, cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the provider did not start"
        try:
            yield ProviderClient(address=address)
        finally:
            process.kill()


async def _main(script: Script, log: Path | None, port: int, *, leave_with_stdin: bool) -> None:
    provider = Provider(script, log)
    await provider.start(port)
    print(provider.address, flush=True)
    if leave_with_stdin:
        await _end_of_stdin()
        await provider.stop()
    else:
        await asyncio.Event().wait()


async def _end_of_stdin() -> None:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while await reader.read(1024):
        pass


def main() -> None:
    """Serve a script until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.llm.provider")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True, help="the script, a JSON file")
    parser.add_argument("--log", type=Path, help="where the ledger goes, and what was counted before")
    parser.add_argument("--leave-with-stdin", action="store_true", help="end when the standard input does")
    given = parser.parse_args()
    try:
        script = read_script(json.loads(given.script.read_text()))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    asyncio.run(_main(script, given.log, given.port, leave_with_stdin=given.leave_with_stdin))


if __name__ == "__main__":
    main()
