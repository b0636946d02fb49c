"""orchestra on SQLite: a workflow of five phases with three function agents each, through the public
`Orchestra`.

The agents are async functions; each result enters the context name `results`, whose reducer appends, and
stays with its assignment too. Timed is `Orchestra.run` until it gives the ending: the run's claim, its
snapshots (every commit synced, the store's default), the end. Not timed: opening the store and building
the workflow. `OrchestraTelemetry` is the same with telemetry switched on; until all of it is written is
timed too.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.flows.base import PHASES, SPECIALISTS, AsyncFlow

TELEMETRY = "telemetry"
"""The parameter of `Orchestra` that switches it on."""


class OrchestraFlow(AsyncFlow):
    name = "orchestra"
    family = "orchestra"
    durability = "WAL, every commit synced"
    telemetry = False

    @staticmethod
    def probe() -> None:
        import orchestra.app.orchestra  # noqa: F401

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        from orchestra.app.orchestra import Orchestra

        more: dict[str, Any] = {TELEMETRY: self.telemetry} if has_telemetry() else {}
        self.workflow = small()
        url = f"sqlite:{self.folder / 'orchestra.db'}"
        async with Orchestra(url, functions={"one": one}, project=self.folder, **more) as self.house:
            yield

    async def run(self) -> int:
        ending = await self.house.run(self.workflow)
        if ending.kind != "completed":
            raise AssertionError(f"a run ended as {ending.kind}")
        held: Any = ending.state.context["results"]
        return len(held.items)


class OrchestraTelemetry(OrchestraFlow):
    name = "orchestra, telemetry"
    telemetry = True

    @staticmethod
    def probe() -> None:
        if not has_telemetry():
            raise LookupError("`Orchestra` has no `telemetry` here")

    async def settled(self) -> None:
        """What was noticed of the runs is written, not just waiting to be."""
        if not await self.house.flush():
            raise AssertionError("the telemetry of the runs was not written in time")


def has_telemetry() -> bool:
    """Whether `Orchestra` can be told to write telemetry."""
    from orchestra.app.orchestra import Orchestra

    return TELEMETRY in inspect.signature(Orchestra).parameters


def small() -> Any:
    """The workflow."""
    from orchestra.ids import AgentId, PhaseId
    from orchestra.model.workflow import Agent, ContextName, Phase, Specialist, Transition, Workflow

    agent = AgentId("one")
    phases = tuple(
        Phase(
            id=PhaseId(f"p{phase}"),
            specialists=tuple(
                Specialist(id=f"s{number}", agent=agent, task="Return 1.", into="results")
                for number in range(SPECIALISTS)
            ),
            next=(Transition(to=PhaseId(f"p{phase + 1}")),) if phase + 1 < PHASES else (),
        )
        for phase in range(PHASES)
    )
    return Workflow(
        name="small",
        agents=(Agent(id=agent, kind="function"),),
        context=(ContextName(name="results", reducer="append"),),
        phases=phases,
    )


async def one(ctx: Any) -> int:
    """What every specialist does."""
    return 1
