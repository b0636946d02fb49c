"""One line that says how far long work has come; on standard error, and only if that is a terminal."""

import sys
import time
from types import TracebackType
from typing import Self

from orchestra.cli.render.screen import screen
from orchestra.cli.render.text import cut

_BAR = 24
_SECONDS_BETWEEN = 0.1
_SECONDS_BEFORE = 0.4


class Progress:
    """A progress line. Short work never shows one."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._screen = screen(sys.stderr)
        self._due = time.monotonic() + _SECONDS_BEFORE
        self._shown = False

    def __call__(self, done: int, total: int, what: str | None = None) -> None:
        """Say how much is done."""
        if not self._screen.tty or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _SECONDS_BETWEEN
        filled = _BAR * done // max(total, 1)
        text = f"{what or self._what}  {'━' * filled}{'─' * (_BAR - filled)}  {done:,} of {total:,}"
        self._write("\r\x1b[2K" + self._screen.render([(cut(text, (self._screen.columns or 80) - 1), "dim")]))
        self._shown = True

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write("\r\x1b[2K")
