"""A run whose newest snapshot is damaged, on the command line. CHECKLIST 001.41."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.cli.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


def _damage_head(project: Project, run: str) -> int:
    """Flip a bit of the newest snapshot of the only run; which number it has."""
    head = int(project.json("snapshots", run)[-1]["seq"])
    _damage(project, head)
    assert "is damaged" in project.run("show", f"{run}@{head}", "tasks", code=4).stderr
    return head


def _damage(project: Project, *seqs: int) -> None:
    """Flip a bit of snapshots of the only run."""
    with closing(sqlite3.connect(project.folder / "outputs" / "orchestra.db")) as base, base:
        for seq in seqs:
            (held,) = base.execute("select header from rows where seq = ?", (seq,)).fetchone()
            base.execute("update rows set header = ? where seq = ?", (bytes([held[0] ^ 1]) + held[1:], seq))


def test_it_is_resumed_from_the_newest_whole_one(project: Project) -> None:
    project.workflow("quick", "breaks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=1)
    head = _damage_head(project, "r1")
    (project.folder / "repaired").touch()
    refused = project.run("resume", "r1", code=4, ORCHESTRA_RECOVERY_FALLBACK_TO_PREVIOUS="false")
    assert f"snapshot r1@{head} is damaged" in refused.stderr
    done = project.run("resume", "r1").stdout
    assert "✔ completed  r1" in done
    assert f"rolled back from @{head} to @{head - 1}: snapshot {head} is damaged" in done
    assert "quick begins" not in done, "what is whole is not done again"


def test_it_is_resumed_by_the_next_run_of_its_workflow(project: Project) -> None:
    process = project.at_the_gate()
    process.kill()
    process.communicate()
    head = _damage_head(project, "r1")
    project.go()
    done = project.run("run", "flow.yaml", "--run-id", "r2").stdout
    assert f"rolled back from @{head} to @{head - 1}" in done
    assert [project.status(run) for run in ("r1", "r2")] == ["completed", "completed"]


def test_a_run_that_is_damaged_all_over_stands_in_nobodys_way(project: Project) -> None:
    process = project.at_the_gate()
    process.kill()
    process.communicate()
    _damage(project, *[each["seq"] for each in project.json("snapshots", "r1")])
    project.go()
    done = project.run("run", "flow.yaml", "--run-id", "r2").stdout
    assert "not resuming r1: run r1 is damaged" in done
    assert "✔ completed  r2" in done
    tried = project.run("resume", "--all", code=4).stdout
    assert "not resuming r1: run r1 is damaged" in tried


def test_damage_is_told_also_when_another_run_fails(project: Project) -> None:
    project.workflow("gate", "breaks")
    for run in ("r1", "r2"):
        process = project.start("run", "flow.yaml", "--run-id", run, "--no-resume")
        project.wait_for("began", process)
        process.kill()
        process.communicate()
        (project.folder / "began").unlink()
        if run == "r1":
            _damage(project, *[each["seq"] for each in project.json("snapshots", "r1")])
    project.go()
    tried = project.run("resume", "--all", code=4).stdout
    assert "not resuming r1: run r1 is damaged" in tried
    assert "failed  r2" in tried
