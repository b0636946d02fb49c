"""Our own stores, driven through the CheckpointManager as an engine drives them.

A save is what an engine does each turn: freeze the values, make the events, and `record` them, which returns
once the row is durable. The state lives in the manager; the peers' states live in their adapters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from benchmarks.peers.base import folder_bytes
from benchmarks.work import START_US, Step
from orchestra.app.compose import SystemClock
from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.values import freeze
from orchestra.history.archive import Archive
from orchestra.history.compare import diff_documents
from orchestra.history.glance import glance
from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Decision
from orchestra.model.state import State, WorkflowRef
from orchestra.ports.store import RowQuery, Store
from orchestra.stores.registry import open_store

RUN: Final = RunId("bench_run")
PHASE: Final = PhaseId("work")


@attrs.frozen(kw_only=True)
class Ours:
    """One of our stores as a contestant."""

    name: str
    url: str  # {folder} is where its files go
    durable: bool = True
    durability: str = ""
    bare: bool = False  # whether bare commits are timed beside it

    def open(self, folder: Path) -> Store:
        """The store in that folder, made when it is not there."""
        return open_store(self.url.format(folder=folder), create=True)

    @property
    def in_memory(self) -> bool:
        """Whether nothing is left once the store is closed."""
        return self.url.startswith("memory:")


OURS: Final = (
    Ours(
        name="orchestra sqlite",
        url="sqlite:{folder}/orchestra.db",
        durability="WAL, every commit synced (our default)",
        bare=True,
    ),
    Ours(
        name="orchestra sqlite, normal",
        url="sqlite:{folder}/orchestra.db?synchronous=normal",
        durability="WAL, survives the process; a power failure may take the newest commits",
    ),
    Ours(
        name="orchestra files",
        url="files:{folder}/store",
        durability="append-only files, every commit synced",
    ),
    Ours(name="orchestra memory", url="memory:", durable=False, durability="none: gone with the process"),
)


def manager_of(store: Store) -> CheckpointManager:
    """A manager over a store, with the settings that everybody gets."""
    return CheckpointManager(store, clock=SystemClock(), owner="benchmark")


async def begin(manager: CheckpointManager) -> ActiveRun:
    """Start the run that all steps belong to."""
    at = Instant(START_US)
    started = ev.RunStarted(at=at, run=RUN, workflow=WorkflowRef(name="bench"))
    return await manager.begin(started, ev.PhaseStarted(at=at, phase=PHASE))


async def save(manager: CheckpointManager, active: ActiveRun, step: Step) -> None:
    """Record one step; this whole call is timed."""
    await manager.record(active, events(manager, step))


def events(manager: CheckpointManager, step: Step) -> list[ev.Event]:
    """A step's task and decision as what happened."""
    task, decision = step.task, step.decision
    at, name = Instant(task["finished_at"]), TaskId(task["id"])
    return [
        ev.TaskPlanned(at=at, task=name, agent=AgentId(task["agent"]), phase=PHASE),
        ev.TaskCompleted(
            at=at,
            task=name,
            result=freeze(task["result"], manager.addresser),
            confidence=task["confidence"],
        ),
        ev.DecisionMade(
            at=Instant(decision["at"]),
            decision=Decision(
                at=Instant(decision["at"]),
                agent=AgentId(decision["agent"]),
                kind=decision["kind"],
                description=decision["description"],
                rationale=decision["rationale"],
                confidence=decision["confidence"],
                alternatives=tuple(decision["alternatives"]),
            ),
        ),
    ]


def touch(state: State) -> int:
    """Look at every task and decision; how many characters and bytes they hold."""
    results = sum(len(task.result.encoded or b"") for task in state.tasks.values() if task.result)
    return results + sum(len(decision.rationale) for decision in state.decisions)


def glanced(store: Store) -> tuple[str, str, int, str]:
    """Status, phase, number of tasks and last decision of the head, fetching no more than that takes."""
    seen = glance(Archive(store), RUN)
    assert seen.last_decision is not None, "every step makes a decision"
    return seen.status, seen.phase or "", seen.tasks, seen.last_decision.description


def listing(store: Store) -> int:
    """Every snapshot of the run with its number, time, triggers and status; how many there are."""
    rows = store.rows(RowQuery(run=RUN, content=False))
    return len([(row.seq, row.at, row.triggers, row.status) for row in rows])


def load(store: Store, seq: int) -> State:
    """The state at a snapshot, by a reader that has read nothing yet."""
    return Archive(store).state(RUN, seq)


def compared(store: Store, first: int, second: int) -> int:
    """How many things differ between two snapshots, found by a reader that has read nothing yet."""
    archive = Archive(store)
    old, new = archive.document(RUN, first), archive.document(RUN, second)
    return len(diff_documents(old, new, archive.loader).changes)


def stored_bytes(folder: Path) -> tuple[int, int]:
    """Bytes of a store's files after it was closed: what was stored, and its fixed reserve."""
    reserve = sum(path.stat().st_size for path in folder.rglob("*-ballast"))
    return folder_bytes(folder) - reserve, reserve
