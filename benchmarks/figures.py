"""Figures: what a worker measured, as plain data that crosses a process boundary as JSON.

Times are seconds, sizes bytes. A figure that stands for a whole run but was taken from a part of it is named
in `estimated`; one that a contestant cannot give is named in `unsupported`, with the reason.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

BUDGET_SECONDS = 3.0
REPEATS = 9
LEAST_REPEATS = 3
"""However long they take, so that one stall of the machine is not the figure."""
PERCENTILES = (50, 95, 99)


@attrs.define(kw_only=True)
class Figures:
    """Everything measured of one contestant at one size."""

    name: str
    n: int
    durable: bool = True
    durability: str = ""
    version: str = ""
    metrics: dict[str, float] = attrs.field(factory=dict)
    unsupported: dict[str, str] = attrs.field(factory=dict)
    estimated: list[str] = attrs.field(factory=list)
    windows: list[tuple[int, float]] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    same_shape: bool = True  # of engines: whether its runs have the shape that was asked for
    missing: str | None = None

    def add_saves(self, seconds: Sequence[float], prefix: str = "save") -> None:
        """Take the percentiles of many saves."""
        for percent, value in zip(PERCENTILES, percentiles(seconds), strict=True):
            self.metrics[f"{prefix}_p{percent}"] = value


def from_json(data: dict[str, Any]) -> Figures:
    """Figures that were written by `attrs.asdict`."""
    windows = [(int(n), float(p50)) for n, p50 in data.pop("windows", [])]
    return Figures(**data, windows=windows)


def percentiles(seconds: Sequence[float]) -> tuple[float, ...]:
    """The 50th, 95th and 99th percentile, each a value that was measured."""
    ordered = sorted(seconds)
    assert ordered, "BUG: there is nothing to take percentiles of"
    last = len(ordered) - 1
    return tuple(ordered[min(last, len(ordered) * percent // 100)] for percent in PERCENTILES)


def joined(rounds: Sequence[Figures]) -> Figures:
    """The median of every figure over several rounds of the same measurement."""
    measured = [each for each in rounds if each.missing is None]
    if not measured:
        return rounds[0]
    first = measured[0]
    metrics = {
        name: statistics.median(each.metrics[name] for each in measured if name in each.metrics)
        for name in first.metrics
    }
    return attrs.evolve(first, metrics=metrics)


def repeated(work: Callable[[], object], undo: Callable[[], object] = lambda: None) -> float:
    """The median time of `work`, on a quiet heap; `undo` runs after each time, off the clock."""
    taken: list[float] = []
    while len(taken) < LEAST_REPEATS or (len(taken) < REPEATS and sum(taken) < BUDGET_SECONDS):
        quiet_heap()
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
        undo()
    return statistics.median(taken)


def quiet_heap() -> None:
    """Collect garbage now, and keep what is left out of the next collections.

    What was kept out before is let in first, or what became garbage since would stay for good.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def calm_heap() -> None:
    """As `orchestra run` sets the collector once all is loaded, for everybody: see `orchestra.app.heap`."""
    gc.freeze()
    gc.set_threshold(5000, 10, 10)


def peak_bytes() -> float:
    """The most memory this process ever had resident.

    Read from the kernel's account of this program where there is one: `ru_maxrss` would begin with the
    memory of the process that started it.
    """
    return _from_status("VmHWM:") or float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024


def resident_bytes() -> float:
    """The memory this process has resident now; 0 where the kernel does not say."""
    return _from_status("VmRSS:")


def _from_status(field: str) -> float:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0.0)
