"""Two thousand want to listen at once: as many as may are let in, the others are told so, nobody suffers."""

import resource
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import pytest

from orchestra.limits import WEB_CONNECTIONS, WEB_LISTENERS
from tests.integration.test_cli_browse import Browser
from tests.unit.cli.project import PATIENCE, Project, ended

MANY = 2_000
AT_ONCE = 2 * WEB_CONNECTIONS
OPEN_FILES = MANY + 500


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


@contextmanager
def many_files() -> Iterator[None]:
    """As many sockets as the test needs. What it started before has what processes usually have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES:
        pytest.skip(f"this machine allows a process only {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Everybody who asks for the feed, and what each was answered."""

    def __init__(self, browser: Browser, stack: AsyncExitStack) -> None:
        host = browser.address.removeprefix("http://")
        lines = (
            "GET /api/events HTTP/1.1",
            f"Host: {host}",
            f"Authorization: Bearer {browser.token}",
            "",
            "",
        )
        self._port, self._question = int(host.rpartition(":")[2]), "\r\n".join(lines).encode()
        self._stack, self._turn = stack, anyio.Semaphore(AT_ONCE)
        self.statuses: Counter[str] = Counter()
        self.refusals: set[bytes] = set()
        self.let_in: list[anyio.abc.SocketStream] = []

    async def come(self, count: int) -> None:
        """So many come at the same time; their connections stay open on this side."""
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(self._ask)

    async def _ask(self) -> None:
        async with self._turn:
            stream = await self._stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", self._port))
            await stream.send(self._question)
            answer = await stream.receive()
            status = answer.split(b" ", 2)[1].decode()
            self.statuses[status] += 1
            if status == "200":
                self.let_in.append(stream)
                return
            async for more in stream:  # it is closed by the other side
                answer += more
            self.refusals.add(answer.partition(b"\r\n\r\n")[2])

    async def hear(self, word: bytes) -> None:
        """Everybody who was let in is told something with this word."""
        async with anyio.create_task_group() as group:
            for stream in self.let_in:
                group.start_soon(_until, stream, word)


async def _until(stream: anyio.abc.SocketStream, word: bytes) -> None:
    heard = b""
    while word not in heard:
        heard += await stream.receive()


def test_a_crowd_of_listeners_is_refused_and_disturbs_nobody(project: Project) -> None:
    project.workflow("quick", "gate")
    run = project.start("run", "flow.yaml", "--run-id", "r1")
    project.wait_for("began", run)
    browser = Browser(project, "--read-only")

    async def crowded() -> None:
        with anyio.fail_after(PATIENCE * 4):
            async with AsyncExitStack() as stack:
                crowd = Crowd(browser, stack)
                await crowd.come(MANY)
                assert crowd.statuses == {"200": WEB_LISTENERS, "503": MANY - WEB_LISTENERS}
                assert crowd.refusals
                assert all(b'"TooBusy"' in each for each in crowd.refusals)
                found = await anyio.to_thread.run_sync(browser.ask, "/runs/r1")
                assert found["status"] == "running"
                project.go()
                await crowd.hear(b'"completed"')

    with many_files():
        anyio.run(crowded)
    ended(run, 0)
    assert browser.ask("/runs/r1")["status"] == "completed"
    browser.process.send_signal(signal.SIGTERM)
    ended(browser.process, 0)
