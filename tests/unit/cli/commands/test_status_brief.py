"""`orchestra status --brief`: a run in a line, told from its newest header."""

from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, HEAD, REVIEW


def test_a_run_in_a_line(cli: Cli) -> None:
    (line,) = cli("status", REVIEW, "--brief").lines
    assert line.startswith(f"{REVIEW}  ✔ completed  write  ")
    assert "atlas decided: write it" in line


def test_it_agrees_with_the_state(cli: Cli) -> None:
    whole, brief = cli("status", REVIEW, "--json").json, cli("status", REVIEW, "--brief", "--json").json
    assert (brief["status"], brief["phase"], brief["seq"]) == (whole["status"], whole["phase"], HEAD)
    assert brief["last_decision"] == whole["last_decisions"][-1]
    assert brief["tasks"] == len(cli("show", REVIEW, "tasks", "--json").json)


def test_a_run_without_decisions(cli: Cli) -> None:
    assert cli("status", AUDIT, "--brief", "--json").json["last_decision"] is None
