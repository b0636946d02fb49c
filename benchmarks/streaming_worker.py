"""One contestant of `benchmarks.streaming` in a process of its own, told when to play as engines are.

`python -m benchmarks.streaming_worker` reads a job as a line of JSON from standard input. A turn is one
conversation, or one stream; a short one before the first is not measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from benchmarks.engine_worker import Told, stored_bytes
from benchmarks.figures import Figures, calm_heap, peak_bytes, percentiles
from benchmarks.flows.base import Turns
from benchmarks.peers.base import quiet
from benchmarks.talks import Talk, talk_named, version_of
from benchmarks.talks.script import END, Source, Ticks, tokens

WINDOW: Final = 10
"""How many steps are the first ones, and the last; the very first, which begins the run, is neither."""
WARM_STEPS, WARM_TOKENS = 5, 100


@attrs.frozen(kw_only=True)
class Job:
    """What a worker is to do: conversations of so many steps, or streams of so many tokens at a rate."""

    name: str
    folder: str
    result: str
    steps: int = 0
    tokens: int = 0
    rate: float = 0.0


def work(job: Job, turns: Turns) -> Figures:
    """Do the job of that name."""
    talk = talk_named(job.name)
    talk.probe()
    calm_heap()
    contestant = talk(Path(job.folder))
    figures = Figures(name=talk.name, n=job.steps or job.tokens)
    figures.durability, figures.version = talk.durability, version_of(talk)
    asyncio.run(
        _talks(contestant, job, turns, figures) if job.steps else _streams(contestant, job, turns, figures)
    )
    return figures


async def _talks(talk: Talk, job: Job, turns: Turns, figures: Figures) -> None:
    """Conversations, one a turn."""
    played: list[list[tuple[float, float]]] = []
    async with talk.opened():
        await _converse(talk, WARM_STEPS)
        while await asyncio.to_thread(turns.wait):
            played.append(await _converse(talk, job.steps))
    figures.metrics["bytes"] = stored_bytes(talk.folder) / len(played)
    figures.metrics |= step_figures(played)


async def _converse(talk: Talk, steps: int) -> list[tuple[float, float]]:
    ticks = Ticks()
    ended = await talk.converse(steps, ticks)
    if ended != END or len(ticks.asked) != steps:
        raise AssertionError(f"a conversation of {len(ticks.asked)} steps ended with {ended[:80]!r}")
    return ticks.steps()


def step_figures(played: list[list[tuple[float, float]]]) -> dict[str, float]:
    """What a step took: of all, of the first, and of the last."""
    walls = [wall for talk in played for wall, _ in talk]
    p50, p95, _ = percentiles(walls)
    found = {"p50": p50, "p95": p95, "cpu": statistics.median(cpu for talk in played for _, cpu in talk)}
    parts: dict[str, Callable[[list[tuple[float, float]]], list[tuple[float, float]]]] = {
        "first": lambda talk: talk[1 : 1 + WINDOW],
        "last": lambda talk: talk[-WINDOW:],
    }
    for name, part in parts.items():
        some = [step for talk in played for step in part(talk)]
        found[name] = statistics.median(wall for wall, _ in some)
        found[f"{name}_p95"] = percentiles([wall for wall, _ in some])[1]
        found[f"{name}_cpu"] = statistics.median(cpu for _, cpu in some)
    return found


async def _streams(talk: Talk, job: Job, turns: Turns, figures: Figures) -> None:
    """Streams, one a turn."""
    played: list[tuple[float, float]] = []
    async with talk.opened():
        await _take(talk, Source(count=WARM_TOKENS))
        while await asyncio.to_thread(turns.wait):
            played.append(await _take(talk, Source(count=job.tokens, rate=job.rate)))
    figures.metrics["rate"] = statistics.median(job.tokens / wall for wall, _ in played)
    figures.metrics["cpu"] = statistics.median(cpu / job.tokens * 1000 for _, cpu in played)
    figures.metrics["bytes"] = stored_bytes(talk.folder) / len(played)


async def _take(talk: Talk, source: Source) -> tuple[float, float]:
    if await talk.stream(source) != "".join(tokens(source.count)):
        raise AssertionError("a stream lost some of its text")
    return source.taken()


def main() -> None:
    """Do the job on standard input."""
    quiet()
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        job = Job(**json.loads(sys.stdin.readline()))
        figures = work(job, Told(sys.stdin, answers))
    figures.metrics["memory"] = peak_bytes()
    Path(job.result).write_text(json.dumps(attrs.asdict(figures)))


if __name__ == "__main__":
    main()
