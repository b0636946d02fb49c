"""A store with three runs that the tests of the commands look into."""

from pathlib import Path

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.values import contribution, freeze
from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Decision, Failure
from orchestra.model.state import WorkflowRef
from orchestra.ports.store import Store
from orchestra.stores.registry import open_store
from orchestra.testing.clock import FakeClock

REVIEW = RunId("review_20261115_120000_k7")
FORK = RunId("review_20261115_130000_f2")
AUDIT = RunId("audit_20261115_140000_zz")
HEAD = 10
"""The newest snapshot of the review."""
HOSTILE = "\x1b[31mred\x1b[0m \u202egnp.exe \x07[bold]not markup[/bold] \x9b2J\u2028end\u200b"
LARGE = "much " * 20_000


class Recorder:
    """Records the runs, one turn after the other."""

    def __init__(self, manager: CheckpointManager, clock: FakeClock) -> None:
        self.manager, self.clock = manager, clock

    async def begin(self, run: RunId, workflow: str) -> ActiveRun:
        started = ev.RunStarted(
            at=self.clock.now(),
            run=run,
            workflow=WorkflowRef(name=workflow),
            inputs=freeze({"path": "."}, self.manager.addresser),
            thresholds=(0.5,),
        )
        return await self.manager.begin(started)

    def tick(self) -> Instant:
        self.clock.advance(1)
        return self.clock.now()

    async def turn(self, active: ActiveRun, *events: ev.Event) -> None:
        await self.manager.record(active, events)

    async def task(self, active: ActiveRun, name: str, result: object) -> None:
        task, agent, at = TaskId(name), AgentId(f"{name}-agent"), self.tick()
        frozen = freeze(result, self.manager.addresser)
        found = contribution("append", {"from": name, "text": HOSTILE}, self.manager.addresser)
        await self.turn(
            active,
            ev.TaskPlanned(at=at, task=task, agent=agent, phase=PhaseId("find"), description="Look\nclosely"),
            ev.AgentLaunched(at=at, agent=agent, task=task),
        )
        at = self.tick()
        await self.turn(
            active,
            ev.TaskCompleted(at=at, task=task, result=frozen, confidence=0.8),
            ev.ContextContributed(at=at, name="findings", contribution=found, agent=agent),
        )

    async def decided(self, active: ActiveRun, what: str) -> None:
        at = self.tick()
        decision = Decision(
            at=at,
            agent=AgentId("atlas"),
            kind="adjust",
            description=what,
            rationale="because",
            confidence=0.7,
        )
        await self.turn(active, ev.DecisionMade(at=at, decision=decision))

    async def phase(self, active: ActiveRun, name: str) -> None:
        await self.turn(active, ev.PhaseStarted(at=self.tick(), phase=PhaseId(name)))

    async def ended(self, active: ActiveRun) -> None:
        await self.turn(active, ev.RunEnded(at=self.tick(), outcome="completed", reason="all done"))
        await self.manager.release(active)


async def record(url: str) -> None:
    """Record the runs into a store that is made for them."""
    with open_store(url, create=True) as store:
        await record_into(store)


async def record_into(store: Store) -> None:
    """Record three runs: a completed review, a fork of it that was left, and an audit that failed."""
    clock = FakeClock()
    async with CheckpointManager(store, clock=clock, owner="test") as manager:
        recorder = Recorder(manager, clock)
        await _review(recorder)
        fork = await manager.fork(REVIEW, 3, FORK)
        await recorder.decided(fork, "try another way")
        await manager.release(fork)
        clock.advance(60)
        await _audit(recorder)


async def _review(recorder: Recorder) -> None:
    odd = {"raw": b"\x00\xff", "tags": {"a", "b"}, "pair": (1, 2), "nan": float("nan"), "text": "one\ntwo\n"}
    active = await recorder.begin(REVIEW, "review")
    await recorder.phase(active, "find")
    await recorder.task(active, "structure", odd)
    await recorder.decided(active, "go on: " + HOSTILE)
    await recorder.task(active, "large", LARGE)
    await recorder.turn(active, ev.PhaseCompleted(at=recorder.tick(), phase=PhaseId("find")))
    await recorder.phase(active, "write")
    await recorder.decided(active, "write it")
    await recorder.ended(active)


async def _audit(recorder: Recorder) -> None:
    active = await recorder.begin(AUDIT, "audit")
    await recorder.phase(active, "collect")
    at = recorder.tick()
    failure = Failure(error="KeyError", message="no key", at=at, stack="a\nb\n")
    task = TaskId("fetch")
    await recorder.turn(
        active,
        ev.TaskPlanned(at=at, task=task, agent=AgentId("fetcher"), phase=PhaseId("collect")),
        ev.TaskFailed(at=at, task=task, failure=failure),
    )
    await recorder.turn(active, ev.RunEnded(at=recorder.tick(), outcome="failed", reason="no key"))
    await recorder.manager.release(active)


def url_of(folder: Path) -> str:
    """The store that was recorded into a folder."""
    return f"sqlite:{folder / 'store.db'}"
