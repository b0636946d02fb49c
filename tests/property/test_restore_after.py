"""What is left after pruning, and what comes out of an export, is what was recorded."""

from pathlib import Path

import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.retention.garbage import collect
from orchestra.checkpoint.retention.plan import prune_store
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.errors import PrunedSnapshot
from orchestra.history.archive import Archive
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import Instant, RunId
from orchestra.interchange.transfer import export_run, import_run
from orchestra.model import events as ev
from orchestra.model.snapshot import Snapshot
from orchestra.ports.store import Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import SECOND, START
from tests.property.recording import Recorded, managed, opened, tell

LATER = Instant(START + 400 * 24 * 3600 * SECOND)
RETENTION = [
    RetentionSettings(),
    RetentionSettings(days=None, per_phase=1),
    RetentionSettings(days=None, per_phase=None, per_run=3),
    RetentionSettings(days=1, per_phase=None),
]


async def ended_story(store: Store, seed: int) -> Recorded:
    """A story told to its end, with a fork that is told to its end, too."""
    async with managed(store) as manager:
        telling = await tell(manager, seed)
        for run in dict.fromkeys(run for run, _ in telling.recorded):
            telling.keep(await _end(manager, run, telling.story.at))
    return telling.recorded


async def _end(manager: CheckpointManager, run: RunId, at: Instant) -> Snapshot:
    active = await manager.restore(run)
    ended = await manager.record(active, [ev.RunEnded(at=at, outcome="completed")])
    await manager.release(active)
    return ended


def check_kept(archive: Archive, recorded: Recorded) -> tuple[int, int]:
    """Every snapshot is as it was recorded, or says that it was pruned; how many of each."""
    kept = pruned = 0
    for (run, seq), snapshot in recorded.items():
        row = archive.row(run, seq)
        assert archive.header(row) == snapshot.header
        if row.pruned:
            pruned += 1
            with pytest.raises(PrunedSnapshot):
                archive.state(run, seq)
        else:
            kept += 1
            assert archive.state(run, seq) == snapshot.state
    return kept, pruned


def check_needed(archive: Archive, recorded: Recorded) -> None:
    """The head of every run, and what forks began at, can be read whatever was pruned."""
    for run in {run for run, _ in recorded}:
        head = archive.run(run).head
        assert archive.state(run, head) == recorded[run, head].state
        origin = archive.state(run, 0).origin
        if origin is not None:
            assert archive.state(origin.run, origin.seq) == recorded[origin.run, origin.seq].state


@pytest.mark.anyio
@pytest.mark.parametrize("part", range(4))
async def test_after_pruning(part: int, tmp_path: Path) -> None:
    pruned = 0
    for seed in range(part * 25, part * 25 + 25):
        with opened("memory", tmp_path) as store:
            recorded = await ended_story(store, seed)
            for settings in (RETENTION[seed % 4], RETENTION[(seed + 1) % 4]):
                pruned += check_pruning(store, settings, recorded)
    assert pruned > 10


def check_pruning(store: Store, settings: RetentionSettings, recorded: Recorded) -> int:
    """Prune, collect what nobody needs, and look at all that is left; how many snapshots are pruned now."""
    prune_store(Archive(store), settings, now=LATER)
    assert not collect(Archive(store), now=LATER, grace_seconds=0).problems
    archive = Archive(store)
    _, pruned = check_kept(archive, recorded)
    check_needed(archive, recorded)
    assert not [each for each in verify_store(archive).findings if each.is_damage]
    return pruned


@pytest.mark.anyio
@pytest.mark.parametrize("pruned", [False, True], ids=["whole", "pruned"])
async def test_after_export_and_import(pruned: bool, tmp_path: Path) -> None:
    for seed in range(30):
        with opened("memory", tmp_path) as store, MemoryStore() as other:
            recorded = await ended_story(store, seed)
            archive = Archive(store)
            if pruned:
                prune_store(archive, RETENTION[seed % 4], now=LATER)
                collect(archive, now=LATER, grace_seconds=0)
            for run in dict.fromkeys(run for run, _ in recorded):
                file = tmp_path / f"{run}.orchestra"
                export_run(archive, run, file)
                import_run(other, file)
            moved = Archive(other)
            assert check_kept(moved, recorded) == check_kept(archive, recorded)
            assert not [each for each in verify_store(moved).findings if each.is_damage]


@pytest.mark.anyio
async def test_an_imported_run_goes_on(tmp_path: Path) -> None:
    with opened("memory", tmp_path) as store, opened("sqlite", tmp_path) as other:
        async with managed(store) as manager:
            telling = await tell(manager, 5)
            runs = list(dict.fromkeys(run for run, _ in telling.recorded))
        for run in runs:
            export_run(Archive(store), run, tmp_path / f"{run}.orchestra")
            import_run(other, tmp_path / f"{run}.orchestra")
        async with managed(other) as manager:
            telling.manager = manager
            active = await manager.restore(runs[0])
            await telling.go_on(active, 40)
            await telling.roll_back(active)
            check_kept(Archive(other), telling.recorded)
