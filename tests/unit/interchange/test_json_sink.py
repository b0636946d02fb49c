"""The sink that writes JSON files while a run is recorded."""

import json
import logging
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.history.archive import Archive
from orchestra.ids import Digest
from orchestra.interchange.json_check import verify_file
from orchestra.interchange.json_files import JsonSink
from orchestra.ports.sink import CheckpointFailed, CheckpointSaved
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import FRAMER, R1, Story, TickingClock, rows_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]


def _whole_form(path: Path) -> dict[str, Any]:
    assert verify_file(path).is_whole
    form: dict[str, Any] = json.loads(path.read_bytes())
    return form


async def test_a_sink_writes_files_as_snapshots_are_saved(tmp_path: Path) -> None:
    store, story = MemoryStore(), Story(3)
    with JsonSink(Archive(store, FRAMER), tmp_path) as sink:
        async with CheckpointManager(store, clock=TickingClock(), owner="test", sinks=[sink]) as manager:
            active = await manager.begin(*story.start("r1"))
            for _ in range(20):
                await manager.record(active, story.turn())
        sink.flush()
        folder = sink.folder(R1)
        names = {path.name.rpartition("_")[2] for path in folder.iterdir()}
        marked = [row.seq for row in rows_of(store, "r1") if row.marked]
        assert names == {f"{seq}.json" for seq in marked} | {"latest.json"}
        assert _whole_form(folder / "latest.json")["snapshot"]["seq"] == marked[-1]
        assert folder == tmp_path / "r1" / "checkpoints"
    sink.close()  # once more does no harm


async def test_a_sink_that_cannot_write_does_not_fail_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    store, story = MemoryStore(), Story(3)
    with (
        caplog.at_level(logging.CRITICAL, logger="orchestra.checkpoint"),
        JsonSink(Archive(store, FRAMER), tmp_path / "file") as sink,
    ):
        async with CheckpointManager(store, clock=TickingClock(), owner="test", sinks=[sink]) as manager:
            active = await manager.begin(*story.start("r1"))
            await manager.record(active, story.turn())
        sink.flush()
    assert active.seq == 1


def test_a_sink_leaves_out_what_it_is_not_asked_for(archive: Archive, tmp_path: Path) -> None:
    saved = CheckpointSaved(
        run=R1,
        seq=3,
        digest=Digest(b""),
        at=TickingClock().now(),
        size=1,
        seconds=0.0,
        triggers=(),
        marked=False,
    )
    with JsonSink(archive, tmp_path) as sink:
        sink.notice(saved)
        sink.notice(CheckpointFailed(run=R1, seq=3, at=TickingClock().now(), error="x", unsaved=1))
        sink.flush()
        assert list(tmp_path.iterdir()) == []
    with JsonSink(archive, tmp_path, only_marked=False) as sink:
        sink.notice(saved)
        sink.notice(attrs.evolve(saved, seq=9))
        sink.flush()
        assert _whole_form(sink.folder(R1) / "latest.json")["snapshot"]["seq"] == 9
