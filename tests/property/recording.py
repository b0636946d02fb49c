"""Stories told to a store: recorded turn by turn, with every state kept for comparison."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import attrs

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.ids import RunId, run_id
from orchestra.model.snapshot import Snapshot
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store
from orchestra.testing.clock import FakeClock
from tests.property.stories import Story

Recorded = dict[tuple[RunId, int], Snapshot]
"""What was acknowledged, by run and number."""


@contextmanager
def opened(scheme: str, folder: Path, name: str = "store") -> Iterator[Store]:
    """A new store of that kind."""
    url = "memory:" if scheme == "memory" else f"{scheme}:{folder / name}"
    store = open_store(url, create=True)
    try:
        yield store
    finally:
        store.close()


@asynccontextmanager
async def managed(
    store: Store, settings: CheckpointSettings | None = None
) -> AsyncIterator[CheckpointManager]:
    """A manager over a store, with a clock that gives the same times each time."""
    clock = FakeClock(step=1)
    async with CheckpointManager(store, clock=clock, owner="the tests", settings=settings) as manager:
        yield manager


def length_of(seed: int) -> int:
    """How many turns a story has: mostly few, some past one seal, some past several."""
    chance = random.Random(seed)
    first, last = chance.choices(((2, 8), (33, 36), (66, 150)), weights=(80, 14, 6))[0]
    return chance.randint(first, last)


class Telling:
    """A story being recorded."""

    def __init__(self, manager: CheckpointManager, seed: int) -> None:
        self.manager, self.story = manager, Story(seed)
        self.recorded: Recorded = {}

    async def begin(self, run: str | None = None) -> ActiveRun:
        """The first turn."""
        active = await self.manager.begin(*self.story.opening(run))
        await self._keep(active)
        return active

    async def go_on(self, active: ActiveRun, turns: int) -> None:
        """Further turns."""
        for _ in range(turns):
            self.keep(await self.manager.record(active, self.story.turn(active.state)))

    async def roll_back(self, active: ActiveRun) -> None:
        """Back to anywhere."""
        to = self.story.rng.randrange(active.seq + 1)
        self.keep(await self.manager.rollback(active, to, reason="for a change", confidence_factor=0.5))

    async def fork(self, active: ActiveRun) -> ActiveRun:
        """A new run that begins anywhere."""
        at = self.story.rng.randrange(active.seq + 1)
        forked = await self.manager.fork(active.run, at, run_id(f"{active.run}-fork"), reason="what if")
        await self._keep(forked)
        return forked

    def keep(self, snapshot: Snapshot) -> None:
        """Remember what was acknowledged."""
        self.recorded[snapshot.header.run, snapshot.header.seq] = snapshot

    async def _keep(self, active: ActiveRun) -> None:
        snapshot = await self.manager.look(active.run, active.seq)
        assert snapshot.digest == active.digest
        self.keep(attrs.evolve(snapshot, state=active.state))


async def tell(manager: CheckpointManager, seed: int) -> Telling:
    """A whole story: its turns, a rollback and what follows, a fork and what follows."""
    telling = Telling(manager, seed)
    active = await telling.begin()
    await telling.go_on(active, length_of(seed))
    await telling.roll_back(active)
    await telling.go_on(active, 2)
    forked = await telling.fork(active)
    await telling.go_on(forked, 2)
    await manager.release(forked)
    await manager.release(active)
    return telling
