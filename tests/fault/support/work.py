"""The work that is disturbed: two runs recorded side by side, always the same, taken up where it stopped."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final

import anyio

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import Digest, RunId, run_id
from orchestra.model import events as ev
from orchestra.model.apply.apply import apply_all, begin
from orchestra.ports.store import Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock
from tests.property.stories import Story

LEFT: Final = run_id("left")
RIGHT: Final = run_id("right")
SEEDS: Final = {LEFT: 11, RIGHT: 12}
TURNS: Final = 25

Acknowledge = Callable[[RunId, int, Digest], None]
Digests = dict[tuple[RunId, int], Digest]


@cache
def turns_of(run: RunId, turns: int = TURNS) -> tuple[tuple[ev.Event, ...], ...]:
    """What happens in a run, turn by turn."""
    story = Story(SEEDS[run])
    opening = story.opening(run)
    state = begin(opening[0])
    made: list[tuple[ev.Event, ...]] = [opening]
    for _ in range(turns):
        made.append(story.turn(state))
        state = apply_all(state, made[-1])
    return tuple(made)


def manager_of(store: Store, settings: CheckpointSettings | None = None) -> CheckpointManager:
    """A manager whose clock gives the same times each time."""
    return CheckpointManager(store, clock=FakeClock(step=1), owner="the work", settings=settings)


async def work(store: Store, acknowledge: Acknowledge, runs: tuple[RunId, ...] = (LEFT, RIGHT)) -> None:
    """Record the runs to their ends, beginning or taking them up; what is acknowledged is told at once."""
    async with manager_of(store) as manager, anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(_work_on, manager, store, run, acknowledge)


async def _work_on(manager: CheckpointManager, store: Store, run: RunId, acknowledge: Acknowledge) -> None:
    active = await taken_up(manager, store, run)
    acknowledge(run, active.seq, head_of(active))
    for turn in turns_of(run)[active.seq + 1 :]:
        snapshot = await manager.record(active, turn)
        acknowledge(run, snapshot.header.seq, snapshot.digest)
    await manager.release(active)


async def taken_up(manager: CheckpointManager, store: Store, run: RunId) -> ActiveRun:
    """The run where it stopped, or begun."""
    if store.run(run) is None:
        first = turns_of(run)[0]
        assert isinstance(first[0], ev.RunStarted)
        return await manager.begin(first[0], *first[1:])
    return await manager.restore(run, fallback=False)


def head_of(active: ActiveRun) -> Digest:
    """The digest of the newest snapshot."""
    assert active.digest is not None
    return active.digest


@cache
def undisturbed() -> Digests:
    """The digest of every snapshot when nothing goes wrong."""
    found: Digests = {}

    def note(run: RunId, seq: int, digest: Digest) -> None:
        found[run, seq] = digest

    with ThreadPoolExecutor(1) as elsewhere:  # this thread may be running a loop already
        elsewhere.submit(lambda: anyio.run(work, MemoryStore(), note)).result()
    return found


def first_of(run: RunId, last: int) -> Digests:
    """The undisturbed digests of one run up to a number."""
    return {key: digest for key, digest in undisturbed().items() if key[0] == run and key[1] <= last}


def check_whole(store: Store) -> None:
    """There is no damage."""
    report = verify_store(manager_of(store).archive)
    assert not report.findings, report.findings


def check(store: Store, acknowledged: Digests) -> None:
    """Nothing that was acknowledged is lost, and what is there is whole."""
    check_whole(store)
    manager = manager_of(store)
    for (run, seq), digest in acknowledged.items():
        assert undisturbed()[run, seq] == digest, f"{run}@{seq} is not what it would have been"
        assert manager.archive.row(run, seq).digest == digest, f"{run}@{seq} is another"
    for run in (LEFT, RIGHT):
        found = store.run(run)
        if found is not None:
            snapshot = manager.archive.snapshot(manager.archive.row(run, found.head))
            assert snapshot.digest == undisturbed()[run, found.head]
