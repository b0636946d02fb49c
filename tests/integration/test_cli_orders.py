"""Orders from one process to a run that another plays, and to runs that nobody plays."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.project import Project, ended


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


def test_pause_and_resume_elsewhere(project: Project) -> None:
    process = project.at_the_gate("--wait")
    assert "was told to pause" in project.run("pause", "r1").stdout
    assert project.status("r1") == "paused"
    project.go()
    project.wait_until(
        lambda: project.json("status", "r1")["agents"]["gate"]["status"] == "completed", process
    )
    assert "goes on, played by process" in project.run("resume", "r1").stdout
    out, _ = ended(process, 0)
    assert "✔ completed  r1" in out


def test_a_paused_run_ends_its_process_unless_it_waits(project: Project) -> None:
    process = project.at_the_gate()
    project.run("pause", "r1", "--reason", "lunch")
    project.go()
    out, _ = ended(process, 3)
    assert "paused: lunch" in out
    assert "phase p3 begins" not in out
    assert "✔ completed  r1" in project.run("resume", "r1").stdout


def test_cancel(project: Project) -> None:
    process = project.at_the_gate()
    assert "--yes" in project.run("cancel", "r1", code=2).stderr
    project.run("cancel", "r1", "--yes", "--reason", "no longer wanted")
    out, _ = ended(process, 1)
    assert "cancelled: no longer wanted" in out
    assert "cannot go on" in project.run("resume", "r1", code=2).stderr
    assert "is cancelled and cannot go on" in project.run("pause", "r1", code=2).stderr


def test_a_snapshot_with_a_note(project: Project) -> None:
    process = project.at_the_gate()
    project.run("snapshot", "r1", "before the storm")
    found = project.json("snapshots", "r1", "--trigger", "user_requested")
    assert "before the storm" in found[0]["events"][0]["what"]
    project.go()
    ended(process, 0)


def test_a_run_that_is_played_is_not_resumed_twice(project: Project) -> None:
    process = project.at_the_gate()
    assert "is owned by process" in project.run("resume", "r1", code=1).stderr
    project.go()
    ended(process, 0)


def test_rollback_says_what_it_means_and_then_does_it(project: Project) -> None:
    project.workflow("quick", "asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    told = project.run("rollback", "r1@phase:p1", code=2)
    assert "r1 goes back from @" in told.stdout
    assert "undone     p1/quick" in told.stdout
    assert "paid again nothing that was metered" in told.stdout
    assert "Repeat it with --yes" in told.stderr
    plan = json.loads(project.run("rollback", "r1@phase:p1", "--json", code=2).stdout)
    assert plan["undone"] == ["p1/quick"]
    assert project.status("r1") == "waiting"
    done = project.run("rollback", "r1@phase:p1", "--yes", "--resume", "--reason", "try again", code=3)
    assert "quick begins" in done.stdout
    story = project.run("log", "r1").stdout
    assert "rolled back from @" in story
    assert ": try again" in story
    assert "┊" in story


def test_rollback_of_a_run_that_another_process_plays(project: Project) -> None:
    process = project.at_the_gate()
    project.run("rollback", "r1@phase:p1", "--yes")
    project.go()
    out, _ = ended(process, 0)
    assert "rolled back from @" in out
    assert out.count("phase p2 begins") == 2
    story = project.run("log", "r1").stdout
    assert "a person decided: Roll back to snapshot 0, because it was asked for\n" in story


def test_what_is_over_is_not_rolled_back(project: Project) -> None:
    project.workflow("quick")
    project.run("run", "flow.yaml", "--run-id", "r1")
    assert "`orchestra fork r1@0` begins it again" in project.run("rollback", "r1@0", "--yes", code=2).stderr


def test_fork_with_another_value(project: Project) -> None:
    project.workflow("quick", "quick")
    project.run("run", "flow.yaml", "--run-id", "r1", "--input", "topic=cats")
    done = project.run("fork", "r1@phase:p2", "--set", "inputs.topic=dogs", "--id", "r2", "--run")
    assert "✔ completed  r2" in done.stdout
    assert "kept       p1: done with the inputs of before; fork r1@0 to have all done again" in done.stdout
    again = project.run("fork", "r1@0", "--set", "inputs.topic=birds", "--id", "r4")
    assert "kept" not in again.stdout
    assert (project.folder / "outputs/r2/p2/note.md").read_text() == "# dogs"
    waiting = project.run("fork", "r1@phase:p2", "--id", "r3")
    assert "orchestra resume r3" in waiting.stdout
    assert "✔ completed  r3" in project.run("resume", "r3").stdout
    assert "cannot be set" in project.run("fork", "r1@1", "--set", "inputs.nothing=1", code=2).stderr
    assert "write PATH=VALUE" in project.run("fork", "r1@1", "--set", "nothing", code=2).stderr


def test_replay_by_uuid(project: Project) -> None:
    """CHECKLIST 001.50: it begins at the snapshot that was named, and what came before is not done again."""
    project.workflow("quick", "quick")
    project.run("run", "flow.yaml", "--run-id", "r1")
    named = project.json("show", "r1@phase:p2")["snapshot"]
    done = project.run("replay", f"--checkpoint={named['uuid']}").stdout
    assert "✔ completed  tiny_" in done
    assert (done.count("quick begins"), "phase p1 is done" in done, "phase p2 is done" in done) == (
        1,
        False,
        True,
    )
    new = project.only_run()
    assert project.json("show", f"{new}@0")["snapshot"]["parent"] == named["digest"]
    assert (project.folder / "outputs" / new / "p2").is_dir()
    assert not (project.folder / "outputs" / new / "p1").exists(), "its agent was not called again"
    again = project.run("replay", "r1@phase:p2", "--id", "r2").stdout
    assert "✔ completed  r2" in again
    notes = [line for line in again.splitlines() if "outputs/r2" in line]
    assert ["in the store only" in line for line in notes if "/p1/" in line] == [True]
    assert not [line for line in notes if "/p2/" in line and "in the store only" in line]
    quiet = project.run("replay", "r1@phase:p2", "--id", "r3", "--quiet").stdout.split()
    assert quiet == ["completed", "r3", "outputs/r3/p2/note.md"]


def test_retry(project: Project) -> None:
    project.workflow("breaks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=1)
    assert "has no assignment 'nobody'" in project.run("retry", "r1", "nobody", code=2).stderr
    (project.folder / "repaired").touch()
    assert "✔ completed  r1" in project.run("retry", "r1", "breaks", "--resume").stdout


def test_outputs_come_back_from_the_store(project: Project) -> None:
    project.workflow("quick")
    project.run("run", "flow.yaml", "--run-id", "r1", "--input", "topic=cats")
    assert project.json("outputs", "r1")[0]["is_there"] is True
    (project.folder / "outputs/r1/p1/note.md").unlink()
    assert "in the store only" in project.run("outputs", "r1").stdout
    done = project.run("outputs", "r1", "--extract", "saved/here")
    assert "1 file of r1 written." in done.stdout
    assert (project.folder / "saved/here/p1/note.md").read_text() == "# cats"


def test_watching_from_another_process(project: Project) -> None:
    process = project.at_the_gate()
    watcher = project.start("watch", "r1", "--all")
    assert watcher.stdout is not None
    while "gate is at half of it" not in (line := watcher.stdout.readline()):
        assert line
    project.go()
    ended(process, 0)
    out, _ = ended(watcher, 0)
    assert "phase p3 is done" in out
    assert "quick decided: Write it down, because notes last longer than memory\n" in out
    assert "completed" in out.splitlines()[-1]


def test_what_is_watched_as_json(project: Project) -> None:
    project.workflow("quick", "asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    done = project.run("watch", "r1", "--all", "--json", code=3)
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert kinds[0] == "run_started"
    assert kinds[-2:] == ["run_waiting", "spent"]
