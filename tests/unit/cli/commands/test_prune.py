"""`orchestra delete` and `orchestra prune`."""

import shutil
from pathlib import Path

import anyio
import pytest

from orchestra.app.compose import open_manager
from orchestra.ids import Instant, PhaseId, RunId
from orchestra.model import events as ev
from orchestra.model.state import WorkflowRef
from orchestra.testing.clock import START
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, FORK, REVIEW, url_of

LONG = RunId("long_20261115_120000_aa")
ROWS = 100


async def _record_long_run() -> None:
    """A run that is long enough to have several seals, and over for long."""
    async with open_manager() as manager:
        started = ev.RunStarted(at=START, run=LONG, workflow=WorkflowRef(name="long"))
        active = await manager.begin(started)
        for number in range(1, ROWS):
            at = Instant(START + number)
            await manager.record(active, [ev.PhaseStarted(at=at, phase=PhaseId(f"p{number % 3}"))])
        await manager.record(active, [ev.RunEnded(at=Instant(START + ROWS), outcome="completed")])
        await manager.release(active)
        manager.archive.store.close()


def test_deleting_takes_saying_so_twice(own: Cli) -> None:
    outcome = own("delete", AUDIT)
    assert outcome.code == 2
    assert f"This deletes run '{AUDIT}' with 4 snapshots" in outcome.err
    assert outcome.err.endswith("Repeat it with --yes.\n")
    assert "--yes and the whole id" in own("delete", "audit", "--yes").err
    assert own("delete", AUDIT, "--yes").out == f"Deleted {AUDIT} with 4 snapshots.\n"
    assert own("snapshots", AUDIT).code == 2


def test_deleting_as_json_leaves_forks_whole(own: Cli) -> None:
    assert own("delete", REVIEW, "--yes", "--json").json == {"run": REVIEW, "snapshots": 11, "deleted": True}
    assert own("show", FORK, "tasks.structure.status").out == "completed\n"
    assert own("verify", FORK).code == 0


def test_the_json_files_go_too(own: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(_record_long_run)
    monkeypatch.chdir(tmp_path)
    folder = Path("outputs") / LONG / "checkpoints"
    assert own("export", LONG, "--json-form", str(folder)).code == 0
    before = len(list(folder.iterdir()))
    assert own("prune", LONG, "--per-phase", "1", "--dry-run").code == 0
    assert len(list(folder.iterdir())) == before
    assert own("prune", LONG, "--per-phase", "1").code == 0
    left = {path.name for path in folder.iterdir()}
    assert 1 < len(left) < before
    assert "latest.json" in left
    assert own("delete", LONG, "--yes").code == 0
    assert not folder.exists()


def test_json_files_of_another_store_stay(own: Cli, tmp_path: Path) -> None:
    """Two runs of one name in two stores have one folder; each store removes what is its own."""
    other = f"sqlite:{tmp_path / 'other.db'}"
    folder = Path("outputs") / AUDIT / "checkpoints"
    anyio.run(_record_under, other, RunId(AUDIT))
    assert own("export", AUDIT, "--json-form", str(folder)).code == 0
    files = {path.name for path in folder.iterdir()}
    assert own("prune", AUDIT, "--per-phase", "0", "--days", "0", "--store", other).code == 0
    assert own("delete", AUDIT, "--yes", "--store", other).code == 0
    assert {path.name for path in folder.iterdir()} == files
    assert own("delete", AUDIT, "--yes").code == 0
    assert not folder.exists()


async def _record_under(url: str, run: RunId) -> None:
    """A run with a name that another store has too."""
    async with open_manager(url) as manager:
        active = await manager.begin(ev.RunStarted(at=START, run=run, workflow=WorkflowRef(name="other")))
        for number in range(1, 6):
            at = Instant(START + number)
            await manager.record(active, [ev.PhaseStarted(at=at, phase=PhaseId("p"))])
        await manager.record(active, [ev.RunEnded(at=Instant(START + 6), outcome="completed")])
        await manager.release(active)
        manager.archive.store.close()


def test_json_files_stay_while_the_own_store_has_their_snapshots(own: Cli, tmp_path: Path) -> None:
    """A backup holds the very same snapshots: deleting them there leaves the files of the original alone."""
    anyio.run(_record_long_run)
    backup = shutil.copytree(tmp_path / "own", tmp_path / "backup")
    folder = Path("outputs") / LONG / "checkpoints"
    assert own("export", LONG, "--json-form", str(folder)).code == 0
    files = {path.name for path in folder.iterdir()}
    assert own("prune", "--per-phase", "1", "--store", url_of(backup)).code == 0
    assert own("delete", LONG, "--yes", "--store", url_of(backup)).code == 0
    assert {path.name for path in folder.iterdir()} == files
    assert own("delete", LONG, "--yes").code == 0
    assert not folder.exists()


def test_files_that_are_no_snapshots_stay(own: Cli) -> None:
    folder = Path("outputs") / AUDIT / "checkpoints"
    assert own("export", AUDIT, "--json-form", str(folder)).code == 0
    own_words = folder / "checkpoint_phase0_mine_1.json"
    own_words.write_text("these are no snapshot")
    (folder / "checkpoint_phase0_mine_2.json").write_text('{"snapshot": []}')
    assert own("delete", AUDIT, "--yes").code == 0
    assert {path.name for path in folder.iterdir()} == {own_words.name, "checkpoint_phase0_mine_2.json"}


def test_deleting_what_is_not_there(own: Cli) -> None:
    assert own("delete", "nobody", "--yes").code == 2


def test_pruning_keeps_what_is_needed(own: Cli) -> None:
    anyio.run(_record_long_run)
    plan = own("prune", LONG, "--dry-run", "--per-phase", "1", "--json").json
    assert plan["dry_run"] is True
    assert plan["runs"][0]["action"] == "prune"
    assert plan["runs"][0]["dropped"] > 0
    assert "would prune" in own("prune", LONG, "--dry-run", "--per-phase", "1").out
    done = own("prune", LONG, "--per-phase", "1", "--json").json
    assert done["runs"][0]["dropped"] == plan["runs"][0]["dropped"]
    assert own("verify", LONG).code == 0
    assert "pruned" in own("verify", LONG).out
    listed = own("snapshots", LONG, "--limit", "0", "--json").json
    pruned = [row["seq"] for row in listed if row["pruned"]]
    assert len(pruned) == done["dropped"]
    assert own("show", f"{LONG}@{ROWS}", "status").out == "completed\n"
    _look_at_pruned(own, pruned[0])


def _look_at_pruned(own: Cli, seq: int) -> None:
    shown = own("show", f"{LONG}@{seq}")
    assert shown.code == 0
    assert "was pruned" in shown.out
    assert own("show", f"{LONG}@{seq}", "--json").json["state"] is None
    value = own("show", f"{LONG}@{seq}", "status")
    assert value.code == 2
    assert "The nearest kept snapshots are" in value.err
    assert " pruned" in own("snapshots", LONG, "--limit", "0").out


def test_pruning_keeps_what_the_settings_say(own: Cli) -> None:
    """CHECKLIST 001.12: those of `configs/orchestra.yaml`, unless the command is told otherwise."""
    anyio.run(_record_long_run)
    file = Path("configs/orchestra.yaml")
    file.parent.mkdir()

    def planned(retention: str, *options: str) -> dict[str, int]:
        file.write_text(f"checkpoint: {{retention: {{{retention}}}}}\n")
        (run,) = own("prune", LONG, "--dry-run", "--json", *options).json["runs"]
        return dict(run["reasons"])

    phases, before_any = 3, 1
    assert planned("days: null, per_phase: 2")["per_phase"] == 2 * phases + before_any
    assert planned("days: null, per_phase: 4")["per_phase"] == 4 * phases + before_any
    assert planned("days: null, per_phase: 4", "--per-phase", "1")["per_phase"] == phases + before_any
    assert planned("days: null, per_phase: null, per_run: 7")["per_run"] == 7
    assert planned("preserve: true") == {"everything": ROWS + 1}


def test_pruning_a_whole_store(own: Cli) -> None:
    report = own("prune", "--json").json
    assert {run["run"]: run["action"] for run in report["runs"]} == {
        AUDIT: "keep",
        FORK: "keep",
        REVIEW: "keep",
    }
    assert set(report["garbage"]) == {
        "objects",
        "dead",
        "young",
        "removed",
        "bytes_freed",
        "problems",
        "dry_run",
    }
    lines = own("prune").lines
    assert "0 snapshots removed, 0 B of rows." in lines


@pytest.mark.parametrize("option", ["--days", "--per-phase", "--per-run"])
def test_bad_limits(own: Cli, option: str) -> None:
    outcome = own("prune", option, "-1")
    assert outcome.code == 2
    assert f"{option} cannot be -1" in outcome.err
