"""A store in memory, for tests and trials. It keeps every promise of the port but to survive its process."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from orchestra.errors import OrchestraError, StoreClosed
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports import store as port
from orchestra.ports.store import Annotation, Claim, Command, Commit, Row, RowQuery, spare_nothing
from orchestra.stores.run_index import IndexedStore, RunIndex, strip_content


def wall_clock() -> Instant:
    """The time now, as objects are stamped with it."""
    return Instant(time.time_ns() // 1000)


@attrs.frozen
class _Object:
    data: bytes
    at: Instant


class MemoryStore(IndexedStore):
    """A store in memory. Every one is new and belongs to whoever made it."""

    properties = port.Properties(scheme="memory", durable=False, many_processes=False)
    place = "memory:"

    def __init__(self, now: Callable[[], Instant] = wall_clock) -> None:
        self._now = now
        # Reentrant, because what `sweep` calls back may read.
        self._lock = threading.RLock()
        self._closed = False
        self._index = RunIndex(self.place)
        self._objects: dict[Digest, _Object] = {}
        self._meta: dict[str, bytes] = {}

    @contextmanager
    def _open(self, run: RunId | None = None, needed: int = 0) -> Iterator[RunIndex]:
        with self._lock:
            if self._closed:
                raise StoreClosed(place=self.place)
            yield self._index

    # --- claims and commits

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        with self._open() as index:
            claim = index.next_claim(run, owner, new=new)
            index.register(claim)
            return claim

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        with self._open():
            return [self._commit(commit) for commit in commits]

    def _commit(self, commit: Commit) -> int | OrchestraError:
        own = {digest for digest, _ in commit.objects}
        verdict = self._index.judge(commit, lambda digest: digest in self._objects or digest in own)
        if verdict is not None:
            return verdict
        no = self._index.last_no + 1
        self._put(commit.objects)
        self._index.append(commit, attrs.evolve(commit.row, no=no, pruned=commit.row.patch is None))
        return no

    # --- objects

    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        with self._open():
            self._put(objects)

    def _put(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        at = self._now()
        for digest, data in objects:
            old = self._objects.get(digest)
            self._objects[digest] = _Object(old.data if old else bytes(data), at)

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        with self._open():
            return {digest: self._objects[digest].data for digest in digests if digest in self._objects}

    def objects(self) -> Iterator[port.ObjectInfo]:
        with self._open():
            held = list(self._objects.items())
        return (port.ObjectInfo(digest=digest, size=len(kept.data), at=kept.at) for digest, kept in held)

    def _remove_objects(self, dead: Collection[Digest], older_than: Instant) -> int:
        doomed = [digest for digest in dead if digest in self._objects]
        doomed = [digest for digest in doomed if self._objects[digest].at < older_than]
        for digest in doomed:
            del self._objects[digest]
        return len(doomed)

    def rows(self, query: RowQuery) -> list[Row]:
        with self._open() as index:
            found = index.list_rows(query)
        return found if query.content else [strip_content(row) for row in found]

    # --- commands and annotations

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        with self._open() as index:
            entry = index.require(run)
            entry.add_command(Command(id=entry.last_command + 1, run=run, at=at, body=bytes(body)))
            return entry.last_command

    def withdraw(self, run: RunId, command: int) -> bool:
        with self._open() as index:
            return index.withdraw(run, command)

    def annotate(self, annotation: Annotation) -> None:
        with self._open() as index:
            index.require_snapshot(annotation).set_annotation(annotation)

    # --- removal

    def prune(self, run: RunId, seqs: Collection[int], *, spared: port.SparedRows = spare_nothing) -> int:
        with self._open() as index:
            doomed = index.rows_to_prune(run, set(seqs).difference(spared()))
            for seq in doomed:
                rows = index.runs[run].rows
                rows[seq] = attrs.evolve(rows[seq], patch=None, pruned=True)
            return len(doomed)

    def delete(self, run: RunId, *, spared: port.SparedRows = spare_nothing) -> bool:
        with self._open() as index:
            index.refuse_owned(run)
            index.require(run)
            if spared():
                return False
            del index.runs[run]
            return True

    # --- the store itself

    def stats(self) -> port.StoreStats:
        with self._open() as index:
            rows = (row for entry in index.runs.values() for row in entry.rows)
            return self._stats(
                row_bytes=sum(len(row.header) + len(row.patch or b"") for row in rows), file_bytes=0
            )

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
            self._index = RunIndex(self.place)
            self._objects = {}
