"""CrewAI: a persisted flow of fifteen methods.

The flow's class has one async method for each specialist. The first three start; each of the others
listens to `and_` of the three before, and appends 1 to the results of the dictionary state. `@persist` on
the class with a `SQLiteFlowPersistence` saves the whole state after every method, in a thread: a file lock,
a new connection, one commit, the connection closed, which folds the write-ahead log back.
Methods that end together meet at the file lock, and who finds it taken looks again after a quarter of a
second (the lock library's default): that wait, not work, is most of a run one at a time.
`CrewAISequential` has the fifteen methods one after the other, so that a run never meets itself there.
Timed is making the flow object (as each run needs one) and `kickoff_async` until it returns. Not timed:
making the class. Events for the console are suppressed, which the library offers for this.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.flows.base import PHASES, RESULTS, SPECIALISTS, AsyncFlow
from benchmarks.peers.base import quiet
from benchmarks.peers.crewai_flow import temporary_home


class CrewAIFlow(AsyncFlow):
    name = "CrewAI flow"
    family = "CrewAI"
    durability = "WAL, folded back and synced by every save's close"
    distributions = ("crewai",)
    groups: tuple[int, ...] = (SPECIALISTS,) * PHASES
    """How many methods stand beside one another, group after group."""

    @staticmethod
    def probe() -> None:
        quiet()
        with temporary_home():
            import crewai.flow.flow
            import crewai.flow.persistence.sqlite  # noqa: F401

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self.probe()
        from crewai.flow.flow import Flow
        from crewai.flow.persistence import persist
        from crewai.flow.persistence.sqlite import SQLiteFlowPersistence

        body: dict[str, Any] = {"__module__": __name__, **_methods(self.groups)}
        made: Any = type("Small", (Flow[dict[str, Any]],), body)
        self.flow_type = persist(SQLiteFlowPersistence(str(self.folder / "flow_states.db")))(made)
        yield

    async def run(self) -> int:
        flow = self.flow_type(suppress_flow_events=True)
        await flow.kickoff_async()
        return len(flow.state["results"])


class CrewAISequential(CrewAIFlow):
    name = "CrewAI flow, sequential"
    note = "an easier shape: its fifteen methods follow one another"
    same_shape = False
    groups = (1,) * RESULTS


def _methods(groups: Sequence[int]) -> dict[str, Any]:
    """The decorated methods by name."""
    from crewai.flow.flow import and_, listen, start

    methods: dict[str, Any] = {}
    before: list[Any] = []
    for phase, size in enumerate(groups):
        names = [f"p{phase}s{number}" for number in range(size)]
        for name in names:
            after = and_(*before) if len(before) > 1 else before[0] if before else None
            methods[name] = (start() if after is None else listen(after))(_specialist(name))
        before = [methods[name] for name in names]
    return methods


def _specialist(name: str) -> Any:
    async def work(self: Any) -> int:
        self.state.setdefault("results", []).append(1)
        return 1

    work.__name__ = work.__qualname__ = name
    return work
