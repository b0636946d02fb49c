"""LangGraph on SQLite: a compiled graph of fifteen nodes, every sensible way to run it.

The graph has one node for each specialist. The three of a phase are joined by multi-source edges into each
of the next three, so that a phase is one superstep and no node only joins. A node returns `{"results":
[1]}` and the channel adds the lists up. Every run is a thread id of its own on one compiled graph;
compiling is not timed, nor is opening the saver. Timed is `invoke` or `ainvoke` until it returns, at the
library's default durability ("async": checkpoints are written beside the next superstep, all before the
call returns), on savers opened by their own `from_conn_string`, in write-ahead mode with SQLite's default
synchronous setting.

- `LangGraphThreads`: `SqliteSaver`, plain nodes, one thread a run; all share the saver and its lock.
- `LangGraphSavers`: the same with a `SqliteSaver` and a connection of its own for each thread.
- `LangGraphAsync`: `AsyncSqliteSaver`, async nodes, one event loop.
- `LangGraphDeltaThreads`, `LangGraphDeltaAsync`: the first and third with the results in a `DeltaChannel`.
- `LangGraphTasks`, `LangGraphTasksAsync`: the functional interface instead of a graph, an entrypoint that
  starts three tasks a phase and waits for them. Its tasks' results are stored one by one, its state once.
"""

from __future__ import annotations

import asyncio
import itertools
import operator
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from benchmarks.flows.base import PHASES, SPECIALISTS, AsyncFlow, Flow, ThreadFlow
from benchmarks.peers.base import quiet

Results = list[int]


class _Graphs(Flow):
    family = "LangGraph"
    durability = "WAL, synced (SQLite's default synchronous setting)"
    distributions = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")
    delta = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = str(folder / "checkpoints.sqlite")
        self.numbers = itertools.count()
        self.graph: Any = None

    @staticmethod
    def probe() -> None:
        quiet()
        import langgraph.channels.delta
        import langgraph.checkpoint.sqlite
        import langgraph.checkpoint.sqlite.aio
        import langgraph.func
        import langgraph.graph  # noqa: F401

    def config(self) -> Any:
        """A new thread."""
        return {"configurable": {"thread_id": f"run-{next(self.numbers)}"}}

    def compiled(self, saver: Any) -> Any:
        """The graph over a saver."""
        return graph(self.specialist(), delta=self.delta).compile(checkpointer=saver)

    def specialist(self) -> Callable[..., Any]:
        """What a node does."""
        return specialist


class LangGraphThreads(_Graphs, ThreadFlow):
    name = "LangGraph SqliteSaver, threads"

    @contextmanager
    def opened(self) -> Iterator[None]:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(self.path) as saver:
            self.graph = self.compiled(saver)
            yield

    def run(self) -> int:
        return len(self.graph.invoke({"results": []}, self.config())["results"])


class LangGraphSavers(LangGraphThreads):
    name = "LangGraph SqliteSaver, one for each thread"

    @contextmanager
    def opened(self) -> Iterator[None]:
        with ExitStack() as self.savers:
            self.local, self.lock = threading.local(), threading.Lock()
            yield

    def run(self) -> int:
        if not hasattr(self.local, "graph"):
            self.local.graph = self._own_graph()
        return len(self.local.graph.invoke({"results": []}, self.config())["results"])

    def _own_graph(self) -> Any:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with self.lock:
            saver = self.savers.enter_context(SqliteSaver.from_conn_string(self.path))
            saver.setup()
            return self.compiled(saver)


class LangGraphDeltaThreads(LangGraphThreads):
    name = "LangGraph SqliteSaver, threads, delta channel"
    delta = True


class LangGraphAsync(_Graphs, AsyncFlow):
    name = "LangGraph AsyncSqliteSaver"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(self.path) as saver:
            self.graph = self.compiled(saver)
            yield

    def specialist(self) -> Callable[..., Any]:
        return async_specialist

    async def run(self) -> int:
        return len((await self.graph.ainvoke({"results": []}, self.config()))["results"])


class LangGraphDeltaAsync(LangGraphAsync):
    name = "LangGraph AsyncSqliteSaver, delta channel"
    delta = True


class LangGraphTasks(LangGraphThreads):
    name = "LangGraph tasks, SqliteSaver, threads"
    note = "the functional interface: results of tasks are stored as they come, the state once at the end"

    def compiled(self, saver: Any) -> Any:
        from langgraph.func import entrypoint, task

        work = task(one)

        def play(results: Results) -> Results:
            for _ in range(PHASES):
                under_way = [work() for _ in range(SPECIALISTS)]
                results = [*results, *(each.result() for each in under_way)]
            return results

        return entrypoint(checkpointer=saver)(play)

    def run(self) -> int:
        return len(self.graph.invoke([], self.config()))


class LangGraphTasksAsync(LangGraphAsync):
    name = "LangGraph tasks, AsyncSqliteSaver"
    note = LangGraphTasks.note

    def compiled(self, saver: Any) -> Any:
        from langgraph.func import entrypoint, task

        work = task(async_one)

        async def play(results: Results) -> Results:
            for _ in range(PHASES):
                results = [*results, *await asyncio.gather(*(work() for _ in range(SPECIALISTS)))]
            return results

        return entrypoint(checkpointer=saver)(play)

    async def run(self) -> int:
        return len(await self.graph.ainvoke([], self.config()))


def graph(work: Callable[..., Any], *, delta: bool) -> Any:
    """The graph, not compiled yet."""
    from langgraph.graph import END, START, StateGraph

    builder: Any = StateGraph(state_type(delta))
    before: list[str] = []
    for phase in range(PHASES):
        names = [f"p{phase}s{number}" for number in range(SPECIALISTS)]
        for name in names:
            builder.add_node(name, work)
            builder.add_edge(before or START, name)
        before = names
    builder.add_edge(before, END)
    return builder


def state_type(delta: bool) -> Any:
    """The state: a list of results, whole or as a delta channel."""
    if not delta:
        return Whole
    from langgraph.channels.delta import DeltaChannel

    fields: Any = {"results": Annotated[list, DeltaChannel(extend)]}
    made: Any = TypedDict
    return made("Delta", fields)


class Whole(TypedDict):
    """The state with its results in every checkpoint."""

    results: Annotated[list[int], operator.add]


def extend(state: Results, writes: Sequence[Results]) -> Results:
    """Reducer of the delta channel."""
    return [*state, *(item for write in writes for item in write)]


def specialist(state: Any) -> dict[str, Results]:
    return {"results": [1]}


async def async_specialist(state: Any) -> dict[str, Results]:
    return {"results": [1]}


def one() -> int:
    return 1


async def async_one() -> int:
    return 1
