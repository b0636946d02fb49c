"""`orchestra runs`."""

from pathlib import Path

import pytest

from orchestra.cli.render.run_list import list_options
from orchestra.ports.store import RunQuery
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, FORK, HEAD, REVIEW


def test_runs_are_listed_newest_first(cli: Cli) -> None:
    outcome = cli("runs")
    assert outcome.code == 0
    assert [line.split()[2] for line in outcome.lines[1:]] == [AUDIT, FORK, REVIEW]
    assert "✖ failed" in outcome.lines[1]
    assert "◍ interrupted" in outcome.lines[2]
    assert "⑂" in outcome.lines[2]
    assert outcome.lines[2].endswith(REVIEW)
    assert "✔ completed" in outcome.lines[3]


def test_runs_as_json(cli: Cli) -> None:
    audit, fork, review = cli("runs", "--json").json
    assert review == {
        "run": REVIEW,
        "workflow": "review",
        "status": "completed",
        "phase": "write",
        "snapshots": HEAD + 1,
        "head": review["head"],
        "family": REVIEW,
        "owned": False,
        "owner": "test",
        "created_at": "2026-11-15T12:00:00.000000Z",
        "updated_at": review["updated_at"],
        "note": None,
    }
    assert len(bytes.fromhex(review["head"])) == 32
    assert fork["family"] == REVIEW
    assert audit["status"] == "failed"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--status", "failed"), [AUDIT]),
        (("--status", "failed", "--status", "completed"), [AUDIT, REVIEW]),
        (("--status", "failed,completed"), [AUDIT, REVIEW]),
        (("--workflow", "review"), [FORK, REVIEW]),
        (("--family", REVIEW), [FORK, REVIEW]),
        (("--contains", "_zz"), [AUDIT]),
        (("--limit", "1"), [AUDIT]),
        (("--limit", "1", "--offset", "1"), [FORK]),
        (("--limit", "0"), [AUDIT, FORK, REVIEW]),
        (("--contains", "nothing like it"), []),
    ],
)
def test_filters_and_pages(cli: Cli, options: tuple[str, ...], found: list[str]) -> None:
    assert [row["run"] for row in cli("runs", "--json", *options).json] == found


def test_nothing_found_is_said(cli: Cli) -> None:
    assert cli("runs", "--contains", "nothing").out == "No such runs.\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--limit", "-1"), "--limit cannot be -1"),
        (("--offset", "-1"), "--offset cannot be -1"),
        (("--status", "tired"), "a status is one of pending, running"),
    ],
)
def test_bad_options(cli: Cli, options: tuple[str, ...], said: str) -> None:
    outcome = cli("runs", *options)
    assert outcome.code == 2
    assert said in outcome.err


def test_without_any_store_there_are_no_runs_yet(bare: Cli) -> None:
    outcome = bare("runs")
    assert outcome.code == 0
    assert outcome.out.startswith("No runs yet")
    assert "orchestra run FILE" in outcome.out
    assert bare("runs", "--json").json == []
    assert list(Path().iterdir()) == []


def test_a_store_that_was_named_must_be_there(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for outcome in (
        bare("runs", "--store", "sqlite:gone.db"),
        bare("runs", "--store", "sqlite:outputs/orchestra.db"),
    ):
        assert outcome.code == 2
        assert "There is no store at" in outcome.err
    monkeypatch.setenv("ORCHESTRA_STORE", "sqlite:gone.db")
    assert bare("runs").code == 2
    assert list(Path().iterdir()) == []


def test_an_empty_store_says_so(bare: Cli) -> None:
    assert bare("runs", "--store", "memory:").out == "No runs in memory:.\n"


def test_columns_that_do_not_fit_are_left_out(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    lines = cli("runs").lines
    assert all(len(line) <= 72 for line in lines)
    assert all(run in "\n".join(lines) for run in (AUDIT, FORK, REVIEW))
    assert "fork of" not in lines[0]


def test_the_hint_to_older_ones_asks_for_the_same_runs() -> None:
    query = RunQuery(status=("failed", "paused"), workflow="two words", contains="review")
    wanted = " --status failed --status paused --workflow 'two words' --contains review"
    assert list_options(query) == wanted
    assert list_options(RunQuery()) == ""
