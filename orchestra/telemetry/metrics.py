"""Measuring: what the notices about snapshots add up to, per run and per process."""

from bisect import bisect_left
from typing import Final, Literal, TypeAlias

import attrs

from orchestra.ids import Instant
from orchestra.limits import SNAPSHOT_BYTES
from orchestra.model.frozen import maker
from orchestra.model.records import Generation
from orchestra.ports.sink import CheckpointSaved
from orchestra.telemetry import names
from orchestra.telemetry.records import Attributes
from orchestra.telemetry.talk import model_parts

SECONDS_BOUNDS: Final = tuple(float(f"{1e-5 * 1.5**step:.3g}") for step in range(40))
"""From ten microseconds to a minute, so close to one another that percentiles can be told from them."""
TOKENS_BOUNDS: Final = tuple(float(4**power) for power in range(14))
"""As the conventions have them."""
BYTES_BOUNDS: Final = tuple(float(64 << step) for step in range((SNAPSHOT_BYTES // 64).bit_length()))


@attrs.define
class Histogram:
    """How often values fell between the bounds; `counts` has one more entry than `bounds`."""

    bounds: tuple[float, ...]
    counts: list[int] = attrs.Factory(lambda self: [0] * (len(self.bounds) + 1), takes_self=True)
    total: float = 0.0
    smallest: float = float("inf")  # of nothing; see `least`
    most: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def least(self) -> float:
        """The smallest value, 0 when there were none."""
        return self.smallest if self.smallest <= self.most else 0.0

    def record(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        if value < self.smallest:
            self.smallest = value
        if value > self.most:
            self.most = value

    def add(self, other: "Histogram") -> None:
        """Count what another one counted; it must have the same bounds."""
        assert other.bounds == self.bounds, "BUG: histograms with other bounds cannot be added"
        self.counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        self.total += other.total
        self.smallest, self.most = min(self.smallest, other.smallest), max(self.most, other.most)


Points: TypeAlias = tuple[tuple[Attributes, float | int | Histogram], ...]


@attrs.frozen
class Metric:
    """What one instrument measured between two moments."""

    name: str
    unit: str
    description: str
    kind: Literal["histogram", "sum", "gauge"]
    points: Points
    start: Instant
    at: Instant
    cumulative: bool = False  # since the process began; otherwise since the last time


_metric: Final = maker(Metric)
INSTRUMENTS: Final[tuple[tuple[str, str, str, Literal["histogram", "sum", "gauge"]], ...]] = (
    (names.WRITE_DURATION, "s", "How long saving a snapshot took.", "histogram"),
    (names.CHECKPOINT_SIZE, "By", "What a snapshot added.", "histogram"),
    (names.CHECKPOINT_COUNT, "{checkpoint}", "Snapshots.", "sum"),
    (names.CHECKPOINT_FREQUENCY, "{checkpoint}/s", "Snapshots a second.", "gauge"),
    (names.RECOVERY_COUNT, "{recovery}", "Recoveries.", "sum"),
    (names.RECOVERY_SUCCESS_RATE, "1", "Share of recoveries that held.", "gauge"),
    (names.STORAGE_USAGE, "By", "What the store takes up.", "gauge"),
    (names.TOKEN_USAGE, "{token}", "Tokens of a request to a model.", "histogram"),
    (names.REQUEST_DURATION, "s", "How long a model took to answer.", "histogram"),
)


def quantile(held: Histogram, share: float) -> float:
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
class Requests:
    """What was measured of the requests to one model that were answered."""

    tokens_in: Histogram = attrs.field(factory=lambda: Histogram(TOKENS_BOUNDS))
    tokens_out: Histogram = attrs.field(factory=lambda: Histogram(TOKENS_BOUNDS))
    duration: Histogram = attrs.field(factory=lambda: Histogram(SECONDS_BOUNDS))

    def count(self, generation: Generation) -> None:
        """Count a request."""
        self.tokens_in.record(generation.tokens_in)
        self.tokens_out.record(generation.tokens_out)
        self.duration.record(generation.latency_us / 1e6)

    def add(self, other: "Requests") -> None:
        """Count what was measured elsewhere."""
        self.tokens_in.add(other.tokens_in)
        self.tokens_out.add(other.tokens_out)
        self.duration.add(other.duration)


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
    requests: dict[str, Requests] = attrs.field(factory=dict)  # to models, by their names

    def count_request(self, generation: Generation, at: Instant) -> None:
        """Count a request that a model answered."""
        self.requests.setdefault(generation.model, Requests()).count(generation)
        self.until = max(self.until, at)

    def count_saved(self, notice: CheckpointSaved) -> None:
        self.duration.record(notice.seconds)
        self.size.record(notice.size)
        self.saved += 1
        self.until = max(self.until, notice.at)

    def add(self, other: "Figures") -> None:
        """Count what was measured elsewhere."""
        self.duration.add(other.duration)
        self.size.add(other.size)
        self.saved, self.failed = self.saved + other.saved, self.failed + other.failed
        self.recovered, self.lost = self.recovered + other.recovered, self.lost + other.lost
        for model, measured in other.requests.items():
            self.requests.setdefault(model, Requests()).add(measured)
        self.since, self.until = min(self.since, other.since), max(self.until, other.until)

    @property
    def is_empty(self) -> bool:
        return not (self.saved or self.failed or self.recovered or self.lost or self.requests)

    def metrics(self, about: Attributes, *, storage: int | None, cumulative: bool) -> list[Metric]:
        seconds, settled = (self.until - self.since) / 1e6, self.recovered + self.lost
        nothing: Attributes = {}
        points: tuple[Points, ...] = (
            ((about, self.duration),),
            ((about, self.size),),
            _by_outcome(about, saved=self.saved, failed=self.failed),
            ((about, self.saved / seconds),) if seconds > 0 else (),
            _by_outcome(about, succeeded=self.recovered, failed=self.lost),
            ((about, self.recovered / settled),) if settled else (),
            ((nothing, storage),) if storage is not None else (),
            tuple(point for each in self.requests.items() for point in _tokens(about, *each)),
            tuple((_model(about, name), held.duration) for name, held in self.requests.items()),
        )
        return [
            _metric(*instrument, measured, self.since, self.until, cumulative)
            for instrument, measured in zip(INSTRUMENTS, points, strict=True)
            if measured
        ]


def _model(about: Attributes, name: str) -> Attributes:
    provider, asked = model_parts(name)
    return {**about, names.OPERATION: names.CHAT, names.PROVIDER: provider, names.MODEL: asked}


def _tokens(about: Attributes, name: str, held: Requests) -> Points:
    model = _model(about, name)
    told = (("input", held.tokens_in), ("output", held.tokens_out))
    return tuple(({**model, names.TOKEN_TYPE: which}, counted) for which, counted in told)


def _by_outcome(about: Attributes, **counts: int) -> Points:
    return tuple(({**about, names.OUTCOME: outcome}, count) for outcome, count in counts.items() if count)
