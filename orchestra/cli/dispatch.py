"""From what was typed to an exit code: finds the command, runs it, and says what went wrong in a sentence."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from orchestra.cli import exit_codes
from orchestra.errors import OrchestraError


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in _options(tokens)
    _prepare_streams(as_json)
    try:
        code = _dispatch(tokens, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return exit_codes.PIPE_CLOSED
    except KeyboardInterrupt:
        return exit_codes.report_interrupt()
    except OrchestraError as error:
        return exit_codes.report(error, as_json, _store(tokens))
    except SystemExit:
        raise
    except BaseException as error:  # the last resort: one line instead of a page of internals
        return exit_codes.report_unexpected(error, as_json)
    return code


def _dispatch(tokens: list[str], as_json: bool) -> int:
    tokens = _options_last(tokens)
    if not tokens or tokens in (["--help"], ["-h"], ["help"]):
        from orchestra.cli.render.help import print_help
        from orchestra.cli.render.screen import screen

        print_help(screen())
        return 0
    if tokens in (["--version"], ["version"]):
        from orchestra.version import VERSION

        sys.stdout.write(f"orchestra {VERSION}\n")
        return 0
    if tokens[0] == "help":
        tokens = [*tokens[1:], "--help"]
    if tokens == ["completion", "--runs"]:  # what a shell proposes where a run is to be named
        from orchestra.cli.render.run_list import print_names

        print_names()
        return 0
    if tokens[0] == "runs" and (plain := _plain_options(tokens[1:])) is not None:
        return _runs(plain.get("--store"), as_json)
    return _command(tokens, as_json)


def _plain_options(tokens: list[str]) -> dict[str, str] | None:
    """The options when there are none but `--json` and `--store URL`, otherwise None."""
    rest = iter(tokens)
    found: dict[str, str] = {}
    for token in rest:
        name, _, value = token.partition("=")
        if name == "--store" and name not in found:
            value = value if "=" in token else next(rest, "")
            if not value or value.startswith("-"):
                return None
        elif token != "--json" or name in found:
            return None
        found[name] = value
    return found


def _runs(store: str | None, as_json: bool) -> int:
    """The list of runs as it is asked for most, without loading what can read all the other options."""
    from orchestra.cli.render.run_list import list_runs
    from orchestra.ports.activity import activity
    from orchestra.ports.store import RunQuery

    with activity("runs"):
        list_runs(RunQuery(), store=store, as_json=as_json)
    return 0


def _command(tokens: list[str], as_json: bool) -> int:
    from cyclopts import CycloptsError

    from orchestra.cli.application import application
    from orchestra.cli.catalog import GROUPS
    from orchestra.ports.activity import activity

    try:
        with activity(" ".join(tokens[: 2 if tokens[0] in GROUPS else 1])):
            outcome: Any = application()(
                tokens, exit_on_error=False, print_error=False, result_action="return_value"
            )
    except CycloptsError as error:
        return exit_codes.report_usage(error, as_json)
    return outcome if isinstance(outcome, int) else 0


def _options_last(tokens: list[str]) -> list[str]:
    """The tokens with the store, which may also be named before the command, moved behind it."""
    moved: list[str] = []
    while tokens and tokens[0].partition("=")[0] == "--store":
        taken = 1 if "=" in tokens[0] else 2
        moved, tokens = moved + tokens[:taken], tokens[taken:]
    end = tokens.index("--") if "--" in tokens else len(tokens)
    return [*tokens[:end], *moved, *tokens[end:]]


def _store(tokens: list[str]) -> str | None:
    options = _options(tokens)
    for place, token in enumerate(options):
        name, equals, value = token.partition("=")
        if name == "--store":
            return value if equals else next(iter(options[place + 1 :]), None)
    return None


def _options(tokens: list[str]) -> list[str]:
    """The tokens among which options are."""
    return tokens[: tokens.index("--")] if "--" in tokens else tokens


def _prepare_streams(as_json: bool) -> None:
    """Nothing that is printed can fail because of the terminal's alphabet; JSON is always UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(encoding="utf-8" if as_json else None, errors="backslashreplace")


def _forget_output() -> None:
    """The reader has gone: what is still waiting to be printed must not raise again at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
    finally:
        os.close(nothing)
