"""A store in memory, for tests and trials. It keeps every promise of the port but to survive its process."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from orchestra.errors import OrchestraError
from orchestra.ids import Digest, Instant, RunId, wall_clock
from orchestra.ports import store as port
from orchestra.ports.store import Commit, Row, RowQuery, spare_nothing
from orchestra.stores.run_index import IndexedStore, RunIndex, strip_content


class MemoryStore(IndexedStore):
    """A store in memory. Every one is new and belongs to whoever made it."""

    properties = port.Properties(scheme="memory", durable=False, many_processes=False)

    def __init__(self, now: Callable[[], Instant] = wall_clock) -> None:
        super().__init__("memory:", now)
        self._objects: dict[Digest, tuple[bytes, Instant]] = {}
        self._meta: dict[str, bytes] = {}

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        with self._open() as index:
            return [self._commit(commit, index) for commit in commits]

    def _commit(self, commit: Commit, index: RunIndex) -> int | OrchestraError:
        verdict = index.judge(commit, self._objects.__contains__)
        if verdict is not None:
            return verdict
        if commit.objects:
            self.put_objects(commit.objects)
        index.append(commit, attrs.evolve(commit.row, no=index.last_no + 1, pruned=commit.row.patch is None))
        return index.last_no

    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        with self._open():
            at = self._now()
            for digest, data in objects:
                old = self._objects.get(digest)
                self._objects[digest] = (old[0] if old else bytes(data), at)

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        with self._open():
            return {digest: self._objects[digest][0] for digest in digests if digest in self._objects}

    def objects(self) -> Iterator[port.ObjectInfo]:
        with self._open():
            held = list(self._objects.items())
        return (port.ObjectInfo(digest=digest, size=len(data), at=at) for digest, (data, at) in held)

    def _remove_objects(self, dead: Collection[Digest], older_than: Instant) -> int:
        objects = self._objects
        doomed = [digest for digest in dead if digest in objects and objects[digest][1] < older_than]
        for digest in doomed:
            del self._objects[digest]
        return len(doomed)

    def rows(self, query: RowQuery) -> list[Row]:
        with self._open() as index:
            found = index.list_rows(query)
        return found if query.content else [strip_content(row) for row in found]

    def _remove_patches(self, run: RunId, seqs: list[int]) -> None:
        rows = self._index.runs[run].rows
        for seq in seqs:
            rows[seq] = attrs.evolve(rows[seq], patch=None, pruned=True)

    def delete(self, run: RunId, *, spared: port.SparedRows = spare_nothing) -> bool:
        with self._open() as index:
            index.refuse_owned(run)
            index.require(run)
            if spared():
                return False
            del index.runs[run]
            return True

    def stats(self) -> port.StoreStats:
        with self._open() as index:
            rows = (row for entry in index.runs.values() for row in entry.rows)
            size = sum(len(row.header) + len(row.patch or b"") for row in rows)
            return self._stats(row_bytes=size, file_bytes=0)

    def check(self) -> Iterator[port.StoreProblem]:
        with self._open():
            return iter(())

    def meta(self, key: str) -> bytes | None:
        with self._open():
            return self._meta.get(key)

    def set_meta(self, key: str, value: bytes) -> None:
        with self._open():
            self._meta[key] = bytes(value)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._index, self._objects = RunIndex(self.place), {}
