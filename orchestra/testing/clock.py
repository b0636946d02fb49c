"""A clock that tests set, so that the same work gives the same bytes."""

import threading
from typing import Final

from orchestra.ids import Instant

START: Final = Instant(1_794_744_000_000_000)
SECOND: Final = 1_000_000


class FakeClock:
    """A clock that moves `step` microseconds each time it is asked, else only when told to. Thread-safe."""

    def __init__(self, start: int = START, *, step: int = 0) -> None:
        self._now = start
        self._monotonic_us = 0
        self._step = step
        self._lock = threading.Lock()

    def now(self) -> Instant:
        """The wall clock; it jumps when `set` says so."""
        with self._lock:
            shown = self._now
            self._move(self._step)
            return Instant(shown)

    def monotonic(self) -> float:
        """Seconds that never go back, whatever `set` does."""
        with self._lock:
            shown = self._monotonic_us
            self._move(self._step)
            return shown / SECOND

    def advance(self, seconds: float) -> None:
        assert seconds >= 0, "BUG: time does not run backwards; use `set` for a wall clock that jumps"
        with self._lock:
            self._move(round(seconds * SECOND))

    def set(self, now: int) -> None:
        """Let the wall clock jump, forwards or back; what measures time does not notice."""
        with self._lock:
            self._now = now

    def _move(self, us: int) -> None:
        self._now += us
        self._monotonic_us += us
