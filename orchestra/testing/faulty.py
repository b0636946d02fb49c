"""A store that fails on purpose at chosen calls, as a disk, a full filesystem or a crash would.

`FaultyStore(inner, plan)` counts every call and asks its plan what is to happen. A plan is a list of faults
and a seed: with the same plan and the same calls, the same things happen again.

A `Fault` raises before the call was done, or after it: then the caller cannot know the outcome. A `Kill` ends
this process. A `Damage` flips one bit in what is read. Without faults the store only counts, which tells how
many calls a piece of work makes, so that a test can go through it failing at each:

    for nth in range(count_calls(work, MemoryStore())):
        work(FaultyStore(MemoryStore(), FaultPlan([Fault(nth=nth)])))
"""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs

from orchestra.errors import StoreError, StoreFailed
from orchestra.ports.store import Store
from orchestra.stores.wrappers import WrappedStore

When = Literal["before", "after"]

READS = frozenset({"get_objects", "rows"})
"""What can be damaged: the methods that give back contents."""


def _frozen(methods: Collection[str] | None) -> frozenset[str] | None:
    return None if methods is None else frozenset(methods)


@attrs.frozen(kw_only=True)
class _Point:
    """Where a plan strikes: the n-th call, counted from 0 over the methods it names, or each by chance."""

    methods: frozenset[str] | None = attrs.field(default=None, converter=_frozen)  # None: all of them
    nth: int | None = None  # None: every call, as far as the chance allows
    chance: float = 1.0
    when: When = "before"


@attrs.frozen(kw_only=True)
class Fault(_Point):
    """Raise an error; `after` means that the call was done and only its answer is lost."""

    kind: type[StoreError] = StoreFailed


@attrs.frozen(kw_only=True)
class Kill(_Point):
    """End this process, as a power switch would: no cleanup, no flushing."""


@attrs.frozen(kw_only=True)
class Damage(_Point):
    """Flip one bit in the objects or rows that the call read."""

    methods: frozenset[str] | None = attrs.field(default=READS, converter=_frozen)
    when: When = "after"


class FaultPlan:
    """What goes wrong when. Thread-safe; the chance comes from the seed alone."""

    def __init__(self, points: Iterable[Fault | Kill | Damage] = (), *, seed: int = 0) -> None:
        self._points = tuple(points)
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._seen = [0] * len(self._points)
        self.calls: Counter[str] = Counter()
        self.struck = 0

    def strikes(self, method: str) -> list[Fault | Kill | Damage]:
        """Count a call; what is to happen at it, in the order of the plan."""
        with self._lock:
            self.calls[method] += 1
            due = [point for index, point in enumerate(self._points) if self._due(index, point, method)]
            self.struck += len(due)
            return due

    def flip(self, data: bytes) -> bytes:
        """The same bytes with one bit turned over; empty ones stay as they are."""
        if not data:
            return data
        with self._lock:
            bit = self._random.randrange(len(data) * 8)
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    def _due(self, index: int, point: _Point, method: str) -> bool:
        if point.methods is not None and method not in point.methods:
            return False
        count = self._seen[index]
        self._seen[index] += 1
        return (point.nth is None or point.nth == count) and self._random.random() < point.chance


def count_calls(work: Callable[[Store], object], store: Store, methods: Collection[str] | None = None) -> int:
    """How many calls (of these methods, or of all) a piece of work makes."""
    plan = FaultPlan()
    work(FaultyStore(store, plan))
    return sum(count for method, count in plan.calls.items() if methods is None or method in methods)


class FaultyStore(WrappedStore):
    """Another store, with things going wrong as planned. `close` never fails, so that tests can clean up."""

    def __init__(self, inner: Store, plan: FaultPlan) -> None:
        super().__init__(inner)
        self.plan = plan

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Count a call of the store inside, and let happen what is planned for it."""
        due = self.plan.strikes(method)
        self._strike(due, "before")
        result = super().call(method, *args, **kwargs)
        self._strike(due, "after")
        if method in READS and any(isinstance(point, Damage) for point in due):
            return self._damage(result)
        return result

    def _strike(self, due: Sequence[Fault | Kill | Damage], when: When) -> None:
        for point in due:
            if point.when != when:
                continue
            if isinstance(point, Kill):
                os.kill(os.getpid(), signal.SIGKILL)
            if isinstance(point, Fault):
                raise point.kind(place=self.place, needed="1 MB", reason="input/output error", seconds=60)

    def _damage(self, result: Any) -> Any:
        """What `get_objects` or `rows` answered, with a bit flipped in the first that has content."""
        if isinstance(result, Mapping):
            first = min((digest for digest, data in result.items() if data), default=None)
            return result if first is None else {**result, first: self.plan.flip(result[first])}
        flipped = list(result)
        for index in [n for n, row in enumerate(result) if row.header][:1]:
            flipped[index] = attrs.evolve(result[index], header=self.plan.flip(result[index].header))
        return flipped
