"""What people are told when something goes wrong, and the exit code that goes with it."""

import os
import sys
from typing import Any, Final

from orchestra.errors import OrchestraError

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
WAITING: Final = 3
DAMAGE: Final = 4
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

TRACE_VARIABLE: Final = "ORCHESTRA_TRACE"


def report(error: OrchestraError, as_json: bool, store: str | None) -> int:
    """An error that this program raises on purpose; commands in it name the store that was given."""
    from orchestra.cli.store import with_store

    _tell(type(error).__name__, with_store(str(error), store), error.data, as_json)
    return error.exit_code


def report_usage(error: Any, as_json: bool) -> int:
    """A command line that cannot be understood."""
    message = " ".join(str(error).split())
    place = " ".join(error.command_chain or ())
    advice = f"See `orchestra {place} --help`." if place else "See `orchestra --help`."
    _tell("Usage", f"{message} {advice}", {}, as_json)
    return USAGE


def report_unexpected(error: BaseException, as_json: bool) -> int:
    """Something nobody thought of, in one line."""
    name, said = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        message = f"{said}. Set {TRACE_VARIABLE}=1 to see where."
    elif name == "CancelledError":
        message = "An agent cancelled work of this process that is not its own. "
        message += "It goes on where it was: see `orchestra resume`."
    else:
        message = f"Unexpected {name}{': ' + said if said else ''}. This is a fault of the program; "
        message += f"set {TRACE_VARIABLE}=1 to see where, and report it."
    _tell(name, message, {}, as_json)
    return FAILED


def report_interrupt() -> int:
    """Somebody pressed Ctrl-C."""
    _trace()
    sys.stderr.write("interrupted\n")
    return INTERRUPTED


def _tell(kind: str, message: str, data: dict[str, object], as_json: bool) -> None:
    from orchestra.cli.render.screen import json_text, screen

    _trace()
    if as_json:
        plain = {name: _plain(value) for name, value in data.items()}
        sys.stderr.write(json_text({"error": {"kind": kind, "message": message, "data": plain}}))
        return
    out = screen(sys.stderr)
    *listed, said = message.split("\n")
    for line in listed:
        out.line(line)
    out.paragraph([("error: ", "bad"), (said, "")])


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, str | int | bool | None) else str(value)


def _trace() -> None:
    if os.environ.get(TRACE_VARIABLE, "") not in ("", "0"):
        import traceback

        traceback.print_exc()
