"""The command line. Importing this package costs nothing: what a command needs is loaded when it runs."""

import os
import signal
from types import FrameType

_INTERRUPTED = 130  # as in `exit_codes`, which is not loaded yet


def main() -> None:
    """Run the command line of this process and end it with the exit code of the command."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    try:
        from orchestra.cli.dispatch import run_command_line

        code = run_command_line()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    raise SystemExit(code)


def _leave(_number: int, frame: FrameType | None) -> None:
    """End at once while modules are loaded: nothing has begun, and an exception can get lost in there.

    Who plays runs hears signals in the loop from then on.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(_INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
