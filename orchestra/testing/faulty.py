"""A store that fails on purpose, by plan, as a disk, a full filesystem or a crash would at a chosen call.

`FaultyStore(inner, plan)` counts every call and asks its plan what is to happen. A plan is a list of faults
and a seed: with the same plan and the same calls, the same things happen again.

A `Fault` raises before the call was done, or after it: then the caller cannot know the outcome. A `Kill` ends
this process. A `Damage` flips one bit in what is read. Without faults the store only counts, which tells how
many calls a piece of work makes, so that a test can go through it failing at each:

    for nth in range(count_calls(work, MemoryStore())):
        work(FaultyStore(MemoryStore(), Plan([Fault(nth=nth)])))
"""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import attrs

from orchestra.errors import OrchestraError, StoreBusy, StoreError, StoreFailed, StoreFull
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import (
    Annotation,
    Claim,
    Command,
    Commit,
    ObjectInfo,
    Row,
    RowQuery,
    RunQuery,
    RunRow,
    Spared,
    Store,
    StoreProblem,
    StoreStats,
    spare_nothing,
)

Result = TypeVar("Result")
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


class FaultyStore(Store):
    """Another store, with things going wrong as planned. `close` never fails, so that tests can clean up."""

    def __init__(self, inner: Store, plan: FaultPlan) -> None:
        self.inner = inner
        self.plan = plan
        self.properties = inner.properties
        self.place = inner.place

    def _call(
        self, method: str, do: Callable[[], Result], bend: Callable[[Result], Result] | None = None
    ) -> Result:
        due = self.plan.strikes(method)
        self._strike(due, "before")
        result = do()
        self._strike(due, "after")
        if bend is not None and any(isinstance(point, Damage) for point in due):
            return bend(result)
        return result

    def _strike(self, due: Sequence[Fault | Kill | Damage], when: When) -> None:
        for point in due:
            if point.when != when:
                continue
            if isinstance(point, Kill):
                os.kill(os.getpid(), signal.SIGKILL)
            if isinstance(point, Fault):
                raise _error(point.kind, self.place)

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        return self._call("claim", lambda: self.inner.claim(run, owner, new=new))

    def release(self, claim: Claim) -> None:
        self._call("release", lambda: self.inner.release(claim))

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        return self._call("commit", lambda: self.inner.commit(commits, patient=patient))

    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        self._call("put_objects", lambda: self.inner.put_objects(objects))

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        return self._call("get_objects", lambda: self.inner.get_objects(digests), self._bend_objects)

    def objects(self) -> Iterator[ObjectInfo]:
        return self._call("objects", self.inner.objects)

    def run(self, run: RunId) -> RunRow | None:
        return self._call("run", lambda: self.inner.run(run))

    def runs(self, query: RunQuery) -> list[RunRow]:
        return self._call("runs", lambda: self.inner.runs(query))

    def rows(self, query: RowQuery) -> list[Row]:
        return self._call("rows", lambda: self.inner.rows(query), self._bend_rows)

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        return self._call("find", lambda: self.inner.find(low, high, limit))

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        return self._call("send", lambda: self.inner.send(run, body, at))

    def commands(self, run: RunId) -> list[Command]:
        return self._call("commands", lambda: self.inner.commands(run))

    def withdraw(self, run: RunId, command: int) -> bool:
        return self._call("withdraw", lambda: self.inner.withdraw(run, command))

    def annotate(self, annotation: Annotation) -> None:
        self._call("annotate", lambda: self.inner.annotate(annotation))

    def annotations(self, run: RunId) -> list[Annotation]:
        return self._call("annotations", lambda: self.inner.annotations(run))

    def prune(self, run: RunId, seqs: Collection[int], *, spared: Spared = spare_nothing) -> int:
        return self._call("prune", lambda: self.inner.prune(run, seqs, spared=spared))

    def delete(self, run: RunId, *, spared: Spared = spare_nothing) -> bool:
        return self._call("delete", lambda: self.inner.delete(run, spared=spared))

    def sweep(
        self,
        dead: Collection[Digest],
        *,
        since: int,
        older_than: Instant,
        spared: Callable[[list[Row]], Collection[Digest]],
    ) -> int:
        return self._call(
            "sweep", lambda: self.inner.sweep(dead, since=since, older_than=older_than, spared=spared)
        )

    def last_no(self) -> int:
        return self._call("last_no", self.inner.last_no)

    def stats(self) -> StoreStats:
        return self._call("stats", self.inner.stats)

    def check(self) -> Iterator[StoreProblem]:
        return self._call("check", self.inner.check)

    def compact(self) -> None:
        self._call("compact", self.inner.compact)

    def meta(self, key: str) -> bytes | None:
        return self._call("meta", lambda: self.inner.meta(key))

    def set_meta(self, key: str, value: bytes) -> None:
        self._call("set_meta", lambda: self.inner.set_meta(key, value))

    def close(self) -> None:
        self.inner.close()

    def _bend_objects(self, found: Mapping[Digest, bytes]) -> Mapping[Digest, bytes]:
        bent = dict(found)
        for digest in sorted(digest for digest, data in found.items() if data)[:1]:
            bent[digest] = self.plan.flip(found[digest])
        return bent

    def _bend_rows(self, found: list[Row]) -> list[Row]:
        bent = list(found)
        for index in [n for n, row in enumerate(found) if row.header][:1]:
            bent[index] = attrs.evolve(found[index], header=self.plan.flip(found[index].header))
        return bent


def _error(kind: type[StoreError], place: str) -> StoreError:
    details: dict[type[StoreError], dict[str, object]] = {
        StoreFull: {"place": place, "needed": "1 MB"},
        StoreFailed: {"place": place, "reason": "input/output error"},
        StoreBusy: {"place": place, "seconds": 60},
    }
    return kind(**details.get(kind, {"place": place}))
