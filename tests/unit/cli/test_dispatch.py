"""From what was typed to an exit code."""

import asyncio
import json
import signal
import sys
from importlib import import_module
from pathlib import Path

import pytest

from orchestra.cli import dispatch
from orchestra.cli.application import application
from orchestra.cli.catalog import COMMANDS
from orchestra.cli.render import run_list
from orchestra.version import VERSION
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import REVIEW, url_of

COMMAND_NAMES = [command.name for command in COMMANDS if not command.hidden]


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_the_first_help_page_names_every_command(bare: Cli, arguments: tuple[str, ...]) -> None:
    outcome = bare(*arguments)
    assert outcome.code == 0
    assert all(f"  {name}" in outcome.out for name in COMMAND_NAMES)
    assert "list-checkpoints" not in outcome.out


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_a_help_page(bare: Cli, command: str) -> None:
    for arguments in ([*command.split(), "--help"], ["help", *command.split()]):
        outcome = bare(*arguments)
        assert outcome.code == 0
        assert outcome.out.startswith(f"Usage: orchestra {command}")
        assert "<cyclopts" not in outcome.out
        assert outcome.err == ""


def test_every_command_leads_to_a_function() -> None:
    for command in COMMANDS:
        module, _, function = command.target.partition(":")
        assert callable(getattr(import_module(f"orchestra.cli.commands.{module}"), function))
    assert {name.split()[0] for name in COMMAND_NAMES} < set(application())


@pytest.mark.parametrize("argument", ["--version", "version"])
def test_the_version(bare: Cli, argument: str) -> None:
    assert bare(argument) == (0, f"orchestra {VERSION}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rnus",), "Did you mean"),
        (("runs", "--lmit", "3"), "--limit"),
        (("runs", "--limit", "many"), "many"),
        (("show",), "orchestra show --help"),
        (("show", "a", "b", "c"), "orchestra show --help"),
        (("completion", "tcsh"), "tcsh"),
        (("store", "burn"), "burn"),
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(bare: Cli, arguments: tuple[str, ...], said: str) -> None:
    outcome = bare(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_errors_are_one_json_line_when_json_was_asked_for(cli: Cli) -> None:
    outcome = cli("show", "nobody@3", "--json")
    assert (outcome.code, outcome.out) == (2, "")
    error = json.loads(outcome.err)["error"]
    assert error["kind"] == "UnknownRun"
    assert error["data"]["run"] == "nobody"
    assert "nobody" in error["message"]
    usage = json.loads(cli("runs", "--lmit", "3", "--json").err)["error"]
    assert usage["kind"] == "Usage"


def test_the_store_may_be_named_before_the_command(bare: Cli, recorded: Path) -> None:
    url = url_of(recorded)
    assert bare("--store", url, "runs") == bare("runs", "--store", url)
    assert bare(f"--store={url}", "show", REVIEW, "status", "--").out == "completed\n"


def _failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run_list, "open_if_any", fail)


def test_an_unexpected_failure_is_one_line(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, ValueError("first\nsecond"))
    outcome = bare("runs")
    assert outcome.code == 1
    assert outcome.err.startswith("error: Unexpected ValueError: first second.")
    assert "ORCHESTRA_TRACE=1" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_cancellation_that_nobody_asked_for_is_one_line(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, asyncio.CancelledError())
    outcome = bare("runs")
    assert outcome.code == 1
    assert outcome.err.startswith("error: An agent cancelled work of this process that is not its own.")


def test_a_trace_is_shown_on_request(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRA_TRACE", "1")
    _failing(monkeypatch, ValueError("odd"))
    outcome = bare("runs")
    assert outcome.code == 1
    assert "Traceback" in outcome.err
    assert "Traceback" in bare("show", "x", "--store", "sqlite:nowhere.db").err


def test_what_the_system_refuses_names_the_file(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, PermissionError(13, "Permission denied", "a/b"))
    outcome = bare("runs")
    assert outcome.code == 1
    assert outcome.err.startswith("error: a/b: Permission denied.")


def test_ctrl_c(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, KeyboardInterrupt())
    assert bare("runs") == (130, "", "interrupted\n")


def test_a_closed_pipe_is_no_failure_to_tell(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, BrokenPipeError())
    monkeypatch.setattr(dispatch, "_forget_output", lambda: None)
    assert bare("runs") == (141, "", "")


def test_main_ends_the_process_with_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["orchestra", "nonsense"])
    monkeypatch.setattr(signal, "signal", lambda number, handler: handler)  # this process keeps its own
    with pytest.raises(SystemExit) as ended:
        import_module("orchestra.cli").main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(bare: Cli, shell: str) -> None:
    outcome = bare("completion", shell)
    assert outcome.code == 0
    assert all(word in outcome.out for word in ("snapshots", "accept-loss", "--store"))


@pytest.mark.parametrize(
    ("arguments", "plain"),
    [
        ((), {}),
        (("--json",), {"--json": ""}),
        (("--store", "a:b", "--json"), {"--store": "a:b", "--json": ""}),
        (("--store=a:b=c",), {"--store": "a:b=c"}),
        (("--store",), None),
        (("--store", "--json"), None),
        (("--store", "a:b", "--store", "c:d"), None),
        (("--json", "--json"), None),
        (("--json=yes",), None),
        (("--limit", "3"), None),
        (("--help",), None),
        (("extra",), None),
        (("--",), None),
    ],
)
def test_what_is_asked_for_most_needs_no_other_reading(
    arguments: tuple[str, ...], plain: dict[str, str] | None
) -> None:
    assert dispatch._plain_options(list(arguments)) == plain


def test_the_quick_way_prints_the_same(cli: Cli) -> None:
    assert cli("runs") == cli("runs", "--limit", "50")
    assert cli("runs", "--json") == cli("runs", "--json", "--limit", "50")


def test_a_command_is_in_the_file_of_its_name() -> None:
    together = {"replay": "fork", "schema": "check", "import": "import_"}
    for command in COMMANDS:
        if not command.hidden:
            verb = command.name.split()[0]
            assert command.target.partition(":")[0] == together.get(verb, verb)


def test_no_command_imports_another() -> None:
    for file in Path(dispatch.__file__).with_name("commands").glob("*.py"):
        assert "orchestra.cli.commands" not in file.read_text(), file.name
