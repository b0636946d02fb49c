"""Burr with its `SQLitePersister`: an application of fifteen actions, one after the other.

Burr's parallel actions start an application of their own for each branch, with its own rows; that is more
work than the fifteen actions in a row which stand here, so the specialists of a phase follow one another.
An action appends 1 to the results in the state; the persister saves the whole state after each action.
Timed is building the application (as each run needs one) and `run` until the last action. Not timed:
making the graph, which all runs share, and opening the persister. Every thread has a persister of its own,
as a SQLite connection belongs to a thread, with a minute's patience for the database's lock: at SQLite's
default of five seconds 64 threads on a rollback journal would fail now and then.

`BurrAsync` is the same with async actions, `arun`, and one `AsyncSQLitePersister` for all runs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.flows.base import RESULTS, AsyncFlow, Flow, ThreadFlow
from benchmarks.peers.base import quiet

PATIENCE = 60.0


class _Applications(Flow):
    family = "Burr"
    durability = "rollback journal, synced (SQLite's defaults)"
    note = "its fifteen actions follow one another"
    distributions = ("apache-burr",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = str(folder / "burr.sqlite")
        self.numbers = itertools.count()
        self.graph: Any = None

    @staticmethod
    def probe() -> None:
        quiet()
        import burr.core
        import burr.core.persistence  # noqa: F401

    def builder(self, persister: Any) -> Any:
        """A new application of the shared graph, to be built."""
        from burr.core import ApplicationBuilder

        return (
            ApplicationBuilder()
            .with_graph(self.graph)
            .with_entrypoint("a0")
            .with_state(results=[])
            .with_identifiers(app_id=f"run-{next(self.numbers)}")
            .with_state_persister(persister)
        )


class BurrThreads(_Applications, ThreadFlow):
    name = "Burr SQLitePersister, threads"

    @contextmanager
    def opened(self) -> Iterator[None]:
        self.graph = _graph(is_async=False)
        self.local, self.lock = threading.local(), threading.Lock()
        with ExitStack() as self.persisters:
            yield

    def run(self) -> int:
        if not hasattr(self.local, "persister"):
            self.local.persister = self._persister()
        application = self.builder(self.local.persister).build()
        *_, state = application.run(halt_after=[f"a{RESULTS - 1}"])
        return len(state["results"])

    def _persister(self) -> Any:
        from burr.core.persistence import SQLitePersister

        patience = {"timeout": PATIENCE, "check_same_thread": False}
        with self.lock:
            made = SQLitePersister(self.path, connect_kwargs=patience)
            self.persisters.enter_context(made)
            made.initialize()
            return made


class BurrAsync(_Applications, AsyncFlow):
    name = "Burr AsyncSQLitePersister"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

        self.graph = _graph(is_async=True)
        async with AsyncSQLitePersister.from_values(db_path=self.path) as self.persister:
            await self.persister.initialize()
            yield

    @staticmethod
    def probe() -> None:
        _Applications.probe()
        import burr.integrations.persisters.b_aiosqlite  # noqa: F401

    async def run(self) -> int:
        application = await self.builder(self.persister).abuild()
        *_, state = await application.arun(halt_after=[f"a{RESULTS - 1}"])
        return len(state["results"])


def _graph(*, is_async: bool) -> Any:
    """Fifteen actions in a row."""
    from burr.core import action
    from burr.core.graph import GraphBuilder

    def work(state: Any) -> Any:
        return state.append(results=1)

    async def async_work(state: Any) -> Any:
        return state.append(results=1)

    kind: Any = action(reads=["results"], writes=["results"])
    made = kind(async_work if is_async else work)
    names = [f"a{number}" for number in range(RESULTS)]
    builder: Any = GraphBuilder().with_actions(**dict.fromkeys(names, made))
    return builder.with_transitions(*itertools.pairwise(names)).build()
