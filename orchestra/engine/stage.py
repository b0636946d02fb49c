"""The stage: the parts that all runs of a process share, and how they tell time and memory."""

import os
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final

import attrs

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.engine.agents.slots import Slots
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
        """The time."""
        return Instant(self._start + int((self._clock.monotonic() - self._began) * 1_000_000))


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


class _Peak:
    """How much memory the process had at most. Asking the system costs more than a small turn."""

    def __init__(self) -> None:
        self._known, self._until = 0, 0.0

    def __call__(self) -> int:
        if monotonic() >= self._until:
            self._known = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            self._until = monotonic() + 1.0
        return self._known


peak_memory_bytes: Final = _Peak()
"""The peak in bytes, at most a second old."""
