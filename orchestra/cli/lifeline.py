"""Ending in any case: an agent whose thread cannot be stopped must not hold the process."""

import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio

from orchestra.cli.aside import agents_aside, printed

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
            with suppress(Exception):  # the terminal may be gone
                if self._code is None:
                    say()
                printed().flush()
                sys.stderr.flush()
            os._exit(code if self._code is None else self._code)

        threading.Thread(target=end, name="lifeline", daemon=True).start()

    def done(self, code: int) -> None:
        """All runs have ended and everything was said; what is left is to leave."""
        self._code = code
        self.end_within(LEAVE_SECONDS, code, lambda: None)

    def cut(self) -> None:
        """The process is about to end by itself."""
        self._cut.set()


def play(main: Callable[[Lifeline], Awaitable[int]]) -> int:
    """Run the loop until `main` returns the exit code."""
    lifeline = Lifeline()
    try:
        with agents_aside():
            return anyio.run(main, lifeline)
    finally:
        lifeline.cut()
