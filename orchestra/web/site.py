"""The site: what every route works with. Reading happens in threads, so that nothing blocks the loop."""

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
import attrs
from anyio.abc import TaskGroup
from starlette.requests import Request

from orchestra.app.compose import SystemClock
from orchestra.app.orchestra import Orchestra
from orchestra.history.archive import Archive
from orchestra.history.references import resolve, resolve_run
from orchestra.ids import Instant, RunId
from orchestra.limits import WEB_THREADS, WEB_WAITING
from orchestra.ports.store import Row, RunRow
from orchestra.web.errors import BadRequest, ReadOnly, TooBusy
from orchestra.web.feed import Feed
from orchestra.web.views.cancel import Wanted
from orchestra.web.views.outline import Outlines
from orchestra.web.views.runs import Details, Runs
from orchestra.web.views.snapshots import Snapshots

T = TypeVar("T")
Houses = Callable[[RunId | None], Awaitable[Orchestra]]
"""Gives the orchestra that plays a run, or one for orders."""
PAGES: Final = Path(__file__).parent / "page"
_IN_PATH: Final = "@"


@attrs.frozen(kw_only=True)
class Door:
    """Where the browser is reached, and what opens it."""

    host: str
    port: int
    token: str

    @property
    def names(self) -> tuple[str, ...]:
        """What people may call this place in an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        own = {host, "localhost"} if ":" in self.host else {"localhost", "127.0.0.1"}
        return tuple(f"{name}:{self.port}" for name in sorted(own))

    @property
    def address(self) -> str:
        """The address without the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class Site:
    """A store, whoever plays its runs here, and how both are looked at."""

    def __init__(self, archive: Archive, door: Door, houses: Houses | None, *, pages: Path = PAGES) -> None:
        """Without `houses` nothing can be changed; `pages` is the folder of the page's files."""
        self.archive, self.door, self.pages = archive, door, pages
        self._houses = houses
        self._limiter = anyio.CapacityLimiter(WEB_THREADS)
        self._waiting = 0
        self.runs = Runs(archive)
        self.details = Details(archive, self.runs)
        self.snapshots = Snapshots(archive, self.runs)
        self.outlines = Outlines(archive)
        self.playing: dict[RunId, Orchestra] = {}
        self._idle = anyio.Event()
        self.feed = Feed(archive, self.runs.standing)
        self.group: TaskGroup | None = None  # while it is served

    @property
    def read_only(self) -> bool:
        """Whether nothing can be changed."""
        return self._houses is None

    async def house(self, run: RunId | None, action: str) -> Orchestra:
        """Who plays a run, or sees to orders; raises `ReadOnly`."""
        if self._houses is None:
            raise ReadOnly(action=action)
        return await self._houses(run)

    async def read(self, work: Callable[[], T]) -> T:
        """Work something out in a thread; raises `TooBusy` when too much is waiting."""
        if self._waiting >= WEB_WAITING:
            raise TooBusy(reason="too much is asked at once")
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._waiting -= 1

    async def read_long(self, request: Request, work: Callable[[Wanted], T]) -> T:
        """Work out something that takes long. `work` asks now and then whether it is still wanted.

        A page that was left, or a question that was taken back, would else keep others waiting.
        """
        gone, watching = threading.Event(), anyio.CancelScope()

        async def watch() -> None:
            with watching:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                gone.set()

        def wanted() -> None:
            if gone.is_set():
                raise BadRequest(reason="it broke off")

        if self.group is not None:
            self.group.start_soon(watch)
        try:
            return await self.read(lambda: work(wanted))
        finally:
            watching.cancel()

    def run_row(self, run: str) -> RunRow:
        """A run by its id, or by the beginning of only one."""
        return self.archive.run(resolve_run(self.archive, run))

    def row(self, run: str, at: str) -> Row:
        """A snapshot of a run."""
        return resolve(self.archive, f"{run}{_IN_PATH}{at}")

    def reference(self, reference: str) -> Row:
        """A snapshot by any reference."""
        return resolve(self.archive, reference)

    def facts(self) -> Mapping[str, Any]:
        """What is known of the store."""
        store = self.archive.store
        return {"store": store.place, "durable": store.properties.durable}

    async def drained(self) -> None:
        """Wait until no run is played here any more."""
        while self.playing:
            await self._idle.wait()

    @contextmanager
    def played(self, run: RunId, house: Orchestra) -> Iterator[None]:
        """While a run is played here."""
        self.playing[run] = house
        try:
            yield
        finally:
            del self.playing[run]
            if not self.playing:
                idle, self._idle = self._idle, anyio.Event()
                idle.set()


def now() -> Instant:
    """The wall clock, in UTC."""
    return SystemClock().now()
