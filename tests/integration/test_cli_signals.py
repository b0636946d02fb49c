"""Signals: a run that is stopped, killed or poked loses nothing and can go on."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.project import Project, ended, stop


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


BLOCKED = """
import asyncio, time
from pathlib import Path
async def agent(ctx):
    Path("began").touch()
    await asyncio.to_thread(time.sleep, 1000)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stopping_in_order(project: Project, number: int) -> None:
    process = project.at_the_gate()
    out, err = stop(process, number)
    assert "stopping: what is done is kept" in out
    assert ("Ctrl-C again" in out) is (number == signal.SIGINT)
    assert "next       orchestra resume r1" in out
    assert err == ""
    assert project.status("r1") == "paused"
    assert [row["run"] for row in project.json("runs", "--status", "interrupted")] == ["r1"]
    project.go()
    done = project.run("resume", "r1")
    assert "phase p1 begins" not in done.stdout
    assert "✔ completed  r1" in done.stdout
    assert project.json("status", "r1")["metrics"]["recoveries"] == 0


def test_an_agent_that_cannot_be_stopped_does_not_hold_the_process(project: Project) -> None:
    project.workflow("deaf")
    process = project.start("run", "flow.yaml", "--run-id", "r1")
    project.wait_for("began", process)
    out, err = stop(process)
    assert "orchestra resume r1" in out + err
    assert project.json("runs")[0]["owned"] is False


def test_a_thread_that_goes_on_does_not_hold_the_process(project: Project) -> None:
    (project.folder / "blocked.py").write_text(BLOCKED)
    project.workflow("blocked")
    process = project.start("run", "flow.yaml", "--run-id", "r1")
    project.wait_for("began", process)
    out, _ = stop(process)
    assert "next       orchestra resume r1" in out
    assert project.status("r1") == "paused"


BLOCKING = """
import time
from pathlib import Path
async def agent(ctx):
    Path("began").touch()
    while not Path("go").exists():
        {waits}
"""


@pytest.mark.parametrize(
    ("waits", "numbers"),
    [("time.sleep(1000)", [signal.SIGINT, signal.SIGINT]), ("pass", [signal.SIGTERM])],
    ids=["asleep", "at work"],
)
def test_an_agent_that_blocks_the_loop_does_not_hold_the_process(
    project: Project, waits: str, numbers: list[int]
) -> None:
    (project.folder / "blocking.py").write_text(BLOCKING.format(waits=waits))
    project.workflow("quick", "blocking")
    process = project.start("run", "flow.yaml", "--run-id", "r1")
    project.wait_for("began", process)
    for number in numbers:
        process.send_signal(number)
    _, err = ended(process, 130)
    assert err == (
        "p2/blocking of r1 blocks the event loop; such work belongs in a plain function; "
        "resume with `orchestra resume r1`\n"
    )
    assert [row["run"] for row in project.json("runs", "--status", "interrupted")] == ["r1"]
    project.go()
    done = project.run("resume", "r1")
    assert "phase p1 begins" not in done.stdout
    assert "✔ completed  r1" in done.stdout


LEAVING = """
import asyncio
from pathlib import Path
async def agent(ctx):
    Path("began").touch()
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        Path("leaving").touch()
        while not Path("go").exists():
            await asyncio.sleep(0.01)
        raise
"""


def test_only_ctrl_c_is_heard_twice(project: Project) -> None:
    """`timeout orchestra run …` sends its signal to the process and to its group."""
    (project.folder / "leaving.py").write_text(LEAVING)
    project.workflow("leaving")
    process = project.start("run", "flow.yaml", "--run-id", "r1")
    project.wait_for("began", process)
    process.send_signal(signal.SIGTERM)
    project.wait_for("leaving", process)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGUSR1)
    project.wait_until(lambda: project.json("snapshots", "r1", "--trigger", "user_requested") != [], process)
    project.go()
    out, _ = ended(process, 130)
    assert out.count("stopping: what is done is kept") == 1
    assert project.status("r1") == "paused"


def test_the_second_time_it_ends_at_once(project: Project) -> None:
    project.workflow("deaf")
    process = project.start("run", "flow.yaml", "--run-id", "r1", "--json")
    project.wait_for("began", process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("stopping")
    stop(process, signal.SIGINT)


def test_a_snapshot_by_signal(project: Project) -> None:
    process = project.at_the_gate()
    process.send_signal(signal.SIGUSR1)
    project.wait_until(lambda: project.json("snapshots", "r1", "--trigger", "user_requested") != [], process)
    project.go()
    out, _ = ended(process, 0)
    assert "snapshot taken (user requested): SIGUSR1" in out


def test_a_killed_run_is_resumed_by_the_next_one_of_its_workflow(project: Project) -> None:
    process = project.at_the_gate()
    process.kill()
    process.communicate()
    assert "interrupted" in project.run("runs").stdout
    project.go()
    project.workflow("quick", name="other", file="other.yaml")
    assert "resuming" not in project.run("run", "other.yaml").stdout
    assert "resuming" not in project.run("run", "flow.yaml", "--no-resume").stdout
    done = project.run("run", "flow.yaml", "flow.yaml")
    assert done.stdout.count("resuming r1: it was interrupted") == 1
    assert "not resumed" not in done.stdout
    assert done.stdout.count("✔ completed  r1") == 1
    assert done.stdout.count("✔ completed  tiny_") == 2
    assert project.json("status", "r1")["metrics"]["recoveries"] == 1


def test_all_that_was_cut_off_is_resumed(project: Project) -> None:
    process = project.at_the_gate()
    process.kill()
    process.communicate()
    project.go()
    project.workflow("asks", name="other", file="other.yaml")
    project.run("run", "other.yaml", code=3)
    done = project.run("resume", "--all")
    assert "✔ completed  r1" in done.stdout
    assert "other" not in done.stdout
    assert "nothing to resume" in project.run("resume", "--all").stdout


def test_what_was_answered_meanwhile_is_resumed_with_all(project: Project) -> None:
    """Also when a snapshot was asked for since; not what somebody paused, and not by the next run."""
    project.workflow("asks", "quick")
    for run in ("answered", "noted", "asking", "paused"):
        project.run("run", "flow.yaml", "--run-id", run, code=3)
    for run in ("answered", "noted", "paused"):
        project.run("answer", run, "yes")
    project.run("snapshot", "noted", "look at this")
    project.run("pause", "paused", "--reason", "not now")
    assert "resuming" not in project.run("run", "flow.yaml", code=3).stdout
    done = project.run("resume", "--all")
    assert "✔ completed  answered" in done.stdout
    assert "✔ completed  noted" in done.stdout
    assert [project.status(run) for run in ("asking", "paused")] == ["waiting", "paused"]
    assert "nothing to resume" in project.run("resume", "--all").stdout


def test_auto_recovery_can_be_switched_off(project: Project) -> None:
    process = project.at_the_gate()
    process.kill()
    process.communicate()
    project.go()
    done = project.run("run", "flow.yaml", ORCHESTRA_RECOVERY_AUTO="false")
    assert "resuming" not in done.stdout


def test_a_run_that_waits_is_stopped_and_still_waits(project: Project) -> None:
    project.workflow("asks")
    process = project.start("run", "flow.yaml", "--run-id", "r1", "--wait")
    assert process.stdout is not None
    while "asks: Publish?" not in process.stdout.readline():
        assert process.poll() is None
    stop(process)
    assert project.status("r1") == "waiting"
    assert "✔ completed  r1" in project.run("answer", "r1", "yes", "--resume").stdout


def test_a_run_goes_on_in_the_folder_it_was_started_in(project: Project, tmp_path: Path) -> None:
    process = project.at_the_gate()
    process.kill()
    process.communicate()
    project.go()
    (tmp_path / "away").mkdir()
    store = f"sqlite:{tmp_path}/outputs/orchestra.db"
    elsewhere = Project(tmp_path / "away")
    elsewhere.go()
    assert "✔ completed  r1" in elsewhere.run("resume", "r1", "--store", store).stdout
    assert (tmp_path / "outputs/r1/p3/note.md").exists()
