"""A store whose readings and removals are noted. Everything else goes straight to the store inside."""

import weakref
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any

from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import Row, RowQuery, SparedObjects, SparedRows, Store, spare_nothing
from orchestra.stores.audit.ledger import AuditLedger
from orchestra.stores.wrappers import WrappedStore


class AuditedStore(WrappedStore):
    """Another store. What is read of its snapshots or removed is noted in a ledger."""

    def __init__(self, inner: Store, ledger: AuditLedger) -> None:
        super().__init__(inner)
        self._ledger = ledger
        self._finish = weakref.finalize(self, ledger.close)  # also where nobody closes it

    def __getattr__(self, name: str) -> Any:
        """What this kind of store can do beyond the port."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    # --- reading

    def rows(self, query: RowQuery) -> list[Row]:
        self._ledger.retry()
        found = self.inner.rows(query)
        self._note(found, content=query.content)
        return found

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        self._ledger.retry()
        found = self.inner.find(low, high, limit)
        self._note(found, content=False)
        return found

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        self._ledger.retry()
        found = self.inner.get_objects(digests)
        if found:
            self._ledger.note_objects(len(found))
        return found

    def _note(self, found: list[Row], *, content: bool) -> None:
        for run, rows in groupby(found, lambda row: row.run):
            self._ledger.note_rows(run, (row.seq for row in rows), content=content)

    # --- removing

    def prune(self, run: RunId, seqs: Collection[int], *, spared: SparedRows = spare_nothing) -> int:
        removed = self.inner.prune(run, seqs, spared=spared)
        if removed:
            self._ledger.note_removal("pruned", run, seqs, removed)
        return removed

    def delete(self, run: RunId, *, spared: SparedRows = spare_nothing) -> bool:
        before = self.inner.run(run)
        removed = self.inner.delete(run, spared=spared)
        if removed:
            seqs = range(before.head + 1 if before is not None else 0)
            self._ledger.note_removal("deleted", run, seqs, len(seqs))
        return removed

    def sweep(
        self, dead: Collection[Digest], *, since: int, older_than: Instant, spared: SparedObjects
    ) -> int:
        removed = self.inner.sweep(dead, since=since, older_than=older_than, spared=spared)
        if removed:
            self._ledger.note_removal("swept", None, (), 0, removed)
        return removed

    def close(self) -> None:
        """Write down what was read, then release everything; raises `AuditFailed`."""
        self._finish.detach()
        try:
            self._ledger.close()
        finally:
            super().close()
