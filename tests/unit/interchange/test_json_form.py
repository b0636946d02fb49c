"""The JSON form of snapshots: complete, under its documented names, in files of their own."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.values import freeze, thaw_bytes
from orchestra.errors import Damaged, PrunedSnapshot, UnknownRun, UnknownSnapshot
from orchestra.history.archive import Archive
from orchestra.ids import AgentId, Instant, RunId
from orchestra.interchange.json_check import verify_file
from orchestra.interchange.json_form import export_json, snapshot_json
from orchestra.model import events as ev
from orchestra.model.records import Decision
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import START
from tests.unit.recordings import (
    ADDRESSER,
    R1,
    Recorded,
    Story,
    TickingClock,
    at,
    large_values,
    rows_of,
    set_object,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]


def _whole_form(path: Path) -> dict[str, Any]:
    assert verify_file(path).is_whole
    form: dict[str, Any] = json.loads(path.read_bytes())
    return form


# --- snapshots


def test_it_has_every_field_of_the_documented_structure(recorded: Recorded, archive: Archive) -> None:
    form = snapshot_json(at(archive, 60), archive)
    state = recorded[1][60]
    assert (form["version"], form["workflow_id"], form["phase"], form["status"]) == (
        "1.0",
        "r1",
        1,
        "in_progress",
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", form["timestamp"])
    assert form["resumable"] is True
    atlas, mercury = form["agents"]["atlas"], form["agents"]["mercury_1"]
    assert (atlas["type"], atlas["status"]) == ("atlas", "active")
    assert atlas["last_decision"] == [d for d in state.decisions if d.agent == "atlas"][-1].description
    assert thaw_bytes(base64.b64decode(atlas["state"]))["phase"] == "analyse"
    assert (mercury["type"], mercury["blockers"][0]["blocked_by"]) == ("mercury", "key")
    assert mercury.keys() >= {
        "confidence",
        "progress",
        "step",
        "last_decision",
        "output_ref",
        "blockers",
        "state",
    }
    decision = form["decisions"][-1]
    assert decision["type"] == "workflow_adjustment"
    assert decision["alternatives_considered"] == ["wait", "ask"]
    assert form["metrics"]["elapsed_time"] == state.metrics.elapsed_us / 1e6
    assert form["metrics"]["tokens_used"] == state.metrics.tokens
    assert form["metrics"]["memory_peak"] == state.metrics.memory_peak_bytes / (1 << 20)
    assert form["snapshot"]["seq"] == 60
    assert form["snapshot"]["triggers"]
    assert len(form["tasks"]) == len(state.tasks)
    assert form["context"]["$$sum"]["reducer"] == "sum"
    assert [each["path"] for each in form["outputs"]] == list(state.outputs)
    for name in ("messages", "evaluations", "waits", "effects", "path", "rollbacks"):
        assert len(form[name]) == len(getattr(state, name)), name


async def test_a_decision_is_told_whole() -> None:
    """CHECKLIST 001.29: each of its parts under its own name."""
    decision = Decision(
        at=Instant(START + 61_000_250),
        agent=AgentId("mercury_1"),
        kind="workflow_adjustment",
        description="Spawn another specialist",
        rationale="0.73 is below 0.75",
        confidence=0.88,
        alternatives=("request_human_review", "proceed_with_low_confidence"),
        details=freeze({"specialist": "structure"}, ADDRESSER),
    )
    form = await _form_after(ev.DecisionMade(at=Instant(START + 90_000_000), decision=decision))
    assert form["decisions"] == [
        {
            "timestamp": "2026-11-15T12:01:01.000250Z",
            "agent": "mercury_1",
            "type": "workflow_adjustment",
            "description": "Spawn another specialist",
            "rationale": "0.73 is below 0.75",
            "confidence": 0.88,
            "alternatives_considered": ["request_human_review", "proceed_with_low_confidence"],
            "details": {"specialist": "structure"},
        }
    ]


async def test_what_was_spent_is_told_whole() -> None:
    """CHECKLIST 001.30."""
    spent = ev.Spent(
        at=START,
        api_calls=3,
        tokens_in=500,
        tokens_out=70,
        cost_micros=1_200,
        elapsed_us=2_500_000,
        memory_peak_bytes=64 << 20,
    )
    form = await _form_after(spent, spent)
    assert form["metrics"] == {
        "elapsed_time": 5.0,
        "api_calls": 6,
        "tokens_used": 1_140,
        "memory_peak": 64.0,
        "tokens_in": 1_000,
        "tokens_out": 140,
        "cost_micros": 2_400,
        "recoveries": 0,
        "rollbacks": 0,
    }


async def _form_after(*events: ev.Event) -> dict[str, Any]:
    """The form of a run that has just begun and seen these events."""
    async with CheckpointManager(MemoryStore(), clock=TickingClock(), owner="test") as manager:
        active = await manager.begin(*Story(1).start("r1"))
        return snapshot_json(await manager.record(active, events), manager.archive)


def test_private_state_is_the_bytes_that_were_stored(recorded: Recorded, archive: Archive) -> None:
    private = recorded[1][60].agents["mercury_1"].private
    assert private is not None
    found = base64.b64decode(snapshot_json(at(archive, 60), archive)["agents"]["mercury_1"]["state"])
    assert found == archive.loader.value(private).encoded


def test_the_digest_can_be_worked_out_by_anybody(archive: Archive) -> None:
    form = snapshot_json(at(archive, 60), archive)
    integrity = form.pop("integrity")
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert integrity == {
        "algorithm": "blake3",
        "digest": blake3(b"orchestra/export/1\0" + text.encode()).hexdigest(),
    }


def test_large_values_are_named_or_written_out(recorded: Recorded, archive: Archive) -> None:
    seq = next(seq for seq, state in enumerate(recorded[1]) if large_values(state))
    snapshot = at(archive, seq)
    value = large_values(snapshot.state)[0]
    assert value.digest is not None
    marked = {"$large": {"digest": value.digest.hex(), "size": value.size}}
    short, full = (json.dumps(snapshot_json(snapshot, archive, large=large)) for large in (False, True))
    assert json.dumps(marked) in short
    assert "$large" not in full
    assert len(full) > len(short) + 30_000


@pytest.mark.parametrize(
    ("outcome", "status", "resumable"),
    [("completed", "completed", False), ("failed", "failed", True), ("shutdown", "in_progress", True)],
)
async def test_how_a_run_ended_is_told(outcome: Any, status: str, resumable: bool) -> None:
    store = MemoryStore()
    async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
        active = await manager.begin(*Story(1).start("r1"))
        ended = await manager.record(active, [ev.RunEnded(at=TickingClock().now(), outcome=outcome)])
        form = snapshot_json(ended, manager.archive)
    assert (form["status"], form["resumable"]) == (status, resumable)


async def test_numbers_that_json_lacks_are_marked() -> None:
    store = MemoryStore()
    async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
        active = await manager.begin(*Story(1).start("r1"))
        unsure = ev.ConfidenceReported(at=TickingClock().now(), value=float("nan"))
        snapshot = await manager.record(active, [unsure])
        form = snapshot_json(snapshot, manager.archive)
    assert form["confidence"]["overall"] == {"$float": "nan"}


# --- files


def test_files_are_named_and_verify(recorded: Recorded, archive: Archive, tmp_path: Path) -> None:
    written = export_json(archive, R1, tmp_path / "out")
    marked = [row.seq for row in rows_of(recorded[0], "r1") if row.marked]
    assert written[-1].name == "latest.json"
    names = [
        re.fullmatch(r"checkpoint_phase1_20261115T12000\dZ_(\d+)\.json", path.name) for path in written[:-1]
    ]
    assert [int(name[1]) for name in names if name] == marked
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in written)
    for path in written:
        report = verify_file(path)
        assert (report.kind, report.findings) == ("json", ())
    latest = _whole_form(written[-1])
    assert latest["snapshot"]["seq"] == 60
    text = written[-1].read_text(encoding="utf-8")
    assert text.startswith('{\n  "version": "1.0",\n')
    assert "naïve" in text


def test_which_snapshots_are_written_can_be_chosen(
    archive: Archive, recorded_store: MemoryStore, tmp_path: Path
) -> None:
    assert len(export_json(archive, R1, tmp_path / "all", only_marked=False)) == 61 + 1
    assert [path.name.rpartition("_")[2] for path in export_json(archive, R1, tmp_path, seqs=[7, 3])] == [
        "3.json",
        "7.json",
        "latest.json",
    ]
    recorded_store.prune(R1, range(7, 38))
    assert len(export_json(archive, R1, tmp_path / "kept", only_marked=False)) == 61 + 1 - 31
    with pytest.raises(PrunedSnapshot):
        export_json(archive, R1, tmp_path, seqs=[20])
    with pytest.raises(UnknownSnapshot):
        export_json(archive, R1, tmp_path, seqs=[400])
    with pytest.raises(UnknownRun):
        export_json(archive, RunId("nobody"), tmp_path)


def test_a_damaged_snapshot_is_not_written(
    archive: Archive, recorded_store: MemoryStore, tmp_path: Path
) -> None:
    set_object(recorded_store, rows_of(recorded_store, "r1")[60].seal, b"")
    with pytest.raises(Damaged):
        export_json(archive, R1, tmp_path, seqs=[])
    assert list(tmp_path.iterdir()) == []
