"""Serving the application: uvicorn in our task group. It owns no signal, and its connections have limits."""

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
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from orchestra import limits
from orchestra.errors import BadSetting, OrchestraError
from orchestra.ports.activity import ACTIVITY
from orchestra.version import VERSION
from orchestra.web.answers import error_answer, problem_answer
from orchestra.web.errors import BadRequest, NotFound, TooBusy
from orchestra.web.guard import HEADERS, Guard
from orchestra.web.routes import actions, conversations, files, live, page, runs, states
from orchestra.web.shapes import PROBLEMS
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
        made.listen(limits.WEB_CONNECTIONS)
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
            backlog=limits.WEB_CONNECTIONS,  # no more are taken in at once, so that those refused go first
            h11_max_incomplete_event_size=limits.WEB_HEADER_BYTES,
            timeout_keep_alive=int(limits.WEB_IDLE_SECONDS),
            timeout_graceful_shutdown=_LEAVE_SECONDS,
        )
    )


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(H11Protocol):
    """A connection that is given up when its client is too slow to ask, or to take in the answer."""

    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        """Begin, unless there are too many already: that is said as soon as the client has asked."""
        super().connection_made(transport)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        if len(self.connections) > limits.WEB_CONNECTIONS * _HELD:
            transport.abort()
        elif len(self.connections) > limits.WEB_CONNECTIONS:
            self._is_refused = True
            self._start_timer("ask", _REFUSE_SECONDS, self._refuse)
        else:
            self._start_timer("ask", limits.WEB_HEADER_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request; once its headers are there the client has asked in time."""
        if self._is_refused:
            self._refuse()
            return
        asked: Any = self.cycle  # None until the first request
        # The next one on this connection has its time too.
        if "ask" not in self._timers and asked is not None and asked.response_complete:
            self._start_timer("ask", limits.WEB_HEADER_SECONDS, self.transport.abort)
        super().data_received(data)
        if self.cycle is not asked:
            self._stop_timer("ask")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer("ask")
        self._stop_timer("read")
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes nothing in: it may do so for a while."""
        super().pause_writing()
        self._start_timer("read", limits.WEB_SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_timer("read")
        super().resume_writing()

    def _refuse(self) -> None:
        """Say that there are too many, without reading what was asked."""
        if not self.transport.is_closing():
            self.transport.write(_too_many(limits.WEB_CONNECTIONS))
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


# --- the application: all routes behind the guard; its description is at /api/openapi.json


def make_app(site: Site) -> Guard:
    """The application for a site, guarded."""
    app = FastAPI(
        title="orchestra",
        version=VERSION,
        summary="Runs, their snapshots, and what can be done with them.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
        dependencies=[Depends(_name_activity)],
    )
    app.state.site = site
    groups = [group.router for group in (states, conversations, files, live)]
    for router in (runs.router, runs.of_snapshots, *groups, actions.plans, actions.router, page.router):
        app.include_router(router, responses=PROBLEMS)
    app.add_exception_handler(OrchestraError, _orchestra_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    return Guard(app, site.door)


async def _name_activity(request: Request) -> None:
    """Tell whoever keeps a record the route; it says less than the address that was asked for."""
    ACTIVITY.set(f"{request.method} {request.scope['route'].path}")


async def _orchestra_error(_request: Request, error: Any) -> Response:
    return error_answer(error)


async def _validation_error(_request: Request, error: Any) -> Response:
    wrong = error.errors()
    where = wrong[0]["loc"][1:2]
    said = dict.fromkeys(each["msg"] for each in wrong if each["loc"][1:2] == where)
    return error_answer(BadRequest(reason=": ".join([*map(str, where), " or ".join(said)])), 422)


async def _http_error(request: Request, error: Any) -> Response:
    if error.status_code == 404:
        return error_answer(NotFound(path=request.url.path[:200]))
    said = f"{error.detail}. See /api/openapi.json."
    return problem_answer("BadRequest", said, error.status_code, error.headers or {})
