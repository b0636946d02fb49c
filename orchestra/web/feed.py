"""The feed: what happens in the store, as it happens, to whoever listens, as server-sent events.

One poller looks for new commits while anybody listens, and keeps the newest events in memory. Every listener
goes along at its own pace by the commit number it has reached. One that fell behind what is kept in memory
reads from the store what it missed, so nothing is lost and nobody's queue grows.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
import attrs

from orchestra import limits
from orchestra.errors import DamageError, OrchestraError
from orchestra.history.archive import Archive, if_whole
from orchestra.ids import RunId
from orchestra.model.snapshot import Header
from orchestra.ports.store import Row, RowQuery, RunQuery, RunRow
from orchestra.web.answers import json_line
from orchestra.web.errors import TooBusy
from orchestra.web.views.common import Json, attributes
from orchestra.web.views.snapshots import header_json

_STANDING_SECONDS: Final = 1.0
_WATCHED_RUNS: Final = 500
_NOTICES: Final = 256
_RUN: Final = ("run", "status", "owned", "head", "phase")
_SNAPSHOT: Final = ("no", "run", "seq", "at", "status", "phase", "triggers", "agents", "marked", "size")
_STREAMED: Final = frozenset({"text_emitted", "message_streamed"})


@attrs.frozen
class _Notice:
    """That a run has a new snapshot, that its standing changed, or that it is gone."""

    run: RunId
    event: bytes  # as it is sent, to however many listen
    no: int = 0  # the commit number of the snapshot


@attrs.frozen
class _News:
    """What one look at the store brought."""

    events: list[_Notice]
    position: int
    standings: dict[RunId, str] | None  # None: they were not looked at
    notices: list[_Notice]


class Feed:
    """What is new, and who waits for it. Only the loop's thread changes it; other threads read the store."""

    def __init__(self, archive: Archive, standing: Callable[[RunRow], str]) -> None:
        """`standing` tells how a run stands."""
        self._archive, self._standing = archive, standing
        self._limiter = anyio.CapacityLimiter(2)
        self._position: int | None = None  # the newest commit that was looked at; None: nobody listened yet
        self._recent: deque[_Notice] = deque(maxlen=limits.WEB_LISTENER_EVENTS)
        self._from = 0  # events after this number are all in `_recent`
        self._notices: deque[_Notice] = deque(maxlen=_NOTICES)
        self._noticed = 0
        self._standings: dict[RunId, str] = {}
        self._looked = 0.0
        self._listeners = 0
        self._wanted = anyio.Event()
        self._news = anyio.Event()
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._wanted.set()
        self._tell()

    async def poll(self) -> None:
        """Look for news again and again, while anybody listens."""
        while not self._closed:
            if not self._listeners:
                self._wanted = anyio.Event()
                await self._wanted.wait()
                continue
            try:
                found = await anyio.to_thread.run_sync(self._look, self._position, limiter=self._limiter)
            except OrchestraError:
                await anyio.sleep(_STANDING_SECONDS)  # a store that cannot be read now may be read later
                continue
            self._take(found)
            await anyio.sleep(limits.WEB_FEED_SECONDS)

    def _look(self, position: int | None) -> _News:
        newest = self._archive.store.last_no()
        if position is None or newest - position > limits.WEB_LISTENER_EVENTS:
            position = newest  # what is older is read by those who want it
        events: list[_Notice] = []
        while position < newest:
            position, found = self._read_after(position, None, newest)
            events += found
        if time.monotonic() - self._looked < _STANDING_SECONDS:
            return _News(events, position, None, [])
        return _News(events, position, *self._look_at_standings())

    def _take(self, found: _News) -> None:
        if self._position is None or (not found.events and found.position > self._position):
            self._recent.clear()
            self._from = found.position
        self._position = found.position
        self._recent.extend(found.events)
        if len(self._recent) == self._recent.maxlen:
            self._from = max(self._from, self._recent[0].no)
        self._notices.extend(found.notices)
        self._noticed += len(found.notices)
        if found.standings is not None:
            self._standings, self._looked = found.standings, time.monotonic()
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    def _rows_after(self, position: int, run: RunId | None, newest: int) -> tuple[list[Row], int]:
        """Rows after a commit number, and the number that was reached; damaged ones are passed over."""
        query = RowQuery(run=run, after_no=position, limit=limits.WEB_FEED_ROWS)
        read = self._archive.store.rows
        rows = if_whole(lambda: read(query), None)
        if rows is None:  # one at a time, then
            rows = if_whole(lambda: read(attrs.evolve(query, limit=1)), [])
            return rows, rows[0].no if rows else position + 1
        reached = rows[-1].no if rows else position
        return rows, reached if len(rows) == limits.WEB_FEED_ROWS else max(newest, reached)

    def _look_at_standings(self) -> tuple[dict[RunId, str], list[_Notice]]:
        rows = self._archive.store.runs(RunQuery(limit=_WATCHED_RUNS))
        before, now = self._standings, {row.run: self._standing(row) for row in rows}
        changed = [row for row in rows if before.get(row.run, now[row.run]) != now[row.run]]
        gone = [run for run in before.keys() - now.keys() if self._archive.store.run(run) is None]
        return now, [
            *(
                _Notice(row.run, _server_event("run", attributes(row, *_RUN) | {"standing": now[row.run]}))
                for row in changed
            ),
            *(_Notice(run, _server_event("gone", {"run": run})) for run in gone),
        ]

    async def listen(self, run: RunId | None, after: int | None) -> AsyncIterator[bytes]:
        """Everything after a commit number, or from now on, as server-sent events; for who has a `place`."""
        newest = await anyio.to_thread.run_sync(self._archive.store.last_no, limiter=self._limiter)
        position, noticed = newest if after is None else min(after, newest), self._noticed
        self._wanted.set()
        yield b"retry: 1000\n\n"
        while not self._closed:
            news = self._news
            position, found = await self._events_after(position, run)
            count = min(self._noticed - noticed, len(self._notices))
            found += list(self._notices)[len(self._notices) - count :]
            noticed = self._noticed
            if parts := [each.event for each in found if run in (None, each.run)]:
                yield b"".join(parts)
            else:
                with anyio.move_on_after(limits.WEB_HEARTBEAT_SECONDS) as waited:
                    await news.wait()
                if waited.cancelled_caught:
                    yield b": still here\n\n"

    async def _events_after(self, position: int, run: RunId | None) -> tuple[int, list[_Notice]]:
        """The number that is reached, and the snapshots from the given number up to it."""
        upto = self._position
        if upto is None or position >= upto:
            return position, []
        if position >= self._from:
            return upto, [each for each in self._recent if position < each.no <= upto]
        read = partial(self._read_after, position, run, upto)
        return await anyio.to_thread.run_sync(read, limiter=self._limiter)

    def _read_after(self, position: int, run: RunId | None, upto: int) -> tuple[int, list[_Notice]]:
        rows, reached = self._rows_after(position, run, upto)
        return reached, [_snapshot_notice(self._archive, row) for row in rows]

    def check_room(self) -> None:
        """Raises `TooBusy` when as many listen as may."""
        if self._listeners >= limits.WEB_LISTENERS:
            raise TooBusy(reason=f"{limits.WEB_LISTENERS} listen already")

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among those who listen, taken as it is asked for, since many may come at once."""
        self.check_room()
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1


def _snapshot_notice(archive: Archive, row: Row) -> _Notice:
    """What listeners are told of a new snapshot; damage is told, not raised."""
    header, damage, text = None, None, list[Json]()
    try:
        header = archive.header(row)
        text = _streamed_text(archive, row, header)
    except DamageError as error:
        damage = str(error)
    sealed = row.sealed_at == row.seq
    told = attributes(row, *_SNAPSHOT) | header_json(header, damage) | {"sealed": sealed, "text": text}
    return _Notice(row.run, _server_event("snapshot", told, row.no), row.no)


def _server_event(name: str, told: Json, no: int | None = None) -> bytes:
    number = b"" if no is None else b"id: %d\n" % no
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), number, json_line(told))


def _streamed_text(archive: Archive, row: Row, header: Header) -> list[Json]:
    """Text that agents wrote in this turn, as it came."""
    if row.pruned or _STREAMED.isdisjoint(line.kind for line in header.events):
        return []
    found: list[Json] = []
    for operation in archive.step(row).operations:
        match operation:
            case ["append" | "set", ["agents", str(agent), "partial"], str(text)]:
                found.append({"agent": agent, "message": None, "append": text})
            case ["append", ["messages", str(message), "parts", int(), "text"], str(text)]:
                found.append({"agent": None, "message": message, "append": text})
            case _:
                pass
    return found
