"""`orchestra status`: the agents of a run."""

from pathlib import Path

from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project


def test_an_agent_that_was_left_out_is_called_as_its_task_is(bare: Cli) -> None:
    flow = Project(Path()).workflow("breaks", "quick")
    flow.write_text(flow.read_text().replace("on_failure: [fail]", "on_failure: [degrade]"))
    told = bare("run", "flow.yaml", "--run-id", "r1")
    assert "breaks is skipped\n" in told.out
    (line,) = [line for line in bare("status", "r1").lines if line.startswith("breaks ")]
    assert line.split() == ["breaks", "skipped"]
    assert bare("status", "r1", "--json").json["agents"]["breaks"]["status"] == "skipped"
    shown = [bare("show", f"r1@{seq}").out for seq in range(5)]
    assert any("skipped: p1/breaks" in each for each in shown)


def test_show_and_status_agree_on_what_failed(bare: Cli) -> None:
    Project(Path()).workflow("breaks", "quick")
    assert bare("run", "flow.yaml", "--run-id", "r1").code == 1
    assert bare("status", "r1", "--json").json["agents"]["breaks"]["status"] == "failed"
    assert bare("show", "r1", "tasks.p1/breaks.status").out.strip() == "failed"
