"""Ending in any case: an agent whose thread cannot be stopped must not hold the process."""

import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn

import anyio

from orchestra.cli.aside import agents_aside, printed
from orchestra.cli.failures import FAILED

LEAVE_SECONDS: Final = 5.0
"""How long the end of a command may take once all runs have ended."""


class Lifeline:
    """Ends the process some time from now, unless it was cut before."""

    def __init__(self) -> None:
        self._cut = threading.Event()
        self._code: int | None = None  # known once all runs have ended

    def end_within(self, seconds: float, code: int, say: Callable[[], None]) -> None:
        """End the process in that time with that exit code; while runs are still played, `say` so first."""

        def end() -> None:
            if self._cut.wait(seconds):
                return
            if self._code is None:
                with suppress(Exception):  # the terminal may be gone
                    say()
            _end(code if self._code is None else self._code)

        threading.Thread(target=end, name="lifeline", daemon=True).start()

    def done(self, code: int) -> None:
        """All runs have ended and everything was said; what is left is to leave."""
        self._code = code
        self.end_within(LEAVE_SECONDS, code, lambda: None)

    def cut(self, code: int) -> None:
        """The process is about to end by itself with that exit code, if no thread keeps it."""
        self._cut.set()
        if any(not each.daemon and each is not threading.main_thread() for each in threading.enumerate()):
            threading.Thread(target=_outlive, args=(code,), name="lifeline", daemon=True).start()


def _outlive(code: int) -> None:
    """End the process when all that it still does is to wait for a thread, as Python does at its end."""
    while threading.main_thread().is_alive():
        time.sleep(LEAVE_SECONDS)
    time.sleep(LEAVE_SECONDS)
    _end(code)


def _end(code: int) -> NoReturn:
    with suppress(Exception):  # the terminal may be gone
        printed().flush()
        sys.stderr.flush()
    os._exit(code)


def play(main: Callable[[Lifeline], Awaitable[int]]) -> int:
    """Run the loop until `main` returns the exit code."""
    lifeline, code = Lifeline(), FAILED
    try:
        with agents_aside():
            code = anyio.run(main, lifeline)
    finally:
        lifeline.cut(code)
    return code
