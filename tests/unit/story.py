"""A small recorded run that the reading tests look into."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.values import contribution, freeze
from orchestra.ids import AgentId, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Decision, Failure
from orchestra.model.state import WorkflowRef
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock

RUN = RunId("review_20261115_143022_k7")
FIND, WRITE = PhaseId("find"), PhaseId("write")
STRUCTURE, ATLAS = AgentId("structure"), AgentId("atlas")


class Story:
    """Records turns and knows where things happened."""

    def __init__(self, manager: CheckpointManager, clock: FakeClock, active: ActiveRun) -> None:
        self.manager, self.clock, self.active = manager, clock, active
        self.archive = manager.archive

    async def turn(self, *events: ev.Event) -> int:
        """Record one turn; returns its sequence number."""
        return (await self.manager.record(self.active, events)).header.seq

    async def task(self, name: str, result: object, *, agent: AgentId = STRUCTURE) -> int:
        """A task from plan to result, three turns; returns the number of the last."""
        task = TaskId(name)
        at = self.clock.now()
        await self.turn(
            ev.TaskPlanned(at=at, task=task, agent=agent, phase=FIND, description=f"Look at {name}")
        )
        await self.turn(ev.AgentLaunched(at=self.clock.now(), agent=agent, task=task))
        frozen = freeze(result, self.manager.addresser)
        return await self.turn(
            ev.TaskCompleted(at=self.clock.now(), task=task, result=frozen, confidence=0.8)
        )

    async def found(self, finding: object) -> int:
        """A finding enters the context."""
        joined = contribution("append", finding, self.manager.addresser)
        event = ev.ContextContributed(
            at=self.clock.now(), name="findings", contribution=joined, agent=STRUCTURE
        )
        return await self.turn(event)

    async def decided(self, description: str) -> int:
        """Atlas decides something."""
        decision = Decision(
            at=self.clock.now(), agent=ATLAS, kind="workflow_adjustment", description=description
        )
        return await self.turn(ev.DecisionMade(at=decision.at, decision=decision))

    async def failed(self, name: str) -> int:
        """A task is tried and fails."""
        at = self.clock.now()
        task, failure = TaskId(name), Failure(error="ValueError", message="no module", at=at)
        planned = ev.TaskPlanned(at=at, task=task, agent=STRUCTURE, phase=FIND)
        return await self.turn(planned, ev.TaskFailed(at=at, task=task, failure=failure))

    async def phase(self, phase: PhaseId) -> int:
        """A phase starts."""
        return await self.turn(ev.PhaseStarted(at=self.clock.now(), phase=phase))


@asynccontextmanager
async def story(kept: MemoryStore | None = None) -> AsyncIterator[Story]:
    """A run that has begun and is in its first phase (snapshot 1)."""
    clock = FakeClock()
    with kept or MemoryStore() as store:
        async with CheckpointManager(store, clock=clock, owner="test") as manager:
            started = ev.RunStarted(
                at=clock.now(), run=RUN, workflow=WorkflowRef(name="review"), thresholds=(0.75,)
            )
            told = Story(manager, clock, await manager.begin(started))
            await told.phase(FIND)
            yield told
