"""The time of this process, read in one place."""

import time

from orchestra.ids import Instant


def now() -> Instant:
    """The wall clock, in UTC."""
    return Instant(time.time_ns() // 1000)
