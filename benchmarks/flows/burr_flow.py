"""Burr with its SQLite persisters: the shape that was asked for, and fifteen actions one after the other.

`BurrParallel` plays the shape that was asked for: five actions (`TaskBasedParallelAction`), each with three
tasks that run side by side, whose results it collects. Burr gives every task an application of its own, with
a row of its own in the store, so that every result is durable before it is collected; they share the run's
persister. The tasks are named here: the ids that `MapStates` makes are the same in every phase, and the store
refuses the second.

The others play an easier shape, in their favour: fifteen actions in a row, so that the specialists of a phase
follow one another and there are no branches to start.
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

from benchmarks.flows.base import PHASES, RESULTS, SPECIALISTS, AsyncFlow, Flow, ThreadFlow
from benchmarks.peers.base import quiet

PATIENCE = 60.0


class _Applications(Flow):
    family = "Burr"
    durability = "rollback journal, synced (SQLite's defaults)"
    note = "an easier shape: its fifteen actions follow one another"
    same_shape = False
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

        self.graph = self.make_graph()
        async with AsyncSQLitePersister.from_values(db_path=self.path) as self.persister:
            await self.persister.initialize()
            yield

    def make_graph(self) -> Any:
        """What all runs share."""
        return _graph(is_async=True)

    @staticmethod
    def probe() -> None:
        _Applications.probe()
        import burr.integrations.persisters.b_aiosqlite  # noqa: F401

    async def run(self) -> int:
        application = await self.builder(self.persister).abuild()
        *_, state = await application.arun(halt_after=[self.graph.actions[-1].name])
        return len(state["results"])


class BurrParallel(BurrAsync):
    name = "Burr AsyncSQLitePersister, parallel"
    note = ""
    same_shape = True

    def make_graph(self) -> Any:
        from burr.core.graph import GraphBuilder

        names = [f"a{number}" for number in range(PHASES)]
        builder: Any = GraphBuilder().with_actions(**{name: _phase() for name in names})
        return builder.with_transitions(*itertools.pairwise(names)).build()


def _phase() -> Any:
    """Three branches side by side, and what they return collected."""
    from burr.core import action
    from burr.core.graph import GraphBuilder
    from burr.core.parallelism import RunnableGraph, SubGraphTask, TaskBasedParallelAction

    async def work(state: Any) -> Any:
        return state.update(result=1)

    kind: Any = action(reads=[], writes=["result"])
    builder: Any = GraphBuilder().with_actions(work=kind(work))
    branch = RunnableGraph(graph=builder.build(), entrypoint="work", halt_after=["work"])

    base: Any = TaskBasedParallelAction

    class Phase(base):  # type: ignore[misc]
        @property
        def reads(self) -> list[str]:
            return ["results"]

        @property
        def writes(self) -> list[str]:
            return ["results"]

        async def tasks(self, state: Any, context: Any, inputs: Any) -> AsyncIterator[Any]:
            for number in range(SPECIALISTS):
                name = f"{context.app_id}-{context.sequence_id}-{number}"
                yield SubGraphTask(
                    graph=branch,
                    inputs={},
                    state=state.update(result=0),
                    application_id=name,
                    state_persister=context.state_persister,
                )

        async def reduce(self, state: Any, states: Any) -> Any:
            results = [each["result"] async for each in states]
            return state.update(results=[*state["results"], *results])

        def is_async(self) -> bool:
            return True

    return Phase()


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
