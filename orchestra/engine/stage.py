"""The stage: the parts that all runs of a process share, and how they tell time and memory."""

import os
import resource
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

import attrs

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.engine.outputs import OutputFolder
from orchestra.engine.redact import Redactor
from orchestra.ids import Instant
from orchestra.model.value import Value
from orchestra.model.workflow import MINUTE_US
from orchestra.ports.agent import Runner
from orchestra.ports.clock import Clock


class SteadyClock:
    """Tells the time of day at the start plus what has passed since: it never jumps while a process lives."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start, self._began = clock.now(), clock.monotonic()

    def now(self) -> Instant:
        return Instant(self._start + int((self._clock.monotonic() - self._began) * 1_000_000))


class Slots:
    """How many attempts may work at once over all runs: places, given out in the order of asking.

    Costs nothing while there is room.
    """

    def __init__(self, total: int) -> None:
        self._free = total
        self._waiting: dict[Callable[[], None], None] = {}

    def ask(self, begin: Callable[[], None]) -> None:
        """Have `begin` called once there is a place, perhaps at once. Whoever began gives it back."""
        if self._free > 0:
            self._free -= 1
            begin()
        else:
            self._waiting[begin] = None

    def withdraw(self, begin: Callable[[], None]) -> bool:
        """A place is not wanted any more; False when it was given already."""
        if begin not in self._waiting:
            return False
        del self._waiting[begin]
        return True

    def give(self) -> None:
        """There is a place more: somebody who holds one ended, or stands still."""
        self._free += 1
        while self._waiting and self._free > 0:
            begin = next(iter(self._waiting))
            del self._waiting[begin]
            self._free -= 1
            begin()

    def take(self) -> None:
        """Whoever stood still works again; for a while there may be more at work than there are places."""
        self._free -= 1


@attrs.frozen(kw_only=True)
class Stage:
    """The parts that all runs of a process share."""

    manager: CheckpointManager
    runner: Runner
    outputs: OutputFolder
    clock: SteadyClock
    project: Path
    redactor: Redactor = attrs.field(factory=Redactor)
    environment: Mapping[str, str] = attrs.field(factory=lambda: os.environ)
    keys: Callable[[], Mapping[str, str]] = dict  # what the key file holds, read when it is asked for
    slots: Slots | None = None  # attempts at once over all runs
    secrets: Mapping[str, Any] = attrs.field(factory=dict)  # inputs that are handed out and never stored
    every_us: int = 10 * MINUTE_US

    def open(self, value: Value) -> Any:
        """A frozen value's data, fetched from the store where it is large."""
        return self.manager.archive.value(value)

    def find_key(self, name: str) -> str | None:
        """A key, from the environment or the key file; it is secret from then on."""
        found = self.environment.get(name) or self.keys().get(name) or None
        if found is not None:
            self.redactor.add(found)
        return found


def peak_memory_bytes() -> int:
    """How much memory the process had at most, as of this second: asking costs more than a small turn."""
    return _peak_bytes(int(monotonic()))


@lru_cache(maxsize=1)
def _peak_bytes(_second: int) -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
