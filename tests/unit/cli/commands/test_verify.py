"""`orchestra verify`."""

import sqlite3
from pathlib import Path

import pytest

from orchestra.cli.store import store_url
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, FORK, REVIEW


def test_a_whole_store(cli: Cli) -> None:
    outcome = cli("verify")
    assert outcome.code == 0
    assert all(f"✔ {run}" in outcome.out for run in (REVIEW, FORK, AUDIT))
    assert outcome.lines[-1].startswith("✔ Everything is whole: 3 runs, 17 snapshots")


def test_one_run(cli: Cli) -> None:
    outcome = cli("verify", "audit")
    assert outcome.lines[0] == f"✔ {AUDIT}  4 snapshots"
    assert cli("verify", "nobody").code == 2


def test_as_json(cli: Cli) -> None:
    found = cli("verify", "--json").json
    assert set(found) == {"place", "whole", "snapshots", "objects", "orphans", "runs", "findings"}
    assert (found["whole"], found["snapshots"], found["findings"]) == (True, 17, [])
    by_run = {run["run"]: run for run in found["runs"]}
    assert by_run[REVIEW] == {
        "run": REVIEW,
        "whole": True,
        "snapshots": 11,
        "pruned": 0,
        "head": 10,
        "newest_whole": 10,
        "unreadable": [],
    }


def _flip(own: Cli, column: str, seq: int) -> None:
    """Flip a bit of a snapshot's header or patch."""
    digest = bytes.fromhex(own("show", f"{REVIEW}@{seq}", "--json").json["snapshot"]["digest"])
    connection = sqlite3.connect(store_url(None).removeprefix("sqlite:"))
    with connection:
        (held,) = connection.execute(f"select {column} from rows where digest = ?", (digest,)).fetchone()
        flipped = bytes([held[0] ^ 1]) + held[1:]
        connection.execute(f"update rows set {column} = ? where digest = ?", (flipped, digest))
    connection.close()


@pytest.fixture
def damaged(own: Cli) -> Cli:
    """The patch of the review's snapshot 9 has a flipped bit."""
    _flip(own, "patch", 9)
    return own


def test_damage_is_named_with_what_is_still_whole(damaged: Cli) -> None:
    outcome = damaged("verify")
    assert outcome.code == 4
    assert f"✖ {REVIEW}  11 snapshots  newest whole snapshot @8" in outcome.out
    assert f"{REVIEW}@9" in outcome.out
    assert f"Next: `orchestra show {REVIEW}@8`" in outcome.lines[-1]
    found = damaged("verify", "--json")
    assert found.code == 4
    assert found.json["whole"] is False
    run = next(run for run in found.json["runs"] if run["run"] == REVIEW)
    assert run["newest_whole"] == 8
    assert run["unreadable"] == [{"run": REVIEW, "first": 9, "last": 10}]


def test_commands_that_meet_damage_exit_with_4(damaged: Cli) -> None:
    for command in (("show", REVIEW), ("diff", f"{REVIEW}@9"), ("show", f"{REVIEW}@9", "status")):
        outcome = damaged(*command)
        assert outcome.code == 4
        assert "is damaged" in outcome.err
    assert damaged("show", f"{REVIEW}@8", "status").code == 0
    assert damaged("verify", AUDIT).code == 0


def test_store_check_finds_it_too(damaged: Cli) -> None:
    outcome = damaged("store", "check")
    assert outcome.code == 4
    assert "Next: `orchestra verify`" in outcome.out
    assert damaged("store", "check", "--json").json["whole"] is False


def test_a_store_that_cannot_be_opened_is_what_was_found(own: Cli) -> None:
    own("runs")
    with Path(store_url(None).removeprefix("sqlite:")).open("r+b") as file:
        file.seek(100)  # where the schema begins
        file.write(b"\x07" * 64)
    outcome = own("verify")
    assert (outcome.code, outcome.err) == (4, "")
    assert "it cannot be opened: CorruptError" in outcome.lines[1]
    assert outcome.lines[-1].endswith("or `orchestra import` exported runs into a new store.")
    assert own("verify", "--json").json["whole"] is False


def test_garbage_is_left_alone_while_something_is_damaged(damaged: Cli) -> None:
    outcome = damaged("prune")
    assert outcome.code == 4
    assert "No garbage was removed" in outcome.out
    assert damaged("prune", "--json").json["garbage"]["problems"]


def test_a_list_shows_what_is_damaged_among_the_rest(damaged: Cli) -> None:
    outcome = damaged("snapshots", REVIEW)
    assert outcome.code == 4
    assert outcome.lines[3 + 9].split()[1] == "✖"
    assert "decided" not in outcome.lines[3 + 9]
    assert outcome.lines[-1].startswith(f"damaged: snapshot {REVIEW}@9 is damaged")
    listed = damaged("snapshots", REVIEW, "--json").json
    assert [row["seq"] for row in listed if row["damage"]] == [9]
    assert damaged("snapshots", REVIEW, "--before", "9").code == 0
