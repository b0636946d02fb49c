"""Serving: uvicorn inside our task group. It owns no signal, and its connections have limits of their own."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import anyio
import uvicorn
from anyio.abc import TaskStatus
from uvicorn.protocols.http.h11_impl import H11Protocol

from orchestra.errors import BadSetting
from orchestra.limits import (
    WEB_CONNECTIONS,
    WEB_HEADER_BYTES,
    WEB_HEADER_SECONDS,
    WEB_IDLE_SECONDS,
    WEB_SEND_SECONDS,
)
from orchestra.web.answers import error_answer
from orchestra.web.app import make_app
from orchestra.web.errors import TooBusy
from orchestra.web.guard import HEADERS
from orchestra.web.site import Site

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_LEAVE_SECONDS: Final = 2
_REFUSE_SECONDS: Final = 5.0
"""How long a client that is refused may take to ask: an answer sent before it has asked may be lost."""
_HELD: Final = 3
"""How many times as many connections as are served may be there at once, on their way to be refused."""


def open_listener(host: str, port: int) -> socket.socket:
    """A socket that only this machine can reach; raises `BadSetting`."""
    if host not in LOOPBACK:
        reason = "it is for this machine only: use 127.0.0.1 or ::1"
        raise BadSetting(setting="--host", value=host, reason=reason)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's algorithm on: short answers then wait 40 ms to be acknowledged.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(WEB_CONNECTIONS)
    except (OSError, OverflowError) as error:
        made.close()
        reason = f"{host}:{port} cannot be listened on ({getattr(error, 'strerror', None) or error})"
        raise BadSetting(setting="--port", value=port, reason=reason) from None
    made.setblocking(False)
    return made


async def serve(
    site: Site, listener: socket.socket, stop: anyio.Event, *, task_status: TaskStatus[None]
) -> None:
    """Answer until told to stop; open streams end then too."""
    server = _server(site)
    async with anyio.create_task_group() as group:
        site.group = group

        async def until_told() -> None:
            await stop.wait()
            site.feed.close()
            server.should_exit = True

        group.start_soon(until_told)
        group.start_soon(site.feed.poll)
        task_status.started()
        try:
            await server.serve(sockets=[listener])
        finally:
            site.feed.close()
            listener.close()
            stop.set()


def _server(site: Site) -> "_Server":
    log = logging.getLogger("uvicorn")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    return _Server(
        uvicorn.Config(
            make_app(site),
            http=_Protocol,
            loop="none",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=WEB_CONNECTIONS,  # no more are taken in at once, so that those refused can go first
            h11_max_incomplete_event_size=WEB_HEADER_BYTES,
            timeout_keep_alive=int(WEB_IDLE_SECONDS),
            timeout_graceful_shutdown=_LEAVE_SECONDS,
        )
    )


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class _Protocol(H11Protocol):
    """A connection that is given up when its client is too slow to ask, or to take in the answer."""

    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        """Begin, unless there are too many already: that is said as soon as the client has asked."""
        super().connection_made(transport)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        if len(self.connections) > WEB_CONNECTIONS * _HELD:
            transport.abort()
        elif len(self.connections) > WEB_CONNECTIONS:
            self._is_refused = True
            self._start_timer("ask", _REFUSE_SECONDS, self._refuse)
        else:
            self._start_timer("ask", WEB_HEADER_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request; once its headers are there the client has asked in time."""
        if self._is_refused:
            self._refuse()
            return
        asked: Any = self.cycle  # None until the first request
        if "ask" not in self._timers and asked is not None and asked.response_complete:
            self._start_timer(
                "ask", WEB_HEADER_SECONDS, self.transport.abort
            )  # the next one on this connection
        super().data_received(data)
        if self.cycle is not asked:
            self._stop_timer("ask")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_timer("ask")
        self._stop_timer("read")
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes nothing in: it may do so for a while."""
        super().pause_writing()
        self._start_timer("read", WEB_SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client goes on reading."""
        self._stop_timer("read")
        super().resume_writing()

    def _refuse(self) -> None:
        """Say that there are too many, without reading what was asked."""
        if not self.transport.is_closing():
            self.transport.write(_too_many(WEB_CONNECTIONS))
            self.transport.close()

    def _start_timer(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        self._stop_timer(name)
        self._timers[name] = self.loop.call_later(seconds, act)

    def _stop_timer(self, name: str) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()


@cache
def _too_many(served: int) -> bytes:
    """The answer to whoever comes when as many connections as are served are open."""
    answer = error_answer(TooBusy(reason=f"{served} connections are open"))
    headers = dict(answer.raw_headers) | HEADERS
    lines = [name + b": " + value for name, value in headers.items()]
    return b"\r\n".join((b"HTTP/1.1 503 Service Unavailable", *lines, b"", bytes(answer.body)))
