"""A store whose readings and removals are noted. Everything else goes straight to the store inside."""

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from orchestra.errors import OrchestraError
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import (
    Annotation,
    Claim,
    Command,
    Commit,
    ObjectInfo,
    Problem,
    Row,
    RowQuery,
    RunQuery,
    RunRow,
    Spared,
    Store,
    StoreStats,
    nothing_spared,
)
from orchestra.stores.audit.ledger import Ledger


class AuditedStore(Store):
    """Another store. What is read of its snapshots or removed is noted in a ledger."""

    def __init__(self, inner: Store, ledger: Ledger) -> None:
        self._inner, self._ledger = inner, ledger
        self.properties = inner.properties
        self.place = inner.place
        self._finish = weakref.finalize(self, ledger.close)  # also where nobody closes it

    def __getattr__(self, name: str) -> Any:
        """What this kind of store can do beyond the port."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    # --- reading

    def rows(self, query: RowQuery) -> list[Row]:
        self._ledger.ready()
        found = self._inner.rows(query)
        self._note(found, content=query.content)
        return found

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        self._ledger.ready()
        found = self._inner.find(low, high, limit)
        self._note(found, content=False)
        return found

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        self._ledger.ready()
        found = self._inner.get_objects(digests)
        if found:
            self._ledger.read_objects(len(found))
        return found

    def _note(self, found: list[Row], *, content: bool) -> None:
        for run, rows in groupby(found, lambda row: row.run):
            self._ledger.read(run, (row.seq for row in rows), content=content)

    # --- removing

    def prune(self, run: RunId, seqs: Collection[int], *, spared: Spared = nothing_spared) -> int:
        removed = self._inner.prune(run, seqs, spared=spared)
        if removed:
            self._ledger.removed("pruned", run, seqs, removed)
        return removed

    def delete(self, run: RunId, *, spared: Spared = nothing_spared) -> bool:
        before = self._inner.run(run)
        removed = self._inner.delete(run, spared=spared)
        if removed:
            seqs = range(before.head + 1 if before is not None else 0)
            self._ledger.removed("deleted", run, seqs, len(seqs))
        return removed

    def sweep(
        self,
        dead: Collection[Digest],
        *,
        since: int,
        older_than: Instant,
        spared: Callable[[list[Row]], Collection[Digest]],
    ) -> int:
        removed = self._inner.sweep(dead, since=since, older_than=older_than, spared=spared)
        if removed:
            self._ledger.removed("swept", None, (), 0, removed)
        return removed

    # --- everything else

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

    def check(self) -> Iterator[Problem]:
        return self._inner.check()

    def compact(self) -> None:
        self._inner.compact()

    def meta(self, key: str) -> bytes | None:
        return self._inner.meta(key)

    def set_meta(self, key: str, value: bytes) -> None:
        self._inner.set_meta(key, value)

    def close(self) -> None:
        """Write down what was read, then release everything; raises `AuditFailed`."""
        self._finish.detach()
        try:
            self._ledger.close()
        finally:
            self._inner.close()
