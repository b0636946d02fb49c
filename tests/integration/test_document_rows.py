"""Settings, storage and upkeep as the main document asks for them (CHECKLIST 001), for real."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.checkpoint.settings import CheckpointSettings, RetentionSettings
from orchestra.config.settings.resolve import resolve
from orchestra.engine.settings import EngineSettings
from orchestra.errors import BadSetting, PrunedSnapshot
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import MB
from orchestra.ports.store import RowQuery
from orchestra.stores.registry import open_store
from orchestra.stores.sqlite import SqliteStore
from tests.unit.engine.support import Theatre, does, flow, phase

ASKED_FOR: dict[str, tuple[str, object]] = {
    "checkpoint_config.enabled": ("checkpoint.enabled", True),
    "checkpoint_config.storage_path": ("checkpoint.store", "sqlite:outputs/orchestra.db"),
    "checkpoint_config.compression": ("checkpoint.compression", True),
    "checkpoint_config.retention_days": ("checkpoint.retention.days", 30),
    "checkpoint_config.max_checkpoints_per_phase": ("checkpoint.retention.per_phase", 5),
    "checkpoint_config.checkpoint_size_limit_mb": ("checkpoint.size_limit_bytes", 100 * MB),
    "recovery_config.auto_recovery": ("recovery.auto", True),
    "recovery_config.max_recovery_attempts": ("recovery.max_recoveries", 3),
    "recovery_config.recovery_timeout_seconds": ("recovery.timeout", 300_000_000),
    "recovery_config.fallback_to_previous": ("recovery.fallback_to_previous", True),
    "performance_config.compression_level": ("checkpoint.compression_level", 3),
}
"""Keys of the document, the settings that stand for them here, and what those are without being set."""


@pytest.mark.parametrize("key", ASKED_FOR)
def test_what_the_document_lets_people_set_can_be_set(key: str) -> None:
    """001.40 to 001.42. The level is another: 3 is a fraction of the time of 6 for nearly the same size."""
    name, default = ASKED_FOR[key]
    found = {each.name: each.value for each in resolve()}
    assert found[name] == default
    changed: Any = "memory:" if isinstance(default, str) else not default
    if not isinstance(default, (str, bool)):
        changed = 7
    again = {each.name: each for each in resolve(file={name: changed})}
    assert (again[name].value, again[name].source) == (changed, "configs/orchestra.yaml")


def test_what_cannot_be_done_yet_is_refused_and_not_ignored() -> None:
    """001.7, 001.40: nobody is led to believe that a store is encrypted."""
    with pytest.raises(BadSetting, match="cannot be encrypted yet"):
        CheckpointSettings(encryption=True)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux says what is mapped")
@pytest.mark.parametrize("size", ["0", "64MB"])
def test_a_store_can_be_mapped_into_memory(tmp_path: Path, size: str) -> None:
    """001.20, 001.42: the file itself is in the memory of the process, if that was asked for."""
    file = tmp_path / "mapped.db"
    with open_store(f"sqlite:{file}?mmap={size}", create=True) as store:
        store.set_meta("k", b"v" * 100_000)
        store.close()
    with open_store(f"sqlite:{file}?mmap={size}") as store:
        assert store.meta("k") == b"v" * 100_000
        mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(file) in line]
    whole = [line for line in mapped if not line.endswith("-shm")]
    assert bool(whole) == (size != "0")


async def _busy(ctx: Any) -> str:
    for number in range(200):
        await ctx.save({"at": number}, progress=number / 200)
    return "done"


@pytest.mark.anyio
@pytest.mark.parametrize("auto", [True, False])
async def test_old_snapshots_go_by_themselves_when_that_is_wanted(tmp_path: Path, auto: bool) -> None:
    """000.39, 001.11, 001.12, 003.21: as soon as the run is over; what is kept can be read whole."""
    keep = CheckpointSettings(retention=RetentionSettings(auto=auto, per_phase=1))
    workflow = flow(*(phase(name, does("busy"), next=[way]) for name, way in (("p1", "p2"), ("p2", "end"))))
    with SqliteStore(tmp_path / "store.db", create=True) as store:
        ending = await Theatre(tmp_path, store).run(workflow, {"busy": _busy}, settings=keep)
        rows = store.rows(RowQuery(run=RunId("run")))
        pruned = [row.seq for row in rows if row.pruned]
        assert bool(pruned) == auto
        assert len(pruned) < len(rows)
        archive = Archive(store)
        assert archive.snapshot(rows[-1]).state == ending.state
        for row in rows:
            if row.pruned:
                with pytest.raises(PrunedSnapshot):
                    archive.snapshot(row)
            else:
                assert archive.snapshot(row).header.seq == row.seq


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["auto", "delete_on_completion"])
async def test_files_of_snapshots_go_with_them(tmp_path: Path, how: str) -> None:
    """000.39, 000.40: what retention no longer keeps is not left behind as JSON; what people wrote is."""
    retention = RetentionSettings(per_phase=1, **{how: True})
    engine = EngineSettings(json_files=True, telemetry=False, events=False)
    workflow = flow(*(phase(name, does("busy"), next=[way]) for name, way in (("p1", "p2"), ("p2", "end"))))
    folder = tmp_path / "outputs" / "run" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "mine.json").write_text("{}")
    with SqliteStore(tmp_path / "store.db", create=True) as store:
        keep = CheckpointSettings(retention=retention)
        async with Theatre(tmp_path, store).house({"busy": _busy}, settings=keep, engine=engine) as house:
            await house.run(workflow, run="run")
        rows = store.rows(RowQuery(run=RunId("run"), content=False))
    kept = {f"{row.seq}.json" for row in rows if row.marked and not row.pruned}
    assert bool(kept) == (how == "auto")
    assert len(kept) < 200
    latest = {"latest.json"} if kept else set[str]()
    assert {path.name.rpartition("_")[2] for path in folder.iterdir()} == kept | latest | {"mine.json"}


@pytest.mark.anyio
async def test_a_large_output_is_stored_once_and_only_named(tmp_path: Path) -> None:
    """001.19, 001.44: later snapshots hold a reference, and repeated text takes little room."""
    text = "the same words again and again, " * 100_000

    async def writes(ctx: Any) -> str:
        await ctx.write("large.txt", text)
        for number in range(20):
            await ctx.save({"at": number})
        return "done"

    with SqliteStore(tmp_path / "store.db", create=True) as store:
        before = store.stats().object_bytes
        ending = await Theatre(tmp_path, store).run(flow(phase("p", does("writes"))), {"writes": writes})
        stats = store.stats()
        assert stats.object_bytes - before < len(text) / 20
        sizes = [len(row.patch or b"") for row in store.rows(RowQuery(run=RunId("run")))]
        assert max(sizes) < 10_000
    output = ending.state.outputs["p/large.txt"]
    assert (output.size, output.content is not None and output.content.digest) == (len(text), output.digest)
