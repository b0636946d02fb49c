"""A damaged run goes on: from the newest whole snapshot, on the record, with nothing deleted."""

import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.address import KINDS
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.history.verify.verifier import verify_run, verify_store
from orchestra.ids import RunId
from orchestra.ports.store import RowQuery
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import (
    FRAMER,
    Story,
    TickingClock,
    copied,
    flipped,
    fork,
    objects_of,
    record,
    rows_of,
    set_object,
    set_row,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]
R1, R2 = RunId("r1"), RunId("r2")


@pytest.fixture(scope="module")
async def recorded() -> MemoryStore:
    store = MemoryStore()
    await record(store, turns=70, seed=21)
    await fork(store, "r1", 68, "r2", turns=4)
    return store


@pytest.fixture
def store(recorded: MemoryStore) -> MemoryStore:
    return copied(recorded)


def later(turns: int = 150) -> Story:
    """A story that has come far enough for its names to be new."""
    story = Story(5)
    for _ in range(turns):
        story.turn()
    return story


async def goes_on(store: MemoryStore, run: RunId) -> int:
    """Restore a run and record a turn; returns the snapshot it went on from."""
    head = len(rows_of(store, run)) - 1
    async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
        active = await manager.restore(run)
        await manager.record(active, later().turn())
        await manager.release(active)
    record = Archive(store, FRAMER).state(run, head + 1).rollbacks
    assert len(record) == 1
    assert record[-1].from_seq == head
    return record[-1].to_seq


async def test_a_damaged_head_is_left_behind(store: MemoryStore) -> None:
    patch = rows_of(store, "r1")[70].patch
    assert patch is not None
    set_row(store, "r1", 70, patch=flipped(patch, 99))
    before = verify_run(Archive(store, FRAMER), R1)
    assert (before.head, before.whole) == (70, 69)
    assert await goes_on(store, R1) == 69
    after = verify_run(Archive(store, FRAMER), R1)
    assert (after.head, after.whole) == (72, 72)
    assert after.findings == before.findings  # the damage is still there to be seen


async def test_a_missing_seal_is_left_behind(store: MemoryStore) -> None:
    set_object(store, rows_of(store, "r1")[70].seal, None)
    report = verify_run(Archive(store, FRAMER), R1)
    assert report.whole == 63
    assert await goes_on(store, R1) == 63


@pytest.mark.parametrize("seq", [70, 69, 65])
async def test_a_damaged_header_is_left_behind(store: MemoryStore, seq: int) -> None:
    set_row(store, "r1", seq, header=flipped(rows_of(store, "r1")[seq].header, 60))
    report = verify_run(Archive(store, FRAMER), R1)
    assert report.whole == seq - 1
    assert await goes_on(store, R1) == seq - 1


async def test_the_newest_whole_ancestor_is_where_a_run_goes_on(store: MemoryStore) -> None:
    """For every node that a head needs: what verification says is what restoring does."""
    tried = 0
    for digest, data in objects_of(store).items():
        if KINDS[data[1]] == "value":
            continue  # restoring does not read large values, verifying does
        damaged = copied(store)
        set_object(damaged, digest, None)
        for run in verify_store(Archive(damaged, FRAMER)).runs:
            if not run.head_is_whole and run.whole is not None:
                assert await goes_on(damaged, run.run) == run.whole
                tried += 1
    assert tried


async def test_a_run_of_which_nothing_is_whole_is_refused(store: MemoryStore) -> None:
    for row in rows_of(store, "r1"):
        set_row(store, "r1", row.seq, header=b"\0\0\1")
    report = verify_run(Archive(store, FRAMER), R1)
    assert report.whole is None
    async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
        with pytest.raises(DamageError):
            await manager.restore(R1)
    found = store.run(R1)
    assert found is not None
    assert not found.owned


async def test_other_runs_are_not_touched(store: MemoryStore) -> None:
    row = rows_of(store, "r1")[70]
    set_row(store, "r1", 70, header=b"")
    assert verify_run(Archive(store, FRAMER), R2).is_whole
    assert row.digest == store.rows(RowQuery(run=R1, first=70))[0].digest
