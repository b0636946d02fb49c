"""Time comes in through here, so that a run can be simulated and replayed."""

from typing import Protocol

from orchestra.ids import Instant


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> Instant:
        """The wall clock, in UTC. It may jump; nothing is ordered by it."""

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring."""
