"""The disk is full, at any write: a clear error, nothing lost, and recording goes on once there is room."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.codec.values import freeze
from orchestra.errors import OrchestraError, StoreFull
from orchestra.ids import Digest
from orchestra.limits import UNSAVED_ROWS
from orchestra.model import events as ev
from orchestra.model.reducers import Appended
from orchestra.model.tree import Vec
from orchestra.ports.sink import CheckpointFailed, Notice
from orchestra.ports.store import Store
from orchestra.stores.memory import MemoryStore
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.clock import FakeClock
from orchestra.testing.faulty import Fault, FaultPlan, FaultyStore, When
from tests.fault.support.disk import Disk, full_from, nothing
from tests.fault.support.work import (
    LEFT,
    check,
    check_whole,
    first_of,
    manager_of,
    taken_up,
    turns_of,
    undisturbed,
)

TURNS = 10
CONTINUE = CheckpointSettings(on_save_error="continue")


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk("full")
    yield disk
    disk.unregister()


def _store(folder: Path, disk: Disk) -> Store:
    return SqliteStore(folder / "orchestra.db", create=True, vfs=disk.name)


async def _stubbornly(
    manager: CheckpointManager, store: Store, tell: Callable[[OrchestraError], None]
) -> None:
    """Record a run to its end; whatever fails is told and done again."""
    active: ActiveRun | None = None
    for _ in range(TURNS + 10):
        if active is not None and active.seq == TURNS:
            return await manager.release(active)
        try:
            if active is None:
                active = await taken_up(manager, store, LEFT)
            else:
                await manager.record(active, turns_of(LEFT)[active.seq + 1])
        except OrchestraError as error:
            tell(error)
    raise AssertionError("it does not go on")


async def _full_at(folder: Path, disk: Disk, point: int) -> list[OrchestraError]:
    """What is said when the disk is full at that operation; there is room at once, and all is well after."""
    said: list[OrchestraError] = []

    def tell(error: OrchestraError) -> None:
        said.append(error)
        disk.strike = nothing

    disk.count, disk.strike = 0, full_from(point)
    try:
        store = _store(folder, disk)
    except OrchestraError as error:
        tell(error)
        store = _store(folder, disk)
    with store:
        async with manager_of(store) as manager:
            await _stubbornly(manager, store, tell)
        check(store, first_of(LEFT, TURNS))
    return said


@pytest.mark.anyio
@pytest.mark.parametrize("part", range(4))
async def test_full_from_every_write_on(part: int, tmp_path: Path, disk: Disk) -> None:
    point = part
    while said := await _full_at(tmp_path / str(point), disk, point):
        assert len(said) == 1
        assert isinstance(said[0], StoreFull)
        assert re.search(r"needs about [\d.]+ (bytes|KB|MB) more", str(said[0]))
        shutil.rmtree(tmp_path / str(point))
        point += 4
    assert point > 80


@pytest.mark.anyio
async def test_what_was_acknowledged_can_be_read_while_it_is_full(tmp_path: Path, disk: Disk) -> None:
    with _store(tmp_path, disk) as store:
        async with manager_of(store) as manager:
            active = await taken_up(manager, store, LEFT)
            for turn in turns_of(LEFT)[1:6]:
                await manager.record(active, turn)
            disk.strike = full_from(0)
            for _ in range(3):
                with pytest.raises(StoreFull):
                    await manager.record(active, turns_of(LEFT)[6])
            assert (await manager.look(LEFT)).header.seq == active.seq == 5
            disk.strike = nothing
            assert (await manager.record(active, turns_of(LEFT)[6])).digest == undisturbed()[LEFT, 6]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small filesystem can be mounted by root only")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small filesystem cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _large(manager: CheckpointManager, number: int) -> ev.Event:
    value = freeze(bytes([number % 256]) * 20 + os.urandom(30_000), manager.addresser)
    return ev.ContextContributed(
        at=turns_of(LEFT)[0][0].at, name="big", contribution=Appended(items=Vec([value]))
    )


async def _fill(manager: CheckpointManager, active: ActiveRun, acknowledged: list[Digest]) -> None:
    for number in range(200):
        acknowledged.append((await manager.record(active, [_large(manager, number)])).digest)


@pytest.mark.anyio
async def test_a_real_small_disk(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(400_000))
    with SqliteStore(small_disk / "orchestra.db", create=True) as store:
        async with manager_of(store) as manager:
            active = await taken_up(manager, store, LEFT)
            acknowledged: list[Digest] = []
            with pytest.raises(StoreFull, match=r"Disk full: .* needs about \d"):
                await _fill(manager, active, acknowledged)
            rows = [manager.archive.row(LEFT, seq + 1) for seq in range(len(acknowledged))]
            assert [row.digest for row in rows] == acknowledged
            assert (await manager.look(LEFT)).digest == acknowledged[-1]
            filler.unlink()
            again = await manager.record(active, [_large(manager, 200)])
            assert again.header.seq == len(acknowledged) + 1
            check_whole(store)


# --- on_save_error: continue


class _Notices:
    def __init__(self) -> None:
        self.heard: list[Notice] = []

    def notice(self, notice: Notice, /) -> None:
        self.heard.append(notice)

    def failures(self) -> list[int]:
        return [notice.unsaved for notice in self.heard if isinstance(notice, CheckpointFailed)]


@pytest.mark.anyio
async def test_continuing_saves_what_is_missing_first(tmp_path: Path, disk: Disk) -> None:
    notices = _Notices()
    with _store(tmp_path, disk) as store:
        clock = FakeClock(step=1)
        manager = CheckpointManager(store, clock=clock, owner="me", settings=CONTINUE, sinks=[notices])
        async with manager:
            active = await taken_up(manager, store, LEFT)
            disk.strike = full_from(0)
            for turn in turns_of(LEFT)[1:8]:
                await manager.record(active, turn)
            assert active.is_degraded
            assert active.seq == 7
            assert manager.archive.run(LEFT).head == 0
            assert notices.failures() == [1, 2, 3, 4, 5, 6, 7]
            disk.strike = nothing
            last = await manager.record(active, turns_of(LEFT)[8])
            assert active.unsaved == []
            assert last.digest == undisturbed()[LEFT, 8]
        check(store, first_of(LEFT, 8))


@pytest.mark.anyio
async def test_what_waits_to_be_saved_is_bounded() -> None:
    store = FaultyStore(MemoryStore(), FaultPlan())
    async with manager_of(store, CONTINUE) as manager:
        active = await taken_up(manager, store, LEFT)
        store.plan = FaultPlan([Fault(methods={"commit"}, kind=StoreFull)])
        event = ev.SnapshotRequested(at=turns_of(LEFT)[0][0].at, why="periodic")
        for _ in range(UNSAVED_ROWS):
            await manager.record(active, [event])
        for _ in range(2):
            with pytest.raises(StoreFull):
                await manager.record(active, [event])
        assert len(active.unsaved) == UNSAVED_ROWS == active.seq
        store.plan = FaultPlan()
        snapshot = await manager.record(active, [event])
        assert snapshot.header.seq == UNSAVED_ROWS + 1
        assert manager.archive.run(LEFT).digest == snapshot.digest
        check_whole(store)


@pytest.mark.anyio
async def test_a_first_snapshot_never_waits() -> None:
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=0, kind=StoreFull)]))
    async with manager_of(store, CONTINUE) as manager:
        with pytest.raises(StoreFull):
            await taken_up(manager, store, LEFT)
        active = await taken_up(manager, store, LEFT)
        assert active.seq == 0


@pytest.mark.anyio
@pytest.mark.parametrize("when", ["before", "after"])
async def test_failing_at_every_call_of_the_store(when: When) -> None:
    """Whatever call fails, before or after it was done, the same work done again comes to the same end."""
    methods = {"commit", "run", "rows", "get_objects"}
    for nth in range(TURNS + 3):
        store = FaultyStore(MemoryStore(), FaultPlan([Fault(methods=methods, nth=nth, when=when)]))
        async with manager_of(store) as manager:
            await _stubbornly(manager, store, lambda error: None)
        check(store.inner, first_of(LEFT, TURNS))
