"""A sync fails once, anywhere: that snapshot is not acknowledged, and recording goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestra.errors import StoreFailed
from orchestra.stores.sqlite import SqliteStore
from tests.fault.support.disk import Disk, nothing, sync_fails_at
from tests.fault.support.work import LEFT, check, first_of, manager_of, taken_up, turns_of

TURNS = 8


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk("broken")
    yield disk
    disk.unregister()


async def _with_a_failing_sync(folder: Path, disk: Disk, point: int) -> list[tuple[str, bool]]:
    disk.strike, failures = nothing, []
    with SqliteStore(folder / "orchestra.db", create=True, vfs=disk.name) as store:
        async with manager_of(store) as manager:
            active = await taken_up(manager, store, LEFT)
            disk.count, disk.strike = 0, sync_fails_at(point)
            while active.seq < TURNS:
                before = active.seq
                try:
                    await manager.record(active, turns_of(LEFT)[before + 1])
                except StoreFailed as failed:
                    failures.append((str(failed), active.seq == before))
            await manager.release(active)
        check(store, first_of(LEFT, TURNS))
    return failures


@pytest.mark.anyio
async def test_a_sync_that_fails_once(tmp_path: Path, disk: Disk) -> None:
    failures = [await _with_a_failing_sync(tmp_path / str(point), disk, point) for point in range(0, 70, 3)]
    assert {len(each) for each in failures} <= {0, 1}
    said = [failure for each in failures for failure in each]
    assert len(said) > 15
    assert all("was not acknowledged" in sentence and stood_still for sentence, stood_still in said)
