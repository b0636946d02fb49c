"""Runs to prune: recorded turn by turn, with every state kept for comparison."""

import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.values import freeze
from orchestra.errors import PrunedSnapshot
from orchestra.history.archive import Archive
from orchestra.ids import AgentId, Digest, Fence, Instant, PhaseId, RunId, TaskId, run_id
from orchestra.limits import LARGE_VALUE_BYTES
from orchestra.model import events as ev
from orchestra.model.records import Decision, Output
from orchestra.model.state import State, WorkflowRef
from orchestra.ports.store import Commit, RowQuery, RunQuery, Store
from orchestra.stores.memory import MemoryStore
from orchestra.stores.registry import open_store
from orchestra.testing.clock import START, FakeClock

HOUR: Final = 3600 * 1_000_000
DAY: Final = 24 * HOUR
FRAMER: Final = Framer(Addresser())

States = dict[tuple[RunId, int], State]
"""What was acknowledged, by run and number."""


def after_grace() -> Instant:
    """A time at which everything that stores have written so far is past its grace time."""
    return Instant(time.time_ns() // 1000 + 2 * HOUR)


def days_after(days: float) -> Instant:
    """So long after the runs were recorded."""
    return Instant(START + round(days * DAY))


def new_store(scheme: str, folder: Path) -> Store:
    """An empty store of that kind."""
    return MemoryStore() if scheme == "memory" else open_store(f"{scheme}:{folder / 'store'}", create=True)


def blob(text: str) -> tuple[Digest, bytes]:
    """Content that a run refers to as one of its outputs."""
    content = text.encode()
    return FRAMER.address("blob", content), FRAMER.write("blob", content)


class Teller:
    """Records a run by seed: tasks with small and large results, decisions, outputs, phases, rollbacks."""

    def __init__(self, manager: CheckpointManager, seed: int, *, rollbacks: float = 0.03) -> None:
        self.manager = manager
        self.random = random.Random(seed)
        self.rollbacks = rollbacks  # how likely each turn is one
        self.clock = FakeClock(step=1)
        self.made = 0
        self.states: States = {}

    async def tell(self, run: str, turns: int, outcome: Any = "completed") -> RunId:
        """A whole run; `outcome` None leaves it running, but released."""
        active = await self.begin(run)
        for _ in range(turns):
            await self.turn(active)
        if outcome is not None:
            await self.record(active, ev.RunEnded(at=self.clock.now(), outcome=outcome))
        await self.manager.release(active)
        return active.run

    async def begin(self, run: str) -> ActiveRun:
        """The first turn."""
        started = ev.RunStarted(at=self.clock.now(), run=run_id(run), workflow=WorkflowRef(name="w"))
        phase = ev.PhaseStarted(at=self.clock.now(), phase=PhaseId("plan"))
        active = await self.manager.begin(started, phase)
        self.keep(active)
        return active

    async def turn(self, active: ActiveRun) -> None:
        """One more turn, of some kind."""
        self.made += 1
        if self.random.random() < self.rollbacks:
            await self.manager.rollback(active, self.random.randrange(active.seq + 1), reason="for a change")
            self.keep(active)
        elif self.random.random() < 0.1:
            await self._written(active)
        else:
            await self.record(active, *self._events(active.state))

    async def record(self, active: ActiveRun, *events: ev.Event) -> None:
        """One turn of these events."""
        await self.manager.record(active, events)
        self.keep(active)

    def keep(self, active: ActiveRun) -> None:
        """Remember what was acknowledged."""
        self.states[active.run, active.seq] = active.state

    async def _written(self, active: ActiveRun) -> None:
        digest, frame = blob(f"{active.run} wrote {self.made}")
        self.manager.archive.store.put_objects([(digest, frame)])
        at = self.clock.now()
        output = Output(digest=digest, media_type="text/plain", size=9, at=at)
        await self.record(active, ev.OutputWritten(at=at, path=f"out-{self.made}.md", output=output))

    def _events(self, state: State) -> list[ev.Event]:
        at, agent = self.clock.now(), AgentId("mercury")
        phase = state.cursor.phase
        assert phase is not None
        match self.random.randrange(8):
            case 0:
                following = PhaseId(self.random.choice(("plan", "build", "review")))
                return [ev.PhaseCompleted(at=at, phase=phase), ev.PhaseStarted(at=at, phase=following)]
            case 1 | 2:
                what = f"because of {self.random.random()}"
                made = Decision(at=at, agent=AgentId("atlas"), kind="choice", description=what)
                return [ev.DecisionMade(at=at, decision=made)]
            case 3:
                return [ev.Spent(at=at, tokens_in=self.random.randrange(99))]
            case _:
                task = TaskId(f"{state.run}-{self.made}")
                size = LARGE_VALUE_BYTES + 9 if self.random.random() < 0.15 else self.random.randrange(300)
                result = freeze(self.random.randbytes(size), self.manager.addresser)
                return [
                    ev.TaskPlanned(at=at, task=task, agent=agent, phase=phase),
                    ev.TaskCompleted(at=at, task=task, result=result, confidence=0.8),
                ]


def manager_of(store: Store) -> CheckpointManager:
    """A manager with a clock that gives the same times each time."""
    return CheckpointManager(store, clock=FakeClock(step=1), owner="the tests")


def recorded(
    store: Store, *runs: tuple[str, int, str | None], seed: int = 0, rollbacks: float = 0.03
) -> States:
    """Record runs (name, turns, outcome) into a store; the same seed gives the same bytes."""

    async def main() -> States:
        states: States = {}
        async with manager_of(store) as manager:
            for place, (run, turns, outcome) in enumerate(runs):
                teller = Teller(manager, seed + place, rollbacks=rollbacks)
                await teller.tell(run, turns, outcome)
                states |= teller.states
        return states

    return anyio.run(main)


def forked(store: Store, run: str, seq: int, new: str, turns: int = 0) -> States:
    """Fork a run and go on; raises what the fork raises."""

    async def main() -> States:
        async with manager_of(store) as manager:
            teller = Teller(manager, seq, rollbacks=0.0)
            active = await manager.fork(run_id(run), seq, run_id(new))
            teller.keep(active)
            for _ in range(turns):
                await teller.turn(active)
            await manager.release(active)
            return teller.states

    return anyio.run(main)


def assert_whole(store: Store, states: States, only: Iterable[int] | None = None) -> None:
    """Every snapshot that is not pruned reads as it was recorded, every other says that it was pruned."""
    archive = Archive(store)
    wanted = None if only is None else set(only)
    for (run, seq), state in states.items():
        row = archive.row(run, seq)
        if wanted is not None:
            assert row.pruned == (seq not in wanted), f"{run}@{seq}"
        if row.pruned:
            with pytest.raises(PrunedSnapshot):
                archive.state(run, seq)
        else:
            assert archive.state(run, seq) == state, f"{run}@{seq}"
            assert_content(archive, state)


def assert_content(archive: Archive, state: State) -> None:
    """The large values and the outputs that a state refers to are there."""
    for task in state.tasks.values():
        if task.result is not None:
            archive.loader.value(task.result)
    digests = {output.digest for output in state.outputs.values()}
    assert archive.store.get_objects(digests).keys() == digests


def assert_chained(store: Store) -> None:
    """The headers of every run, pruned or not, prove their chain; a fork's first one leads to its base."""
    archive = Archive(store)
    known = {row.digest for row in store.rows(RowQuery(content=False))}
    for run in store.runs(RunQuery(limit=1000)):
        rows = store.rows(RowQuery(run=run.run))
        headers = [archive.header(row) for row in rows]
        assert [header.seq for header in headers] == list(range(run.head + 1))
        assert [header.parent for header in headers[1:]] == [row.digest for row in rows[:-1]]
        assert headers[0].parent is None or headers[0].parent in known
        for row in rows:
            assert row.pruned == (row.patch is None)


def whole_seqs(store: Store, run: str) -> set[int]:
    """The snapshots of a run that are not pruned."""
    return {row.seq for row in store.rows(RowQuery(run=run_id(run), content=False)) if not row.pruned}


def copy_of(source: Store) -> MemoryStore:
    """A store in memory with the same runs and objects, released."""
    target = MemoryStore()
    target.put_objects(source.get_objects([info.digest for info in source.objects()]).items())
    heads: dict[RunId, Digest] = {}
    for row in source.rows(RowQuery(after_no=0)):
        run = source.run(row.run)
        assert run is not None
        commit = Commit(
            row=row,
            fence=Fence(1),
            expected=heads.get(row.run),
            family=run.family,
            workflow=run.workflow,
        )
        assert isinstance(target.commit([commit])[0], int)
        heads[row.run] = row.digest
    return target
