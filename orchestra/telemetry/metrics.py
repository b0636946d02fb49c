"""Measuring: what the notices about snapshots add up to, per run and per process."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import attrs

from orchestra.ids import Instant
from orchestra.limits import SNAPSHOT_BYTES
from orchestra.model.frozen import maker
from orchestra.ports.sink import CheckpointSaved
from orchestra.telemetry import names
from orchestra.telemetry.records import Attributes, Distribution, Metric

SECONDS_BOUNDS: Final = tuple(float(f"{1e-5 * 1.5**step:.3g}") for step in range(40))
"""From ten microseconds to a minute, so close to one another that percentiles can be told from them."""
BYTES_BOUNDS: Final = tuple(float(64 << step) for step in range((SNAPSHOT_BYTES // 64).bit_length()))
_distribution: Final = maker(Distribution)
_metric: Final = maker(Metric)


class Histogram:
    """Counts values by size."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total, self.least, self.most = 0.0, float("inf"), 0.0

    def record(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value

    def add(self, other: Distribution) -> None:
        """Count what another one counted; it must have the same bounds."""
        assert other.bounds == self.bounds, "BUG: histograms with other bounds cannot be added"
        self.counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        self.total += other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    def distribution(self) -> Distribution:
        """What was counted so far."""
        return _distribution(
            bounds=self.bounds,
            counts=tuple(self.counts),
            total=self.total,
            least=self.least if self.least <= self.most else 0.0,
            most=self.most,
        )


def quantile(held: Distribution, share: float) -> float:
    """The value below which that share of the values lies, as exactly as the bounds allow."""
    wanted, passed = share * held.count, 0
    for place, amount in enumerate(held.counts):
        if amount and passed + amount >= wanted:
            low = held.bounds[place - 1] if place else 0.0
            high = held.bounds[place] if place < len(held.bounds) else held.most
            inside = low + (high - low) * (wanted - passed) / amount
            return min(max(inside, held.least), held.most)
        passed += amount
    return held.most


@attrs.define
class Figures:
    """What was measured since a moment."""

    since: Instant
    until: Instant
    duration: Histogram = attrs.field(factory=lambda: Histogram(SECONDS_BOUNDS))
    size: Histogram = attrs.field(factory=lambda: Histogram(BYTES_BOUNDS))
    saved: int = 0
    failed: int = 0
    recovered: int = 0  # recoveries after which work went on
    lost: int = 0  # recoveries after which the run failed or had to be recovered again

    def count_saved(self, notice: CheckpointSaved) -> None:
        """Count a snapshot that was saved."""
        self.duration.record(notice.seconds)
        self.size.record(notice.size)
        self.saved += 1
        self.until = max(self.until, notice.at)

    def add(self, other: "Figures") -> None:
        """Count what was measured elsewhere."""
        self.duration.add(other.duration.distribution())
        self.size.add(other.size.distribution())
        self.saved, self.failed = self.saved + other.saved, self.failed + other.failed
        self.recovered, self.lost = self.recovered + other.recovered, self.lost + other.lost
        self.since, self.until = min(self.since, other.since), max(self.until, other.until)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured."""
        return not (self.saved or self.failed or self.recovered or self.lost)

    def metrics(self, about: Attributes, *, storage: int | None, cumulative: bool) -> list[Metric]:
        """As instruments measure it."""
        return [
            _metric(
                name=name,
                unit=unit,
                description=description,
                kind=kind,  # type: ignore[arg-type]
                points=points,
                start=self.since,
                at=self.until,
                cumulative=cumulative,
            )
            for name, unit, description, kind, points in self._instruments(about, storage)
            if points
        ]

    def _instruments(
        self, about: Attributes, storage: int | None
    ) -> Iterator[tuple[str, str, str, str, tuple[tuple[Attributes, float | int | Distribution], ...]]]:
        seconds = (self.until - self.since) / 1e6
        settled = self.recovered + self.lost
        counted = (("saved", self.saved), ("failed", self.failed))
        recovered = (("succeeded", self.recovered), ("failed", self.lost))
        rate = ((about, self.recovered / settled),) if settled else ()
        often = ((about, self.saved / seconds),) if seconds > 0 else ()
        nothing: Attributes = {}
        used = ((nothing, storage),) if storage is not None else ()
        duration, size = self.duration.distribution(), self.size.distribution()
        yield names.WRITE_DURATION, "s", "How long saving a snapshot took.", "histogram", ((about, duration),)
        yield names.CHECKPOINT_SIZE, "By", "What a snapshot added.", "histogram", ((about, size),)
        yield names.CHECKPOINT_COUNT, "{checkpoint}", "Snapshots.", "sum", _by_outcome(about, counted)
        yield names.CHECKPOINT_FREQUENCY, "{checkpoint}/s", "Snapshots a second.", "gauge", often
        yield names.RECOVERY_COUNT, "{recovery}", "Recoveries.", "sum", _by_outcome(about, recovered)
        yield names.RECOVERY_SUCCESS_RATE, "1", "Share of recoveries that held.", "gauge", rate
        yield names.STORAGE_USAGE, "By", "What the store takes up.", "gauge", used


def _by_outcome(about: Attributes, counts: tuple[tuple[str, int], ...]) -> tuple[tuple[Attributes, int], ...]:
    return tuple(({**about, names.OUTCOME: outcome}, count) for outcome, count in counts if count)
