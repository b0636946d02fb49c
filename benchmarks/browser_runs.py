"""Runs for measuring the browser: long ones, great values, and one that goes on while it is watched.

`python -m benchmarks.browser_runs live URL RATE SECONDS` writes the last, in a process of its own; it prints
its id first.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio

from benchmarks.demo.long import great, long
from benchmarks.demo.stage import PlayClock, Stage
from benchmarks.demo.texts import Part
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.ids import Instant, RunId
from orchestra.stores.registry import open_store

OWNER: Final = "benchmark"
START: Final = Instant(1_763_200_000_000_000)
MEGABYTE: Final = 1_000_000
PLAYS: Final[dict[str, Callable[[Stage], Awaitable[RunId]]]] = {
    "ten-thousand": lambda stage: long(stage, 10_000),
    "hundred-thousand": lambda stage: long(stage, 100_000),
    "ten-megabytes": lambda stage: great(stage, 10 * MEGABYTE),
    "one-megabyte": lambda stage: great(stage, MEGABYTE),
}


def recorded(folder: Path, names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """A store for each play, made where it is not there yet: name -> (store URL, run)."""
    return {name: _recorded(folder / f"{name}.db", PLAYS[name]) for name in names}


def _recorded(path: Path, play: Callable[[Stage], Awaitable[RunId]]) -> tuple[str, str]:
    url, done = f"sqlite:{path}", path.with_suffix(".run")
    if done.exists():
        return url, done.read_text()
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()
    run = anyio.run(_played, url, play)
    done.write_text(run)
    return url, run


async def _played(url: str, play: Callable[[Stage], Awaitable[RunId]]) -> RunId:
    clock = PlayClock(START)
    with open_store(url, create=True) as store:
        async with CheckpointManager(store, clock=clock, owner=OWNER) as manager:
            return await play(Stage(manager, store, clock, 7))


async def live(url: str, rate: float, seconds: float) -> None:
    """A run that writes `rate` snapshots a second for so many seconds; its id is printed first."""
    clock = PlayClock(Instant(time.time_ns() // 1000))
    with open_store(url, create=True) as store:
        async with CheckpointManager(store, clock=clock, owner=OWNER) as manager:
            stage = Stage(manager, store, clock, 11)
            await stage.begin("Write while somebody watches", "live", files=1)
            print(stage.active.run, flush=True)
            sys.stdin.readline()  # until somebody watches
            await _written(stage, rate, round(rate * seconds))
            await stage.end()


async def _written(stage: Stage, rate: float, count: int) -> None:
    part = Part(
        agent="writer",
        task="line",
        description="Write line after line.",
        steps=tuple((number / count, f"line {number}") for number in range(count)),
        words=(),
        result={"summary": "", "findings": []},
        confidence=0.8,
        tokens=1,
    )
    await stage.turn(stage.planned(part), stage.launched(part), after=0)
    began = time.monotonic()
    for number in range(count):
        await stage.turn(
            stage.milestone(part, 0)[0], stage.confident(0.5 + (number % 50) / 100), after=1 / rate
        )
        await anyio.sleep(max(0.0, began + (number + 1) / rate - time.monotonic()))


if __name__ == "__main__":
    _, word, where, per_second, length = sys.argv
    assert word == "live", "BUG: only a live run is written by a process of its own"
    anyio.run(live, where, float(per_second), float(length))
