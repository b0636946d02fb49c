"""`orchestra blame` and `orchestra bisect`."""

import pytest

from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import FORK, REVIEW


def test_who_set_a_value(cli: Cli) -> None:
    outcome = cli("blame", REVIEW, "tasks.structure.status")
    assert outcome.code == 0
    assert outcome.lines[0] == "tasks.structure.status"
    assert outcome.lines[1] == f"was set by structure-agent in {REVIEW}@3"
    assert "finished: structure" in outcome.out
    assert outcome.lines[-2:] == ["before  running", "after   completed"]


def test_a_value_that_was_not_there_before(cli: Cli) -> None:
    lines = cli("blame", REVIEW, "decisions[0].description").lines
    assert lines[1] == f"was set by atlas in {REVIEW}@4"
    assert lines[-2] == "before  nothing"
    assert "\\x1b[31mred" in lines[-1]


def test_through_a_fork(cli: Cli) -> None:
    assert f"{REVIEW}@3" in cli("blame", FORK, "tasks.structure.status").lines[1]


def test_blame_as_json(cli: Cli) -> None:
    found = cli("blame", REVIEW, "completed_tasks", "--json").json
    assert set(found) == {"path", "who", "event", "snapshot", "exact", "was_there", "before", "after"}
    assert found["snapshot"]["seq"] == 6
    assert (found["before"], found["after"], found["was_there"], found["exact"]) == (1, 2, True, True)


@pytest.mark.parametrize("path", ["nope", "tasks.nope.status", "decisions["])
def test_blame_for_nothing(cli: Cli, path: str) -> None:
    outcome = cli("blame", REVIEW, path)
    assert outcome.code == 2
    assert "has nothing at" in outcome.err


@pytest.mark.parametrize("options", [(), ("--fast",)])
def test_the_first_snapshot_where_something_holds(cli: Cli, options: tuple[str, ...]) -> None:
    outcome = cli("bisect", REVIEW, "completed_tasks >= 2", *options)
    assert outcome.code == 0
    assert outcome.lines[:2] == ["completed_tasks >= 2", f"holds first in {REVIEW}@6"]
    assert "~ completed_tasks  1 → 2" in outcome.out


def test_bisect_as_json(cli: Cli) -> None:
    found = cli("bisect", REVIEW, "status == 'completed'", "--json").json
    assert found["snapshot"]["seq"] == 10
    assert found["changes"] == [
        {"path": "status", "kind": "changed", "before": "running", "after": "completed"}
    ]
    assert (found["run"], found["expression"]) == (REVIEW, "status == 'completed'")


def test_an_expression_that_holds_from_the_start(cli: Cli) -> None:
    found = cli("bisect", REVIEW, "workflow.name == 'review'", "--json").json
    assert (found["snapshot"]["seq"], found["changes"]) == (0, [])


def test_an_expression_that_never_holds(cli: Cli) -> None:
    outcome = cli("bisect", REVIEW, "completed_tasks > 99")
    assert outcome.code == 1
    assert outcome.out == f"It holds in none of the 11 snapshots of {REVIEW}.\n"
    outcome = cli("bisect", REVIEW, "completed_tasks > 99", "--json")
    assert (outcome.code, outcome.json["snapshot"]) == (1, None)


def test_an_expression_that_looks_at_nothing_says_so(cli: Cli) -> None:
    outcome = cli("bisect", REVIEW, "context.findings.items|length > 1 and metrics.nope > 1")
    assert outcome.code == 1
    assert outcome.lines[1:] == [
        f"There is nothing at context.findings.items in {REVIEW}@10.",
        f"There is nothing at metrics.nope in {REVIEW}@10.",
    ]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("nope > 1", "it names 'nope'"),
        ("status", "not true or false"),
        ("status ==", "cannot be used"),
        ("", "cannot be used"),
        ("range(1000000000)|length > 1", "cannot be used"),
    ],
)
def test_bad_expressions(cli: Cli, expression: str, said: str) -> None:
    outcome = cli("bisect", REVIEW, expression)
    assert outcome.code == 2
    assert said in outcome.err
