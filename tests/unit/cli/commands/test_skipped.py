"""A run that went on without somebody says so everywhere, and where that one failed."""

from pathlib import Path

import pytest

from orchestra.cli.store import archive
from orchestra.ports.store import RunQuery
from orchestra.web.views.runs import Runs
from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project

SKIPPED = "completed, 1 skipped: breaks"
WHERE = "breaks.py:6 in agent: raise RuntimeError("


@pytest.fixture
def played(bare: Cli) -> Cli:
    """A run that went on without one of its two specialists."""
    path = Project(Path()).workflow("breaks", "quick")
    path.write_text(path.read_text().replace("[fail]", "[degrade]"))
    outcome = bare("run", "flow.yaml", "--run-id", "r1")
    assert outcome.code == 0
    Path("printed.txt").write_text(outcome.out)
    return bare


def test_its_lines_and_its_summary_say_who_and_where(played: Cli) -> None:
    printed = Path("printed.txt").read_text()
    assert f"✔ {SKIPPED}  r1" in printed
    assert "completed: 1 skipped: breaks\n" in printed
    assert "skipped    p1/breaks: RuntimeError: it is broken" in printed
    assert printed.count(WHERE) == 2  # below the line that tells the failure, and in the summary
    assert "orchestra/agents" not in printed
    assert "frames of orchestra" in printed


@pytest.mark.parametrize("command", ["runs", "status r1", "status r1 --brief", "log r1", "watch r1"])
def test_what_reads_it_later_says_it_too(played: Cli, command: str) -> None:
    assert "1 skipped: breaks" in played(*command.split()).out


@pytest.mark.parametrize("command", ["status r1", "log r1", "watch r1"])
def test_where_it_failed_stands_with_the_failure(played: Cli, command: str) -> None:
    said = played(*command.split()).out
    assert WHERE in said
    assert "frames of orchestra" in said


def test_json_names_it(played: Cli) -> None:
    (run,) = played("runs", "--json").json
    assert run["note"] == "1 skipped: breaks"
    (skipped,) = played("status", "r1", "--json").json["skipped"]
    assert (skipped["task"], skipped["error"]) == ("p1/breaks", "RuntimeError")
    assert "breaks.py" in skipped["stack"]
    assert any("breaks.py" in (line["stack"] or "") for line in played("log", "r1", "--json").json)


def test_a_quiet_run_says_it_beside_its_one_line(bare: Cli) -> None:
    path = Project(Path()).workflow("breaks", "quick")
    path.write_text(path.read_text().replace("[fail]", "[degrade]"))
    outcome = bare("run", "flow.yaml", "--run-id", "r1", "--quiet")
    assert outcome.lines[0] == "completed r1"
    assert "r1: 1 skipped: breaks" in outcome.err


def test_an_assignment_whose_condition_does_not_hold_is_not_missed(bare: Cli) -> None:
    path = Project(Path()).workflow("breaks", "quick")
    path.write_text(path.read_text().replace("'Do breaks'", "'Do breaks', when: 'false'"))
    said = bare("run", "flow.yaml", "--run-id", "r1").out
    assert "✔ completed  r1" in said


def test_decisions_are_counted_as_the_log_lists_them(bare: Cli) -> None:
    """A rollback undoes a decision, which `log` still lists; a fork lists its own only."""
    Project(Path()).workflow("quick", "breaks")
    assert bare("run", "flow.yaml", "--run-id", "r1").code == 1
    assert bare("rollback", "r1@0", "--yes").code == 0
    listed = bare("log", "r1", "--decisions", "--json").json
    whole, brief = bare("status", "r1", "--json").json, bare("status", "r1", "--brief", "--json").json
    assert whole["decisions"] == brief["decisions"] == len(listed) > 1
    assert (
        whole["undone_decisions"] == brief["undone_decisions"] == sum(each["undone"] for each in listed) > 0
    )
    Path("repaired").touch()
    said = bare("resume", "r1").out
    now = bare("log", "r1", "--decisions", "--json").json
    assert f"decisions  {len(now)} (2 undone), the last: " in said
    assert bare("fork", "r1@-2", "--id", "r2").code == 0
    assert bare("status", "r2", "--json").json["decisions"] == len(
        bare("log", "r2", "--decisions", "--json").json
    )


def test_the_page_is_told_of_it(played: Cli) -> None:
    with archive(None) as opened:
        (run,) = Runs(opened).list_runs(RunQuery(limit=10))["runs"]
    assert run["note"] == "1 skipped: breaks"


def test_a_run_that_asks_what_now_says_where_it_failed(bare: Cli) -> None:
    path = Project(Path()).workflow("breaks")
    path.write_text(path.read_text().replace("[fail]", "[ask]"))
    assert bare("run", "flow.yaml", "--run-id", "r1").code == 3
    said = bare("status", "r1").out
    assert "failing    p1/breaks: RuntimeError: it is broken" in said
    assert WHERE in said
