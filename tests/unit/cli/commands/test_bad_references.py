"""References that lead nowhere: each its own error, with what to do next."""

import pytest

from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, FORK, HOSTILE, REVIEW

COMMANDS = ("show", "diff", "pin", "note")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nobody", "There is no run 'nobody'"),
        ("audit_x", "See `orchestra runs`"),
        (f"{AUDIT}@99", "its snapshots are 0 to 3"),
        (f"{AUDIT}@phase:nope", "its phases are collect"),
        (f"{AUDIT}@sometime", "is no place in a run"),
        ("review", f"{FORK}, {REVIEW}"),
        ("../../etc/passwd", "is not a reference"),
        ("", "is not a reference"),
        ("@3", "is not a reference"),
        ("ffffffffffff", "ffffffffffff"),
        ("00000000-0000-8000-8000-000000000000", "is not a reference"),
    ],
)
def test_bad_references(own: Cli, command: str, reference: str, said: str) -> None:
    outcome = own(command, reference)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert said in outcome.err


def test_a_nearby_run_is_suggested(cli: Cli) -> None:
    assert f"Did you mean {AUDIT}?" in cli("snapshots", "20261115_14").err


@pytest.mark.parametrize("command", ["snapshots", "bisect", "verify", "export", "prune", "delete"])
def test_an_unknown_run(own: Cli, command: str) -> None:
    arguments = ("status == 'x'",) if command == "bisect" else ()
    outcome = own(command, "nobody", *arguments)
    assert outcome.code == 2
    assert "There is no run 'nobody'" in outcome.err


def test_an_error_about_hostile_text_is_harmless(cli: Cli) -> None:
    for outcome in (cli("show", HOSTILE), cli("show", REVIEW, HOSTILE), cli("runs", HOSTILE)):
        assert outcome.code == 2
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(outcome.err)


def test_hostile_text_of_a_run_is_harmless_everywhere(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [
        ("snapshots", REVIEW),
        ("show", f"{REVIEW}@6"),
        ("show", f"{REVIEW}@6", "--full"),
        ("show", REVIEW, "context.findings"),
        ("diff", f"{REVIEW}@1", REVIEW),
        ("diff", f"{REVIEW}@1", REVIEW, "--full"),
        ("blame", REVIEW, "decisions[0].description"),
        ("bisect", REVIEW, "decisions|length > 0"),
    ]
    for json in ((), ("--json",)):
        for command in commands:
            outcome = cli(*command, *json)
            assert outcome.code == 0
            assert not {"\x1b", "\x07", "\u202e", "\x9b", "\u2028", "\u200b"} & set(outcome.out)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = cli("show", f"{REVIEW}@6").out
    assert "\x1b[2m" in coloured
    assert "\x1b[31mred" not in coloured
    assert "[bold]not markup[/bold]" in coloured


@pytest.mark.parametrize(
    "arguments",
    [
        ("pause", REVIEW, "--reason", "\udcff"),
        ("cancel", REVIEW, "--yes", "--reason", "\udcff"),
        ("snapshot", REVIEW, "\udcff"),
        ("retry", REVIEW, "\udcff"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_argument_that_is_no_text_is_named(own: Cli, arguments: tuple[str, ...]) -> None:
    """The shell hands on bytes that are not UTF-8 as halves of characters."""
    outcome = own(*arguments)
    assert outcome.code == 2
    assert f"{arguments[0]} cannot be done: '\\udcff' is no text" in outcome.err
