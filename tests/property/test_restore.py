"""The state after a restore is the state that was recorded, at every snapshot of a thousand random runs."""

from pathlib import Path

import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.writers import Writer
from orchestra.history.archive import Archive
from orchestra.model.state import State
from orchestra.ports.store import Store
from tests.property.recording import Recorded, Telling, managed, opened, tell

CHUNK = 50
CHUNKS = 20


def state_bytes(state: State) -> bytes:
    """The state as one piece of canonical bytes: equal bytes are equal to the last bit."""
    return Writer().write(state)


def check_all(archive: Archive, recorded: Recorded) -> None:
    """Every snapshot reads back as it was recorded."""
    for (run, seq), kept in recorded.items():
        read = archive.snapshot(archive.row(run, seq))
        assert read.digest == kept.digest, f"{run}@{seq}"
        assert read.header == kept.header, f"{run}@{seq}"
        assert read.state == kept.state, f"{run}@{seq}"


def check_heads(archive: Archive, recorded: Recorded) -> None:
    """The newest snapshot of each run reads back to the last bit."""
    for run, seq in {run: (run, seq) for run, seq in sorted(recorded)}.values():
        assert state_bytes(archive.state(run, seq)) == state_bytes(recorded[run, seq].state), f"{run}@{seq}"


async def check_restored(manager: CheckpointManager, recorded: Recorded) -> None:
    """A run that is taken over stands where it was left, and goes on."""
    for run, seq in {run: (run, seq) for run, seq in sorted(recorded)}.values():
        active = await manager.restore(run)
        assert (active.seq, active.digest) == (seq, recorded[run, seq].digest)
        assert active.state == recorded[run, seq].state
        await manager.release(active)


async def told(store: Store, seed: int) -> Telling:
    """A story told to a store and read back by somebody who was not there."""
    async with managed(store) as manager:
        telling = await tell(manager, seed)
    async with managed(store) as reader:
        check_all(reader.archive, telling.recorded)
        check_heads(reader.archive, telling.recorded)
        await check_restored(reader, telling.recorded)
    return telling


@pytest.mark.anyio
@pytest.mark.parametrize("chunk", range(CHUNKS))
async def test_every_snapshot_of_a_thousand_runs(chunk: int, tmp_path: Path) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        with opened("memory", tmp_path) as store:
            await told(store, seed)


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", ["sqlite", "files"])
async def test_every_snapshot_of_a_hundred_runs_on_disk(scheme: str, tmp_path: Path) -> None:
    with opened(scheme, tmp_path) as store:
        for seed in range(100 if scheme == "sqlite" else 20):
            await told(store, seed)


@pytest.mark.anyio
async def test_a_store_opened_again_has_everything(tmp_path: Path) -> None:
    recorded: Recorded = {}
    for seed in range(5):
        with opened("sqlite", tmp_path) as store:
            async with managed(store) as manager:
                recorded |= (await tell(manager, seed)).recorded
    with opened("sqlite", tmp_path) as store:
        check_all(Archive(store), recorded)


@pytest.mark.anyio
async def test_restored_and_undisturbed_runs_write_the_same_bytes(tmp_path: Path) -> None:
    """What a run writes after a restore is what it would have written without one."""
    for seed in range(40):
        with opened("memory", tmp_path) as one, opened("memory", tmp_path) as two:
            straight, broken = await _digests(one, seed, None), await _digests(two, seed, seed % 9 + 1)
            assert straight == broken, f"seed {seed}"


async def _digests(store: Store, seed: int, restore_after: int | None) -> list[bytes]:
    async with managed(store) as manager:
        telling = Telling(manager, seed)
        active = await telling.begin()
        for turn in range(70):
            if turn == restore_after:
                await manager.release(active)
                active = await manager.restore(active.run)
            await telling.go_on(active, 1)
    return [kept.digest for kept in telling.recorded.values()]
