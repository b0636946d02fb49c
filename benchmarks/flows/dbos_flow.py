"""DBOS on SQLite: a workflow of fifteen steps.

DBOS stores no state: it records each step's output and the workflow's. The state here is the list that the
workflow builds from its steps and returns, which is recorded at the end. Timed is calling the workflow
until it returns: its status row, fifteen recorded steps, its result, on SQLite's default rollback journal.
Not timed: launching DBOS. Its polling threads run throughout, as they do in any application.

- `DbosGathered`: async, the three steps of a phase in an `asyncio.gather`.
- `DbosSequential`: async, one step after the other.
- `DbosThreads`: plain functions, one step after the other, one thread a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.flows.base import PHASES, SPECIALISTS, AsyncFlow, Flow, ThreadFlow
from benchmarks.peers.base import quiet


class _Dbos(Flow):
    family = "DBOS"
    durability = "rollback journal, synced (SQLite's defaults)"
    distributions = ("dbos",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.workflow: Any = None

    @staticmethod
    def probe() -> None:
        quiet()
        import dbos  # noqa: F401

    @contextmanager
    def launched(self) -> Iterator[None]:
        """DBOS on a fresh database, the workflow registered."""
        from dbos import DBOS

        url = f"sqlite:///{self.folder / 'dbos.sqlite'}"
        DBOS(config={"name": "bench", "system_database_url": url, "log_level": "CRITICAL"})
        self.workflow = self.registered(DBOS)
        DBOS.launch()
        try:
            yield
        finally:
            DBOS.destroy(destroy_registry=True)

    def registered(self, dbos: Any) -> Any:
        """The workflow."""
        raise NotImplementedError


class DbosThreads(_Dbos, ThreadFlow):
    name = "DBOS, threads"
    note = "an easier shape: the steps of a phase follow one another"
    same_shape = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        with self.launched():
            yield

    def registered(self, dbos: Any) -> Any:
        step = dbos.step(name="specialist")(_one)

        def play() -> list[int]:
            return [step() for _ in range(PHASES * SPECIALISTS)]

        return dbos.workflow(name="small")(play)

    def run(self) -> int:
        return len(self.workflow())


class DbosGathered(_Dbos, AsyncFlow):
    name = "DBOS async, gathered"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        with self.launched():
            yield

    def registered(self, dbos: Any) -> Any:
        step = dbos.step(name="specialist")(_async_one)

        async def play() -> list[int]:
            results: list[int] = []
            for _ in range(PHASES):
                results += await asyncio.gather(*(step() for _ in range(SPECIALISTS)))
            return results

        return dbos.workflow(name="small")(play)

    async def run(self) -> int:
        return len(await self.workflow())


class DbosSequential(DbosGathered):
    name = "DBOS async, sequential"
    note = DbosThreads.note
    same_shape = False

    def registered(self, dbos: Any) -> Any:
        step = dbos.step(name="specialist")(_async_one)

        async def play() -> list[int]:
            return [await step() for _ in range(PHASES * SPECIALISTS)]

        return dbos.workflow(name="small")(play)


def _one() -> int:
    return 1


async def _async_one() -> int:
    return 1
