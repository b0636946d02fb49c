"""`orchestra snapshots`."""

from pathlib import Path

import pytest
import time_machine

from orchestra.cli.render.screen import PAGE
from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project
from tests.unit.cli.recording import AUDIT, FORK, HEAD, REVIEW


def _seqs(cli: Cli, *options: str) -> list[int]:
    return [row["seq"] for row in cli("snapshots", REVIEW, "--json", *options).json]


def test_the_list(cli: Cli) -> None:
    outcome = cli("snapshots", REVIEW)
    assert outcome.code == 0
    assert outcome.lines[0] == f"{REVIEW}  ✔ completed  {HEAD + 1} snapshots"
    assert len(outcome.lines) == 3 + HEAD + 1
    assert "started: review" in outcome.lines[3]
    assert "·" in outcome.lines[5]
    assert "finished: structure" in outcome.lines[6]
    assert "structure-agent" in outcome.lines[6]
    assert outcome.lines[3].split()[1] == "●"
    assert "ended: completed: all done" in outcome.lines[-1]


def test_a_snapshot_as_json(cli: Cli) -> None:
    listed = cli("snapshots", REVIEW, "--json").json
    found = listed[3]
    assert found == {
        "reference": f"{REVIEW}@3",
        "run": REVIEW,
        "seq": 3,
        "digest": found["digest"],
        "uuid": found["uuid"],
        "parent": listed[2]["digest"],
        "at": "2026-11-15T12:00:03.000000Z",
        "status": "running",
        "phase": "find",
        "triggers": ["specialist_finished"],
        "marked": True,
        "agents": ["structure-agent"],
        "confidence": 0.8,
        "generation": 0,
        "events": found["events"],
        "size": found["size"],
        "pruned": False,
        "pinned": False,
        "note": None,
        "damage": None,
    }
    assert found["events"][0] == {
        "kind": "task_completed",
        "who": "structure-agent",
        "what": "structure",
        "figures": {"confidence": 0.8},
    }
    assert listed[0]["parent"] is None


@pytest.mark.parametrize(
    ("options", "seqs"),
    [
        (("--trigger", "decision"), [4, 9]),
        (("--trigger", "workflow_adjustment"), [4, 9]),
        (("--trigger", "phase-start", "--trigger", "completed"), [1, 8, 10]),
        (("--trigger", "phase_start,completed"), [1, 8, 10]),
        (("--phase", "write"), [8, 9, 10]),
        (("--agent", "large-agent"), [5, 6]),
        (("--status", "completed"), [10]),
        (("--since", "2026-11-15T12:00:08Z"), [8, 9, 10]),
        (("--until", "2026-11-15T12:00:01Z"), [0, 1]),
        (("--marked",), [0, 1, 3, 4, 6, 7, 8, 9, 10]),
        (("--all",), list(range(11))),
        (("--limit", "3"), [8, 9, 10]),
        (("--limit", "3", "--before", "8"), [5, 6, 7]),
        (("--after", "7"), [8, 9, 10]),
        (("--limit", "0"), list(range(11))),
        (("--newest-first", "--limit", "2"), [10, 9]),
        (("--trigger", "failed"), []),
    ],
)
def test_filters_and_pages(cli: Cli, options: tuple[str, ...], seqs: list[int]) -> None:
    assert _seqs(cli, *options) == seqs


@time_machine.travel("2026-11-15T12:01:08+00:00", tick=False)
def test_times_may_be_relative(cli: Cli) -> None:
    assert _seqs(cli, "--since", "1m") == [8, 9, 10]
    assert _seqs(cli, "--until", "67s") == [0, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--trigger", "boredom"), "triggers are run_started, phase_start"),
        (("--status", "tired"), "a status is one of"),
        (("--since", "lately"), "--since cannot be 'lately'"),
        (("--limit", "-5"), "--limit cannot be -5"),
    ],
)
def test_bad_options(cli: Cli, options: tuple[str, ...], said: str) -> None:
    outcome = cli("snapshots", REVIEW, *options)
    assert outcome.code == 2
    assert said in outcome.err


def test_a_page_says_how_much_there_is(cli: Cli) -> None:
    assert "3 of 11 snapshots" in cli("snapshots", REVIEW, "--limit", "3").lines[0]
    assert "2 of 11 snapshots (filtered)" in cli("snapshots", REVIEW, "--trigger", "decision").lines[0]
    assert cli("snapshots", REVIEW, "--trigger", "failed").lines[0].endswith("0 of 11 snapshots (filtered)")


def test_a_run_may_be_named_by_its_beginning(cli: Cli) -> None:
    assert AUDIT in cli("snapshots", "audit").lines[0]
    assert FORK in cli("snapshots", "review_20261115_13").lines[0]


def test_pins_and_notes_are_signs(own: Cli) -> None:
    own("pin", f"{REVIEW}@4")
    own("note", f"{REVIEW}@5", "odd")
    lines = own("snapshots", REVIEW).lines
    assert " ◆ " in lines[7]
    assert "✎" in lines[8]
    listed = own("snapshots", REVIEW, "--json").json
    assert [row["seq"] for row in listed if row["pinned"]] == [4]
    assert listed[5]["note"] == "odd"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_list_fits_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = cli("snapshots", REVIEW).lines
    assert all(len(line) <= columns for line in lines)
    assert "12:00:03" in lines[6]


def test_json_that_is_one_page_of_many_says_so_beside_it(bare: Cli) -> None:
    Project(Path()).workflow(*["quick"] * 30)
    assert bare("run", "flow.yaml", "--run-id", "r1", "--quiet").code == 0
    page = bare("snapshots", "r1", "--json")
    assert len(page.json) == PAGE
    assert page.err == "these are the newest 50; --limit 0 gives all\n"
    whole = bare("snapshots", "r1", "--json", "--limit", "0")
    assert (whole.json[-PAGE:], whole.err) == (page.json, "")
    assert bare("snapshots", "r1", "--json", "--limit", "3").err == ""
