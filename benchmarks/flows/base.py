"""What every engine's adapter shares: the shape of a run, and how many runs are played and timed.

A run is five phases one after the other, each with three specialists that return 1; the fifteen results
are collected in the run's state, and whoever plays a run looks that they are. An adapter opens one fresh
store at its library's default durability and plays whole runs in it. The clock is here and the same for
all: a few runs to warm up, then, each time it is its turn, runs for so many seconds, so many at once all the
time; what is under way when the time is up is finished and counted.
"""

from __future__ import annotations

import abc
import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

import attrs

PHASES: Final = 5
SPECIALISTS: Final = 3
RESULTS: Final = PHASES * SPECIALISTS


@attrs.frozen(kw_only=True)
class Load:
    """How runs are played: how many at once, for how long each turn, and how many at least."""

    at_once: int
    seconds: float
    least: int
    warm: int = 8


@attrs.frozen(kw_only=True)
class Played:
    """What came of it."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    runs: tuple[float, ...] = ()
    """How long each run took."""

    def and_then(self, more: Played) -> Played:
        """What came of this and another turn."""
        return Played(
            seconds=self.seconds + more.seconds,
            cpu_seconds=self.cpu_seconds + more.cpu_seconds,
            runs=self.runs + more.runs,
        )


class Turns(Protocol):
    """When to play: contestants take turns, so that all of them meet the same machine."""

    def wait(self) -> bool:
        """Say that the last turn is over and wait for the next; False when there is none any more."""


class Alone:
    """So many turns, one after the other, with nobody else to wait for."""

    def __init__(self, turns: int = 1) -> None:
        self._left = turns

    def wait(self) -> bool:
        """Whether there is one more turn."""
        self._left -= 1
        return self._left >= 0


class Meter:
    """Hands out runs until there were enough and the time is up, and keeps how long each took."""

    def __init__(self, least: int, seconds: float = 0.0) -> None:
        self._least = least
        self._lock = threading.Lock()
        self._handed, self._taken = 0, list[float]()
        self._began, self._cpu = time.perf_counter(), time.process_time()
        self._until = self._began + seconds

    def next(self) -> bool:
        """Whether one more run is wanted."""
        with self._lock:
            if self._handed >= self._least and time.perf_counter() >= self._until:
                return False
            self._handed += 1
            return True

    def took(self, seconds: float, results: int) -> None:
        """A run is over."""
        if results != RESULTS:
            raise AssertionError(f"a run collected {results} results and not {RESULTS}")
        self._taken.append(seconds)

    def read(self) -> Played:
        """What was measured; once, at the end."""
        return Played(
            seconds=time.perf_counter() - self._began,
            cpu_seconds=time.process_time() - self._cpu,
            runs=tuple(self._taken),
        )


class Flow(abc.ABC):
    """One library's way to play such a run."""

    name: str
    family: str
    durability: str = ""
    """What a finished run survives, in a few words."""
    note: str = ""
    """How its runs differ from what was asked for, if they do."""
    same_shape: bool = True
    """Whether the specialists of a phase work side by side."""
    distributions: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        """`folder` exists and is empty; nothing is opened yet."""
        self.folder = folder

    @staticmethod
    @abc.abstractmethod
    def probe() -> None:
        """Import everything the adapter needs; raises when something is not there."""

    @abc.abstractmethod
    def play(self, load: Load, turns: Turns) -> Played:
        """Open the store, warm up, play runs with the clock on at every turn, close the store."""


class AsyncFlow(Flow):
    """Runs are coroutines of one event loop."""

    @abc.abstractmethod
    def opened(self) -> AbstractAsyncContextManager[None]:
        """The store, open."""

    @abc.abstractmethod
    async def run(self) -> int:
        """One run from its start to its end; how many results its state holds then."""

    def play(self, load: Load, turns: Turns) -> Played:
        return asyncio.run(self._play(load, turns))

    async def _play(self, load: Load, turns: Turns) -> Played:
        played = Played()
        async with self.opened():
            await self._batch(Meter(load.warm), load.at_once)
            while await asyncio.to_thread(turns.wait):
                meter = Meter(load.least, load.seconds)
                await self._batch(meter, load.at_once)
                await self.settled()
                played = played.and_then(meter.read())
        return played

    async def settled(self) -> None:
        """Wait for what belongs to the runs and goes on behind them; it is on the clock."""

    async def _batch(self, meter: Meter, at_once: int) -> None:
        await asyncio.gather(*(self._in_turn(meter) for _ in range(at_once)))

    async def _in_turn(self, meter: Meter) -> None:
        while meter.next():
            began = time.perf_counter()
            results = await self.run()
            meter.took(time.perf_counter() - began, results)


class ThreadFlow(Flow):
    """Runs are calls, as many threads as there are runs at once."""

    @abc.abstractmethod
    def opened(self) -> AbstractContextManager[None]:
        """The store, open."""

    @abc.abstractmethod
    def run(self) -> int:
        """One run from its start to its end; how many results its state holds then."""

    def play(self, load: Load, turns: Turns) -> Played:
        played = Played()
        with self.opened(), ThreadPoolExecutor(load.at_once) as pool:
            self._batch(pool, Meter(load.warm), load.at_once)
            while turns.wait():
                meter = Meter(load.least, load.seconds)
                self._batch(pool, meter, load.at_once)
                played = played.and_then(meter.read())
        return played

    def _batch(self, pool: ThreadPoolExecutor, meter: Meter, at_once: int) -> None:
        for under_way in [pool.submit(self._in_turn, meter) for _ in range(at_once)]:
            under_way.result()

    def _in_turn(self, meter: Meter) -> None:
        while meter.next():
            began = time.perf_counter()
            results = self.run()
            meter.took(time.perf_counter() - began, results)
