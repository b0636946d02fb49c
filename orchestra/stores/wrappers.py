"""Stores around other stores: one that hands everything on, and one of which nothing can be changed."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from orchestra.errors import OrchestraError, StoreReadOnly
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


class WrappedStore(Store):
    """Another store: everything is handed on to it. To be changed where a subclass does more."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.properties = inner.properties
        self.place = inner.place

    def rows(self, query: RowQuery) -> list[Row]:
        return self._inner.rows(query)

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        return self._inner.find(low, high, limit)

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        return self._inner.get_objects(digests)

    def prune(self, run: RunId, seqs: Collection[int], *, spared: Spared = spare_nothing) -> int:
        return self._inner.prune(run, seqs, spared=spared)

    def delete(self, run: RunId, *, spared: Spared = spare_nothing) -> bool:
        return self._inner.delete(run, spared=spared)

    def sweep(
        self,
        dead: Collection[Digest],
        *,
        since: int,
        older_than: Instant,
        spared: Callable[[list[Row]], Collection[Digest]],
    ) -> int:
        return self._inner.sweep(dead, since=since, older_than=older_than, spared=spared)

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        return self._inner.claim(run, owner, new=new)

    def release(self, claim: Claim) -> None:
        self._inner.release(claim)

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        return self._inner.commit(commits, patient=patient)

    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        self._inner.put_objects(objects)

    def objects(self) -> Iterator[ObjectInfo]:
        return self._inner.objects()

    def run(self, run: RunId) -> RunRow | None:
        return self._inner.run(run)

    def runs(self, query: RunQuery) -> list[RunRow]:
        return self._inner.runs(query)

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        return self._inner.send(run, body, at)

    def commands(self, run: RunId) -> list[Command]:
        return self._inner.commands(run)

    def withdraw(self, run: RunId, command: int) -> bool:
        return self._inner.withdraw(run, command)

    def annotate(self, annotation: Annotation) -> None:
        self._inner.annotate(annotation)

    def annotations(self, run: RunId) -> list[Annotation]:
        return self._inner.annotations(run)

    def last_no(self) -> int:
        return self._inner.last_no()

    def stats(self) -> StoreStats:
        return self._inner.stats()

    def check(self) -> Iterator[StoreProblem]:
        return self._inner.check()

    def compact(self) -> None:
        self._inner.compact()

    def meta(self, key: str) -> bytes | None:
        return self._inner.meta(key)

    def set_meta(self, key: str, value: bytes) -> None:
        self._inner.set_meta(key, value)

    def close(self) -> None:
        self._inner.close()


class ReadOnlyStore(WrappedStore):
    """Another store, of which nothing can be changed."""

    def _refused(self) -> StoreReadOnly:
        return StoreReadOnly(place=self.place, reason="it was opened for reading only")

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        raise self._refused()

    def release(self, claim: Claim) -> None:
        raise self._refused()

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        raise self._refused()

    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        raise self._refused()

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        raise self._refused()

    def withdraw(self, run: RunId, command: int) -> bool:
        raise self._refused()

    def annotate(self, annotation: Annotation) -> None:
        raise self._refused()

    def prune(self, run: RunId, seqs: Collection[int], *, spared: Spared = spare_nothing) -> int:
        raise self._refused()

    def delete(self, run: RunId, *, spared: Spared = spare_nothing) -> bool:
        raise self._refused()

    def sweep(
        self,
        dead: Collection[Digest],
        *,
        since: int,
        older_than: Instant,
        spared: Callable[[list[Row]], Collection[Digest]],
    ) -> int:
        raise self._refused()

    def compact(self) -> None:
        raise self._refused()

    def set_meta(self, key: str, value: bytes) -> None:
        raise self._refused()
