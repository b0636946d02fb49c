"""The site: what every route works with. Reading happens in threads, so that nothing blocks the loop."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import attrs
from anyio.abc import TaskGroup
from starlette.requests import Request
from starlette.responses import Response

from orchestra.app.orchestra import Orchestra
from orchestra.history.archive import Archive
from orchestra.history.references import resolve, resolve_run
from orchestra.ids import RunId
from orchestra.limits import WEB_THREADS, WEB_WAITING
from orchestra.ports.store import Row, RunRow
from orchestra.web.answers import encode, is_known, json_answer
from orchestra.web.bundle.script import PAGE_FOLDER
from orchestra.web.errors import BadRequest, ReadOnly, TooBusy
from orchestra.web.feed import Feed
from orchestra.web.views.common import CheckWanted, Json
from orchestra.web.views.conversations import Conversations
from orchestra.web.views.outline import Outlines
from orchestra.web.views.runs import Runs
from orchestra.web.views.snapshots import Snapshots

T = TypeVar("T")
OrchestraFor = Callable[[RunId | None], Awaitable[Orchestra]]
"""Gives the orchestra that plays a run, or one for orders."""


@attrs.frozen(kw_only=True)
class Door:
    """Where the browser is reached, and what opens it."""

    host: str
    port: int
    token: str

    @property
    def names(self) -> tuple[str, ...]:
        """What people may call this place in an address."""
        own = (self._host, "localhost") if ":" in self.host else ("127.0.0.1", "localhost")
        return tuple(f"{name}:{self.port}" for name in own)

    @property
    def address(self) -> str:
        """The address without the token."""
        return f"http://{self._host}:{self.port}"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class Site:
    """A store, whoever plays its runs here, and how both are looked at."""

    def __init__(
        self, archive: Archive, door: Door, orchestra_for: OrchestraFor | None, *, pages: Path = PAGE_FOLDER
    ) -> None:
        """Without `orchestra_for` nothing can be changed; `pages` is the folder of the page's files."""
        self.archive, self.door, self.pages = archive, door, pages
        self._orchestra_for = orchestra_for
        self._limiter = anyio.CapacityLimiter(WEB_THREADS)
        self._waiting = 0
        self.runs = Runs(archive)
        self.snapshots = Snapshots(archive, self.runs)
        self.outlines = Outlines(archive)
        self.conversations = Conversations(archive)
        self.feed = Feed(archive, self.runs.status_of)
        self.playing: dict[RunId, Orchestra] = {}
        self._idle = anyio.Event()
        self.group: TaskGroup | None = None  # while it is served

    @property
    def is_read_only(self) -> bool:
        return self._orchestra_for is None

    async def orchestra(self, run: RunId | None, action: str) -> Orchestra:
        """The orchestra that plays a run, or one for orders; raises `ReadOnly`."""
        if self._orchestra_for is None:
            raise ReadOnly(action=action)
        return await self._orchestra_for(run)

    async def read(self, work: Callable[[], T]) -> T:
        """Work something out in a thread; raises `TooBusy` when too much is waiting."""
        if self._waiting >= WEB_WAITING:
            raise TooBusy(reason="too much is asked at once")
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._waiting -= 1

    async def read_long(self, request: Request, work: Callable[[CheckWanted], T]) -> T:
        """Work out something that takes long. `work` asks now and then whether it is still wanted.

        A page that was left, or a question that was taken back, would else keep others waiting.
        """
        gone, watching = threading.Event(), anyio.CancelScope()

        async def watch() -> None:
            with watching:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                gone.set()

        def check_wanted() -> None:
            if gone.is_set():
                raise BadRequest(reason="it broke off")

        if self.group is not None:
            self.group.start_soon(watch)
        try:
            return await self.read(lambda: work(check_wanted))
        finally:
            watching.cancel()

    def run_row(self, run: str) -> RunRow:
        """A run by its id, or by the beginning of only one."""
        return self.archive.run(resolve_run(self.archive, run))

    def row(self, run: str, at: str) -> Row:
        return resolve(self.archive, f"{run}@{at}")

    @contextmanager
    def mark_playing(self, run: RunId, orchestra: Orchestra) -> Iterator[None]:
        """While this lasts, a run is played here."""
        self.playing[run] = orchestra
        try:
            yield
        finally:
            del self.playing[run]
            if not self.playing:
                idle, self._idle = self._idle, anyio.Event()
                idle.set()

    async def wait_until_idle(self) -> None:
        while self.playing:
            await self._idle.wait()


def site_of(request: Request) -> Site:
    """The site that a request is for."""
    site: Site = request.app.state.site
    return site


async def answer_json(request: Request, work: Callable[[Site], Any]) -> Response:
    """Answer with what is worked out in a thread, as JSON."""
    site = site_of(request)
    return await site.read(lambda: json_answer(request, encode(work(site))))


async def answer_tagged(
    request: Request, run: str, at: str, version: str | None, make: Callable[[Site, Row], Json]
) -> Response:
    """An answer that depends on a snapshot and on what was asked only; the digest is its tag."""
    site = site_of(request)

    def read() -> Response:
        row = site.row(run, at)
        tag = row.digest.hex()[:32]
        body = b"" if is_known(request, tag) and not row.pruned else encode(make(site, row))
        forever = version is not None and tag.startswith(version[:32])
        return json_answer(request, body, tag=tag, forever=forever)

    return await site.read(read)


async def answer_json_long(request: Request, work: Callable[[Site, CheckWanted], Any]) -> Response:
    """Answer with what takes long, as JSON; the work ends when nobody waits for it any more."""
    site = site_of(request)
    return await site.read_long(request, lambda check: json_answer(request, encode(work(site, check))))
