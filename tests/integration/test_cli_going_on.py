"""What is said when a run goes on: why it stood, what was recorded first, and what is still needed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.project import Project, ended


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


def _waiting(project: Project) -> None:
    project.workflow("quick", "asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)


def _with_a_secret(project: Project) -> None:
    """A run that waits with a question, and needs a secret input to go on."""
    flow = project.workflow("asks")
    flow.write_text(flow.read_text().replace("inputs:\n", "inputs:\n  token: {type: text, secret: true}\n"))
    project.run("run", "flow.yaml", "--run-id", "r1", "--input", "token=x", code=3)


def test_an_answered_run_says_so_when_it_goes_on(project: Project) -> None:
    _waiting(project)
    out = project.run("answer", "r1", "yes", "--resume").stdout
    assert out.startswith("r1  answered 'Publish?' with 'yes'\n")
    assert "resumed: what it waited for is there\n" in out


def test_a_fork_that_never_ran_says_where_it_begins(project: Project) -> None:
    _waiting(project)
    out = project.run("fork", "r1@0", "--id", "r2", "--run", code=3).stdout
    assert "resumed: forked from r1@0, not started until now\n" in out
    again = project.run("resume", "r2", code=3).stdout
    assert "resumed: it was waiting\n" in again


def test_a_run_that_was_rolled_back_or_paused_says_so(project: Project) -> None:
    _waiting(project)
    back = project.run("rollback", "r1@phase:p1", "--yes", "--resume", code=3).stdout
    assert back.index("r1 is back at @0.") < back.index("resumed: rolled back\n")
    project.run("pause", "r1", "--reason", "lunch")
    assert "resumed: it was paused: lunch\n" in project.run("resume", "r1", code=3).stdout
    project.run("pause", "r1")
    assert "resumed: it was paused\n" in project.run("resume", "r1", code=3).stdout


def test_a_paused_run_is_not_told_to_pause(project: Project) -> None:
    _waiting(project)
    assert "r1  was told to pause" in project.run("pause", "r1").stdout
    assert "r1  was paused already, and stays so  ‖ paused" in project.run("pause", "r1").stdout


def test_an_answer_is_recorded_also_where_a_secret_is_missing_to_go_on(project: Project) -> None:
    _with_a_secret(project)
    done = project.run("answer", "r1", "yes", "--resume", code=2)
    assert done.stdout == "r1  answered 'Publish?' with 'yes'\n"
    assert "ORCHESTRA_INPUT_TOKEN is not set. Set that, or go on with" in done.stderr
    assert "`orchestra resume r1 --input token=VALUE`" in done.stderr
    assert "✔ completed  r1" in project.run("resume", "r1", "--input", "token=x").stdout


def test_a_fork_that_needs_a_secret_names_itself(project: Project) -> None:
    _with_a_secret(project)
    refused = project.run("fork", "r1@0", "--id", "r2", "--run", code=2).stderr
    assert "`orchestra resume r2 --input token=VALUE`" in refused


def test_after_an_answer_to_a_run_that_is_played_nothing_is_left_to_type(project: Project) -> None:
    project.workflow("asks")
    process = project.start("run", "flow.yaml", "--run-id", "r1", "--wait")
    project.wait_until(lambda: (project.folder / "outputs/orchestra.db").exists(), process)
    project.wait_until(lambda: project.json("questions") != [], process)
    assert "orchestra resume" not in project.run("answer", "r1", "no").stdout
    ended(process, 0)


def test_after_an_answer_to_a_run_that_nobody_plays_it_is_to_be_resumed(project: Project) -> None:
    _waiting(project)
    assert "next       orchestra resume r1" in project.run("answer", "r1", "no").stdout
