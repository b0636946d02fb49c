"""The store that forgets: everything in dictionaries, gone with the object. For tests and trials.

It honours every promise of the port except that of surviving its process, so that whatever works on it works
on the others. One lock makes each call a step of its own.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from orchestra.errors import OrchestraError, StoreClosed
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import (
    Annotation,
    Claim,
    Command,
    Commit,
    ObjectInfo,
    Properties,
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
from orchestra.stores.book import Book, columns


def wall_clock() -> Instant:
    """The time now, as objects are stamped with it."""
    return Instant(time.time_ns() // 1000)


@attrs.frozen
class _Object:
    data: bytes
    at: Instant


class MemoryStore(Store):
    """A store in memory. Every one is new and belongs to whoever made it."""

    properties = Properties(scheme="memory", durable=False, many_processes=False)
    place = "memory:"

    def __init__(self, now: Callable[[], Instant] = wall_clock) -> None:
        self._now = now
        # Reentrant, because what `sweep` calls back may read.
        self._lock = threading.RLock()
        self._closed = False
        self._book = Book(self.place)
        self._objects: dict[Digest, _Object] = {}
        self._meta: dict[str, bytes] = {}

    @contextmanager
    def _open(self) -> Iterator[Book]:
        with self._lock:
            if self._closed:
                raise StoreClosed(place=self.place)
            yield self._book

    # --- claims and commits

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        with self._open() as book:
            claim = book.may_claim(run, owner, new=new)
            book.register(claim)
            return claim

    def release(self, claim: Claim) -> None:
        with self._open() as book:
            book.release(claim)

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        with self._open():
            return [self._commit(commit) for commit in commits]

    def _commit(self, commit: Commit) -> int | OrchestraError:
        own = {digest for digest, _ in commit.objects}
        verdict = self._book.judge(commit, lambda digest: digest in self._objects or digest in own)
        if verdict is not None:
            return verdict
        no = self._book.last_no + 1
        self._put(commit.objects)
        self._book.append(commit, attrs.evolve(commit.row, no=no, pruned=commit.row.patch is None))
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

    def objects(self) -> Iterator[ObjectInfo]:
        with self._open():
            held = list(self._objects.items())
        return (ObjectInfo(digest=digest, size=len(kept.data), at=kept.at) for digest, kept in held)

    def sweep(
        self,
        dead: Collection[Digest],
        *,
        since: int,
        older_than: Instant,
        spared: Callable[[list[Row]], Collection[Digest]],
    ) -> int:
        with self._open() as book:
            kept = set(spared(book.list_rows(RowQuery(after_no=since))))
            doomed = [digest for digest in set(dead) - kept if self._old(digest, older_than)]
            for digest in doomed:
                del self._objects[digest]
            return len(doomed)

    def _old(self, digest: Digest, older_than: Instant) -> bool:
        found = self._objects.get(digest)
        return found is not None and found.at < older_than

    # --- runs and rows

    def run(self, run: RunId) -> RunRow | None:
        with self._open() as book:
            return book.run_row(book.runs[run]) if run in book.runs else None

    def runs(self, query: RunQuery) -> list[RunRow]:
        with self._open() as book:
            return book.list_runs(query)

    def rows(self, query: RowQuery) -> list[Row]:
        with self._open() as book:
            found = book.list_rows(query)
        return found if query.content else [columns(row) for row in found]

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        with self._open() as book:
            return book.find(low, high, limit)

    # --- commands and annotations

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        with self._open() as book:
            known = book.known(run)
            known.add_command(Command(id=known.last_command + 1, run=run, at=at, body=bytes(body)))
            return known.last_command

    def commands(self, run: RunId) -> list[Command]:
        with self._open() as book:
            return book.commands(run)

    def withdraw(self, run: RunId, command: int) -> bool:
        with self._open() as book:
            return book.withdraw(run, command)

    def annotate(self, annotation: Annotation) -> None:
        with self._open() as book:
            book.annotatable(annotation).set_annotation(annotation)

    def annotations(self, run: RunId) -> list[Annotation]:
        with self._open() as book:
            return book.annotations(run)

    # --- removal

    def prune(self, run: RunId, seqs: Collection[int], *, spared: Spared = spare_nothing) -> int:
        with self._open() as book:
            doomed = book.prunable(run, set(seqs).difference(spared()))
            for seq in doomed:
                rows = book.runs[run].rows
                rows[seq] = attrs.evolve(rows[seq], patch=None, pruned=True)
            return len(doomed)

    def delete(self, run: RunId, *, spared: Spared = spare_nothing) -> bool:
        with self._open() as book:
            book.refuse_owned(run)
            book.known(run)
            if spared():
                return False
            del book.runs[run]
            return True

    # --- the store itself

    def last_no(self) -> int:
        with self._open() as book:
            return book.last_no

    def stats(self) -> StoreStats:
        with self._open() as book:
            rows = [row for known in book.runs.values() for row in known.rows]
            return StoreStats(
                runs=len(book.runs),
                rows=len(rows),
                pruned=sum(row.pruned for row in rows),
                objects=len(self._objects),
                object_bytes=sum(len(kept.data) for kept in self._objects.values()),
                row_bytes=sum(len(row.header) + len(row.patch or b"") for row in rows),
                file_bytes=0,
            )

    def check(self) -> Iterator[StoreProblem]:
        with self._open():
            return iter(())

    def compact(self) -> None:
        with self._open():
            pass  # nothing here has a filesystem to give space back to

    def meta(self, key: str) -> bytes | None:
        with self._open():
            return self._meta.get(key)

    def set_meta(self, key: str, value: bytes) -> None:
        with self._open():
            self._meta[key] = bytes(value)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._book = Book(self.place)
            self._objects = {}
