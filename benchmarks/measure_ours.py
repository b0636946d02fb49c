"""Measuring our own stores: saves, all that reads them, and saves that take turns with bare commits."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Final

import anyio

from benchmarks import ours
from benchmarks.bare import BLOCK, Bare
from benchmarks.figures import REPEATS, Figures, peak_bytes, quiet_heap, repeated, resident_bytes
from benchmarks.ours import Ours
from benchmarks.work import Step, steps
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store

WINDOW: Final = 2000
BESIDE: Final = 500
WINDOWS: Final = 10


def measure(contestant: Ours, folder: Path, n: int) -> Figures:
    """All figures of one of our stores at that size."""
    figures = Figures(
        name=contestant.name,
        n=n,
        durable=contestant.durable,
        durability=contestant.durability,
        version=_version(),
    )
    figures.metrics["memory_before"] = resident_bytes()
    anyio.run(_measure, contestant, folder, figures)
    if contestant.bare:
        anyio.run(_beside_bare_commits, contestant, folder, figures)
    return figures


async def _beside_bare_commits(contestant: Ours, folder: Path, figures: Figures) -> None:
    """A run of its own whose saves take turns with bare commits, so that both meet the same disk.

    Not the run that is compared with the peers: theirs have the disk to themselves, and so must ours.
    """
    bare = Bare(folder.with_name(folder.name + "-bare.db"))
    place = folder.with_name(folder.name + "-beside")
    place.mkdir()
    with contestant.open(place) as store:
        figures.add_saves(await _saves(store, min(figures.n, BESIDE), bare), "beside")
    figures.add_saves(bare.seconds, "bare")
    bare.close()


async def _measure(contestant: Ours, folder: Path, figures: Figures) -> None:
    store = contestant.open(folder)
    taken = await _saves(store, figures.n, None)
    figures.add_saves(taken)
    figures.windows = windows(taken)
    figures.metrics["memory_saves"] = peak_bytes()
    if not contestant.in_memory:
        store.close()
        held, reserve = ours.stored_bytes(folder)
        figures.metrics["bytes"], figures.metrics["reserve"] = held / figures.n, reserve
        if reserve:
            figures.notes.append(
                f"beside it a fixed reserve of {reserve // 1024} KB for deleting on a full disk"
            )
    with ExitStack() as beside:
        if store.properties.many_processes:
            # The peers' first connection is open while they resume, so ours is, too.
            beside.enter_context(contestant.open(folder))
        await _resumes(contestant, folder, figures, store)
        if not contestant.in_memory:
            figures.metrics["glance"] = repeated(lambda: _opened_glance(contestant, folder))
    if not contestant.in_memory:
        store = contestant.open(folder)
    _reads(figures, store)
    store.close()


async def _saves(store: Store, n: int, bare: Bare | None) -> list[float]:
    """Save every step; how long each save took."""
    taken: list[float] = []
    async with ours.manager_of(store) as manager:
        active = await ours.begin(manager)
        for block in _blocks(n):
            for step in block:
                begun = time.perf_counter()
                await ours.save(manager, active, step)
                taken.append(time.perf_counter() - begun)
            if bare is not None:
                bare.commit(len(block))
        await manager.release(active)
    return taken


def _blocks(n: int) -> Iterator[list[Step]]:
    for first in range(0, n, BLOCK):
        yield list(steps(first, min(n, first + BLOCK)))


def windows(taken: list[float]) -> list[tuple[int, float]]:
    """How the median save grew: number of steps so far, and the median of the last saves up to there."""
    size = min(WINDOW, max(1, len(taken) // WINDOWS))
    ends = sorted({len(taken) * part // WINDOWS for part in range(1, WINDOWS + 1)} - {0})
    return [(end, statistics.median(taken[max(0, end - size) : end])) for end in ends]


async def _resumes(contestant: Ours, folder: Path, figures: Figures, kept: Store) -> None:
    """Take the run over from a store opened anew, several times."""
    opened: list[float] = []
    ready: list[float] = []
    touched: list[float] = []
    for _ in range(REPEATS):
        quiet_heap()
        begun = time.perf_counter()
        store = kept if contestant.in_memory else contestant.open(folder)
        opened.append(time.perf_counter() - begun)
        async with ours.manager_of(store) as manager:
            active = await manager.restore(ours.RUN)
            ready.append(time.perf_counter() - begun)
            assert ours.touch(active.state)
            touched.append(time.perf_counter() - begun)
            assert len(active.state.tasks) == len(active.state.decisions) == figures.n
            await manager.release(active)
            del active  # or it would be in memory beside the next one
        if store is not kept:
            store.close()
    figures.metrics["open"] = statistics.median(opened)
    figures.metrics["resume"] = statistics.median(ready)
    figures.metrics["resume_all"] = statistics.median(touched)


def _reads(figures: Figures, store: Store) -> None:
    middle, last = figures.n // 2, figures.n
    assert ours.listing(store) == last + 1
    figures.metrics["glance_open"] = repeated(lambda: ours.glanced(store))
    figures.metrics["load"] = repeated(lambda: ours.load(store, middle))
    figures.metrics["list"] = repeated(lambda: ours.listing(store))
    figures.metrics["diff"] = repeated(lambda: ours.compared(store, middle, last))
    figures.metrics["diff_step"] = repeated(lambda: ours.compared(store, last - 1, last))


def _opened_glance(contestant: Ours, folder: Path) -> None:
    with open_store(contestant.url.format(folder=folder), read_only=True) as store:
        ours.glanced(store)


def _version() -> str:
    try:
        return f"orchestra {metadata.version('orchestra')}"
    except metadata.PackageNotFoundError:
        return "orchestra, from the checkout"
