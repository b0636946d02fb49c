"""Ends the process in time, also when the thread of an agent cannot be stopped."""

import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple, NoReturn

import anyio

from orchestra.cli.exit_codes import FAILED, INTERRUPTED
from orchestra.cli.play.stdout import own_stdout, redirect_agents

LEAVE_SECONDS: Final = 5.0
"""How long the end of a command may take once all runs have ended."""


class _Deadline(NamedTuple):
    """When the process has to end, and how."""

    at: float | None  # on the monotonic clock; None: it is about to end by itself
    code: int
    say: Callable[[], None]  # what to say before, if anything


def _nothing() -> None:
    pass


class Lifeline:
    """Ends the process when its time is up. One thread waits for that."""

    def __init__(self) -> None:
        self._set: SimpleQueue[_Deadline] = SimpleQueue()  # which signal handlers may put into
        threading.Thread(target=self._wait, name="lifeline", daemon=True).start()

    def end_within(self, seconds: float, code: int, say: Callable[[], None] = _nothing) -> None:
        """End the process within that time, unless an earlier end was set; `say` is called before."""
        self._set.put(_Deadline(time.monotonic() + seconds, code, say))

    def limit_stop(self, signals: Iterable[int], first: float, again: float, say: Callable[[], None]) -> None:
        """Bound how long it takes to stop after a signal, and after one more Ctrl-C.

        It works also while an agent blocks the loop. Call it where the loop listens to these signals, which
        restores the handlers.
        """
        heard = False

        def hear(number: int, _frame: object) -> None:
            nonlocal heard
            if not heard or number == signal.SIGINT:
                self.end_within(again if heard else first, INTERRUPTED, say)
            heard = True

        for number in signals:
            signal.signal(number, hear)

    def leave(self, code: int) -> None:
        """End the process soon: all runs have ended and everything was printed."""
        self.end_within(LEAVE_SECONDS, code)

    def let_go(self, code: int) -> None:
        """Let the process end by itself with that exit code; only threads that keep it are cut off."""
        self._set.put(_Deadline(None, code, _nothing))

    def _wait(self) -> None:
        last = self._set.get()
        while last.at is not None:
            try:
                new = self._set.get(timeout=max(0.0, last.at - time.monotonic()))
            except Empty:
                with suppress(Exception):  # the terminal may be gone
                    last.say()
                _end(last.code)
            last = new if new.at is None else new._replace(at=min(last.at, new.at))
        if any(not each.daemon and each is not threading.main_thread() for each in threading.enumerate()):
            while threading.main_thread().is_alive():
                time.sleep(LEAVE_SECONDS)
            time.sleep(LEAVE_SECONDS)  # all that is still done is to wait for a thread, as Python does
            _end(last.code)


def _end(code: int) -> NoReturn:
    with suppress(Exception):  # the terminal may be gone
        own_stdout().flush()
        sys.stderr.flush()
    os._exit(code)


def play(main: Callable[[Lifeline], Awaitable[int]]) -> int:
    """Run the loop until `main` returns the exit code."""
    lifeline, code = Lifeline(), FAILED
    try:
        with redirect_agents():
            code = anyio.run(main, lifeline)
    finally:
        lifeline.let_go(code)
    return code
