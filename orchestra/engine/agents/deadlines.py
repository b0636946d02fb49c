"""Deadlines: the time limits of a run's attempts, with one timer of the loop for all of them.

Most attempts end long before their limit: a timer for each would be made and cancelled thousands of times.
"""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

Ring: TypeAlias = Callable[[], None]


class Deadlines:
    """Who is to be called when, unless it is taken back before. Belongs to one loop."""

    def __init__(self) -> None:
        self._due: dict[Ring, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._first = 0.0  # when the timer rings

    def set(self, ring: Ring, seconds: float) -> None:
        """Have `ring` called after so many seconds."""
        when = self._due[ring] = asyncio.get_running_loop().time() + seconds
        if self._timer is None or when < self._first:
            self._arm(when)

    def drop(self, ring: Ring) -> None:
        """Take a call back, if there is one to come."""
        self._due.pop(ring, None)

    def clear(self, ring: Ring) -> float | None:
        """Take a call back; how many seconds were left, None when there was none to come."""
        when = self._due.pop(ring, None)
        return None if when is None else max(0.0, when - asyncio.get_running_loop().time())

    def close(self) -> None:
        """Call nobody any more."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._first = when
        self._timer = asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        """Call those who are too late. Those the timer was set for may have ended long ago."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for ring in [each for each, when in self._due.items() if when <= now]:
            del self._due[ring]
            ring()
        if self._due:
            self._arm(min(self._due.values()))
