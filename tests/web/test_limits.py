"""Clients that ask too much, too slowly, or do not take in the answer; others are served meanwhile."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from orchestra import limits
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.ids import RunId
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store
from orchestra.testing.clock import FakeClock
from orchestra.web import guard, server
from orchestra.web.views import states
from tests.unit.cli.recording import REVIEW, Recorder
from tests.web.support import SECONDS, TOKEN, Visitor, served
from tests.web.wire import exchange, read_reply, request

pytestmark = pytest.mark.anyio
BEARER = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


@pytest.fixture
async def visitor(recorded: Store) -> AsyncIterator[Visitor]:
    async with served(recorded) as made:
        yield made


def _host(visitor: Visitor) -> str:
    return visitor.site.door.address.removeprefix("http://")


async def test_short_answers_are_sent_at_once(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagle's algorithm would hold the body back until the client has acknowledged the head: 40 ms."""
    told: list[int] = []
    begun = server._Protocol.connection_made

    def connection_made(self: server._Protocol, transport: asyncio.Transport) -> None:
        told.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        begun(self, transport)

    monkeypatch.setattr(server._Protocol, "connection_made", connection_made)
    await visitor.get("/info")
    assert told == [1]


class Timers:
    """The timers of connections: they ring when a test says so, not when time has passed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._started: list[tuple[str, float, asyncio.TimerHandle, Callable[[], None]]] = []
        self._more = anyio.Event()
        start = server._Protocol._start_timer

        def start_for_ever(
            self_: server._Protocol, name: str, seconds: float, act: Callable[[], None]
        ) -> None:
            start(self_, name, 1e6, act)
            self._started.append((name, seconds, self_._timers[name], act))
            self._more.set()

        monkeypatch.setattr(server._Protocol, "_start_timer", start_for_ever)

    def running(self, name: str) -> list[tuple[float, Callable[[], None]]]:
        """How long each that has not been stopped would take, and what it does."""
        found = [(seconds, act, timer) for each, seconds, timer, act in self._started if each == name]
        return [(seconds, act) for seconds, act, timer in found if not timer.cancelled()]

    async def ring(self, name: str, count: int, seconds: float) -> None:
        """Let so many ring, once they run; all are for so many seconds."""
        with anyio.fail_after(SECONDS):
            while len(self.running(name)) < count:
                self._more = anyio.Event()
                await self._more.wait()
        timers = self.running(name)
        assert [each for each, _ in timers] == [seconds] * count
        for _, act in timers:
            act()


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


async def test_clients_that_never_finish_asking_are_given_up(timers: Timers, visitor: Visitor) -> None:
    given_up = 0

    async def dawdle() -> None:
        nonlocal given_up
        async with await anyio.connect_tcp("127.0.0.1", visitor.site.door.port) as stream:
            await stream.send(f"GET /api/info HTTP/1.1\r\nHost: {_host(visitor)}\r\nX-A: ".encode())
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
            given_up += 1

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(dawdle)
            assert (await visitor.get("/info"))["durable"] is True
            await timers.ring("ask", 50, limits.WEB_HEADER_SECONDS)
    assert given_up == 50
    assert (await visitor.get("/info"))["durable"] is True


async def test_a_client_that_asks_in_time_may_ask_again_later(timers: Timers, visitor: Visitor) -> None:
    await visitor.get("/info")
    assert timers.running("ask") == [], "it asked: its time to do so has ended"
    await visitor.get("/info")
    assert timers.running("ask") == []
    assert len(visitor.client._transport._pool.connections) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "more",
    [
        "".join(f"X-{number}: {number}\r\n" for number in range(10_000)),
        f"X-Long: {'a' * 100_000}\r\n",
        f"Cookie: {'a=b; ' * 20_000}\r\n",
    ],
    ids=["10,000 headers", "one long header", "a long cookie"],
)
async def test_headers_have_a_limit(visitor: Visitor, more: str) -> None:
    start = f"GET /api/info HTTP/1.1\r\nHost: {_host(visitor)}\r\n"
    reply = await exchange(visitor, f"{start}{more}\r\n".encode())
    assert reply is None or reply.status in (400, 431)
    assert (await visitor.get("/info"))["durable"] is True


async def test_a_long_address_is_refused(visitor: Visitor) -> None:
    reply = await exchange(visitor, request("GET", "/" + "a" * 100_000, host=_host(visitor)))
    assert reply is None or reply.status in (400, 414, 431)


async def test_a_body_that_says_it_is_too_large_is_not_read(visitor: Visitor) -> None:
    said = BEARER | {"Content-Length": str(1 << 30)}
    sent = request("POST", f"/api/runs/{REVIEW}/note", host=_host(visitor), headers=said)
    reply = await exchange(visitor, sent + b"{")
    assert reply is not None
    assert reply.status == 413
    assert json.loads(reply.body)["error"] == "TooLarge"


async def test_a_body_without_end_is_cut_off(visitor: Visitor) -> None:
    said = BEARER | {"Transfer-Encoding": "chunked"}
    sent = request("POST", f"/api/runs/{REVIEW}/note", host=_host(visitor), headers=said)
    count = 0
    with anyio.fail_after(SECONDS):
        async with await anyio.connect_tcp("127.0.0.1", visitor.site.door.port) as stream:
            await stream.send(sent)
            try:
                while count < 10_000:
                    await stream.send(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
                    count += 1
            except anyio.BrokenResourceError:
                pass
            reply = await read_reply(stream)
    assert count < 10_000
    assert reply is None or reply.status == 413


async def test_a_body_that_does_not_come_is_not_waited_for(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "WEB_BODY_SECONDS", 0.2)
    said = BEARER | {"Content-Length": "100"}
    sent = request("POST", f"/api/runs/{REVIEW}/note", host=_host(visitor), headers=said)
    reply = await exchange(visitor, sent + b"{")
    assert reply is not None
    assert reply.status == 408


@pytest.mark.parametrize("length", ["-1", "x", "1e9", "5, 5", ""])
async def test_a_length_that_is_none_is_refused(visitor: Visitor, length: str) -> None:
    said = BEARER | {"Content-Length": length}
    reply = await exchange(
        visitor, request("POST", f"/api/runs/{REVIEW}/note", host=_host(visitor), headers=said)
    )
    assert reply is None or reply.status in (400, 403, 408, 413)


async def test_a_question_has_no_body(visitor: Visitor) -> None:
    found = await visitor.client.request("GET", "/api/info", content=b"{}")
    assert found.status_code == 400


@pytest.mark.parametrize("body", ["[" * 200_000, '{"at":' * 50_000, '{"a":1e999}', "nul", '"\\ud800"'])
async def test_odd_json_is_refused(visitor: Visitor, body: str) -> None:
    done = await visitor.client.post(f"/api/runs/{REVIEW}/note", content=body, headers=BEARER)
    assert done.status_code in (400, 403, 422)


async def test_listeners_have_a_limit_and_leave_room_for_others(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WEB_LISTENERS", 8)
    leave, there = anyio.Event(), anyio.Semaphore(0)

    async def listen() -> None:
        async with visitor.client.stream("GET", "/api/events") as response:
            assert response.status_code == 200
            there.release()
            await leave.wait()

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(listen)
        for _ in range(8):
            await there.acquire()
        status, body = await visitor.refused("/events")
        assert (status, body["error"]) == (503, "TooBusy")
        await visitor.get("/info")
        leave.set()
    with anyio.fail_after(SECONDS):
        while True:
            if await _status(visitor) == 200:
                return
            await anyio.sleep(0.01)


async def _status(visitor: Visitor) -> int:
    async with visitor.client.stream("GET", "/api/events") as response:
        return response.status_code


async def test_connections_have_a_limit(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WEB_CONNECTIONS", 20)
    monkeypatch.setattr(server, "_REFUSE_SECONDS", 0.1)
    await visitor.get("/info")
    held = [await anyio.connect_tcp("127.0.0.1", visitor.site.door.port) for _ in range(40)]
    await visitor.get("/info")
    for stream in held[20:]:
        with anyio.fail_after(SECONDS):
            reply = await read_reply(stream)
        assert reply is not None
        assert (reply.status, json.loads(reply.body)["error"]) == (503, "TooBusy")
        assert reply.headers["content-security-policy"] == guard.POLICY
    for stream in held:
        await stream.aclose()
    async with httpx.AsyncClient(base_url=visitor.site.door.address, headers=BEARER) as other:
        assert (await other.get("/api/info")).status_code == 200


@pytest.mark.parametrize(
    ("module", "name", "question"),
    [
        (states, "touches", 'touches?path=["status"]'),
        (states, "first", "first?expr=true"),
        (states, "matches", "matches?expr=true"),
        (states, "blame_json", 'blame?path=["status"]'),
    ],
)
async def test_what_nobody_waits_for_any_more_is_not_worked_out(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, question: str
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless(*given: Any) -> None:
        wanted = given[-1]
        try:
            while True:
                wanted()
                begun.set()
                time.sleep(0.001)
        finally:
            ended.set()

    monkeypatch.setattr(module, name, endless)
    sent = request(
        "GET",
        f"/api/runs/{REVIEW}/{question}".replace('"', "%22"),
        host=_host(visitor),
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    async with await anyio.connect_tcp("127.0.0.1", visitor.site.door.port) as stream:
        await stream.send(sent)
        assert await anyio.to_thread.run_sync(begun.wait, SECONDS)
    assert await anyio.to_thread.run_sync(ended.wait, SECONDS)


BIG = 50 * 1024 * 1024


@pytest.fixture
async def big(tmp_path: Path) -> AsyncIterator[Visitor]:
    """A run with a text of 50 MB in it."""
    with open_store(f"sqlite:{tmp_path}/big.db", create=True) as store:
        clock = FakeClock()
        async with CheckpointManager(store, clock=clock, owner="test") as manager:
            recorder = Recorder(manager, clock)
            active = await recorder.begin(RunId("big"), "big")
            await recorder.phase(active, "find")
            await recorder.task(
                active, "large", {"text": "0123456789abcdef" * (BIG // 16), "bytes": bytes(9000)}
            )
            await manager.release(active)
        async with served(store) as made:
            yield made


async def test_a_text_of_50_mb_is_cut_and_can_be_had_whole(big: Visitor) -> None:
    where = "/runs/big/snapshots/head/state"
    whole = await big.get(where)
    assert whole["value"]["tasks"]["large"]["result"]["$large"]["size"] > BIG
    opened = await big.get(where, path=["tasks", "large", "result"])
    assert opened["value"]["text"]["$cut"]["size"] == BIG
    assert len(opened["value"]["text"]["$cut"]["text"]) == limits.WEB_TEXT_CHARS
    assert opened["value"]["bytes"]["$cut"]["size"] == 9000
    alone = await big.get(where, path=["tasks", "large", "result", "text"])
    assert (alone["count"], alone["whole"]) == (BIG, False)
    raw = await big.client.get(
        f"/api{where}", params={"path": json.dumps(["tasks", "large", "result", "text"]), "raw": 1}
    )
    assert len(raw.content) == BIG


async def test_a_client_that_does_not_take_in_the_answer_is_given_up(timers: Timers, big: Visitor) -> None:
    path = '["tasks","large","result","text"]'.replace('"', "%22")
    sent = request(
        "GET", f"/api/runs/big/snapshots/head/state?raw=1&path={path}", host=_host(big), headers=BEARER
    )
    with anyio.fail_after(SECONDS):
        async with await anyio.connect_tcp("127.0.0.1", big.site.door.port) as stream:
            await stream.send(sent)
            await timers.ring("read", 1, limits.WEB_SEND_SECONDS)
            reply = await read_reply(stream)
    assert reply is None or len(reply.body) < BIG


async def test_a_part_of_a_file_cannot_be_asked_for(big: Visitor) -> None:
    whole = await big.client.get("/api/runs/big/export")
    for part in ("bytes=0-1", "bytes=-5", "bytes=" + ",".join(f"{at}-{at}" for at in range(1000))):
        found = await big.client.get("/api/runs/big/export", headers={"Range": part})
        assert found.status_code == 200
        assert len(found.content) == len(whole.content)


async def test_open_streams_do_not_keep_the_browser_from_ending(recorded: Store) -> None:
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            ended = anyio.Event()

            async def listen(visitor: Visitor, begun: anyio.Event) -> None:
                client = httpx.AsyncClient(base_url=visitor.site.door.address, headers=BEARER)
                async with client, client.stream("GET", "/api/events") as response:
                    async for _ in response.aiter_bytes():
                        begun.set()
                ended.set()

            async with served(recorded) as visitor:
                begun = anyio.Event()
                group.start_soon(listen, visitor, begun)
                await begun.wait()
            await ended.wait()
