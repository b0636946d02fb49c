"""How runs stand: one that was cut off is shown as interrupted, one that somebody paused as paused."""

from pathlib import Path

import anyio
import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.model import events as ev
from orchestra.ports.store import RunQuery
from orchestra.stores.registry import open_store
from orchestra.testing.clock import FakeClock
from orchestra.web.views.runs import Runs
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import Recorder

CUT_OFF = {"died", "stopped", "noted"}
PAUSED = {"paused", "told"}


async def _record(url: str) -> None:
    """Five runs that nobody plays: cut off in three ways, and paused in two."""
    clock = FakeClock()
    with open_store(url, create=True) as store:
        async with CheckpointManager(store, clock=clock, owner="test") as manager:
            recorder = Recorder(manager, clock)
            at = clock.now()
            stop = ev.RunEnded(at=at, outcome="shutdown", reason="the process was asked to stop")
            pause = ev.RunPaused(at=at, reason="not now")
            note = ev.SnapshotRequested(at=at, why="user_requested", note="look at this")
            turns: dict[str, tuple[ev.Event, ...]] = {
                "died": (),
                "stopped": (stop,),
                "noted": (stop, note),
                "paused": (pause,),
                "told": (pause, stop),  # it was paused already when its process was stopped
            }
            for name, events in turns.items():
                active = await recorder.begin(RunId(name), "flow")
                await recorder.phase(active, "first")
                for event in events:
                    await recorder.turn(active, event)
                await manager.release(active)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    made = f"sqlite:{tmp_path}/store.db"
    anyio.run(_record, made)
    monkeypatch.setenv("ORCHESTRA_STORE", made)
    return made


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("interrupted", CUT_OFF),
        ("paused", PAUSED),
        ("running", set()),
        ("interrupted,paused", CUT_OFF | PAUSED),
    ],
)
def test_runs_are_filtered_as_they_are_shown(bare: Cli, url: str, status: str, found: set[str]) -> None:
    assert {row["run"] for row in bare("runs", "--status", status, "--json").json} == found


@pytest.mark.parametrize("run", sorted(CUT_OFF | PAUSED))
@pytest.mark.parametrize("command", ["status", "status --brief", "watch", "log", "snapshots"])
def test_a_run_stands_alike_wherever_it_is_shown(bare: Cli, url: str, command: str, run: str) -> None:
    name, *options = command.split()
    assert ("◍ interrupted" if run in CUT_OFF else "‖ paused") in bare(name, run, *options).out


def test_the_list_shows_what_the_filter_finds(bare: Cli, url: str) -> None:
    lines = bare("runs").lines[1:]
    assert {line.split()[2] for line in lines if "◍ interrupted" in line} == CUT_OFF
    assert {line.split()[2] for line in lines if "‖ paused" in line} == PAUSED
    assert bare("stats", "--json").json["total"]["statuses"] == {"interrupted": 3, "paused": 2}


def test_the_stored_status_is_kept(bare: Cli, url: str) -> None:
    assert bare("status", "stopped", "--json").json["status"] == "paused"


def test_the_page_shows_them_alike(url: str) -> None:
    with open_store(url, read_only=True) as store:
        runs = Runs(Archive(store, Framer(Addresser())))
        assert runs.list_runs(RunQuery())["counts"] == {"interrupted": 3, "paused": 2}
        for standing, found in (("interrupted", CUT_OFF), ("paused", PAUSED)):
            listed = runs.list_runs(RunQuery(status=(standing,)))["runs"]
            assert {each["run"] for each in listed} == found
            assert {each["standing"] for each in listed} == {standing}
