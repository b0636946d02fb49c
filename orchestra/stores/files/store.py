"""The `files` store: rows in a log per run, objects in files of their own, an index of both in memory."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import attrs

from orchestra.errors import BadName, Damaged, OrchestraError, StoreClosed
from orchestra.ids import DIGEST_BYTES, Digest, Instant, RunId, run_id, wall_clock
from orchestra.ports import store as port
from orchestra.ports.store import Claim, Commit, Row, RowQuery, spare_nothing
from orchestra.stores.files import disk
from orchestra.stores.files.frames import BadFrame
from orchestra.stores.files.log import SEGMENT_BYTES, RunLog, record_frame, row_frame
from orchestra.stores.files.objects import ObjectFolder
from orchestra.stores.files.root import StoreFolder
from orchestra.stores.run_index import IndexedStore, Record, RunIndex, strip_content


@attrs.define
class Batch:
    """What is on its way to the disk, and what is needed to take it back."""

    last_no: int  # before this batch
    objects: dict[Digest, bytes] = attrs.field(factory=dict)
    made: list[Digest] = attrs.field(factory=list)  # objects that were not there before
    frames: dict[RunId, list[bytes]] = attrs.field(factory=dict)
    sizes: dict[RunId, list[int]] = attrs.field(factory=dict)  # of the logs' segments before this batch

    def size(self) -> int:
        rows = sum(len(frame) for frames in self.frames.values() for frame in frames)
        return rows + sum(len(data) for data in self.objects.values())


class FilesStore(IndexedStore):
    """A store in one folder, for one process."""

    properties = port.Properties(scheme="files", durable=True, many_processes=False)

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool = False, now: Callable[[], Instant] = wall_clock
    ) -> None:
        super().__init__(os.fspath(path), now)
        self._pid = os.getpid()
        self._root = StoreFolder(self.place, create=create)
        self._objects = ObjectFolder(self._root.at("objects"), now)
        self._logs: dict[RunId, RunLog] = {}
        self._stale: set[RunId] = set()  # runs to be read again before anything else is done
        self._uncounted: str | None = None
        try:
            with disk.map_errors(self.place):
                self._objects.tidy()
                self._load()
        except BaseException:
            self._root.close()
            raise

    @contextmanager
    def _open(self, run: RunId | None = None, needed: int = 0) -> Iterator[RunIndex]:
        # A forked child shares the lock file with its parent: both writing would tear the logs.
        if os.getpid() != self._pid:
            raise StoreClosed(place=f"{self.place}, opened by the process this one was forked from,")
        with super()._open() as index, disk.map_errors(self.place, needed):
            for stale in list(self._stale):
                self._load_run(stale)
            if run is not None:
                self._refuse_damage(run)
            yield index

    def _load(self) -> None:
        for name in sorted(os.listdir(self._root.at("runs"))):
            with suppress(BadName):  # no run of ours; `check` names it
                self._load_run(run_id(name))
        try:
            noted = self._root.read_last_no()
        except BadFrame as error:
            noted, self._uncounted = 0, error.reason
        # Numbers that cannot be read are not given out again: there are fewer of them than hidden bytes.
        hidden = sum(log.hidden for log in self._logs.values())
        self._index.last_no = max(self._index.last_no, noted) + hidden

    def _load_run(self, run: RunId) -> None:
        """Read a run from disk, or forget it when it never came to a first row."""
        log = RunLog(self._root.at("runs", run), run)
        self._logs.pop(run, None)
        self._index.runs.pop(run, None)
        if not os.path.isdir(log.folder):
            self._stale.discard(run)
            return
        log.load()
        self._stale.discard(run)
        if log.entry is None and log.damage is None:
            disk.remove_tree(log.folder)
            return
        self._logs[run] = log
        if log.entry is not None:
            self._index.runs[run] = log.entry
            self._index.last_no = max(self._index.last_no, log.entry.head.no)

    def _log(self, run: RunId) -> RunLog:
        """The log of a run, which may be new; refuses one that is damaged."""
        log = self._logs.get(run)
        if log is None:
            log = self._logs[run] = RunLog(self._root.at("runs", run_id(run)), run)
        log.refuse_damage()
        return log

    def _refuse_damage(self, run: RunId) -> None:
        if run in self._logs:
            self._logs[run].refuse_damage()

    def claim(self, run: RunId, owner: str, *, new: bool = False) -> Claim:
        return super().claim(run_id(run), owner, new=new)

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        with self._open():
            if self._uncounted is not None:
                raise Damaged(what=self._root.at("last_no"), reason=self._uncounted)
            with self._batch() as batch:
                results = [self._judge(commit, batch) for commit in commits]
            return results

    def _judge(self, commit: Commit, batch: Batch) -> int | OrchestraError:
        """Judge a commit and enter it into the index and the batch."""
        index, run = self._index, commit.row.run
        try:
            self._refuse_damage(run_id(run))
        except (BadName, Damaged) as error:
            return error
        verdict = index.judge(commit, lambda digest: digest in batch.objects or self._objects.has(digest))
        if verdict is not None:
            return verdict
        row = attrs.evolve(commit.row, no=index.last_no + 1, pruned=commit.row.patch is None)
        frame = row_frame(commit, row, index.owner(run))
        batch.frames.setdefault(run, []).append(frame)
        batch.objects.update(commit.objects)
        index.append(commit, strip_content(row))
        return row.no

    @contextmanager
    def _batch(self) -> Iterator[Batch]:
        """A batch that is written when the block ends; after any error things are as they were."""
        batch = Batch(self._index.last_no)
        try:
            yield batch
            with disk.map_errors(self.place, batch.size()):
                self._objects.put(batch.objects.items(), batch.made)
                for run, frames in batch.frames.items():
                    log = self._log(run)
                    batch.sizes[run] = list(log.sizes)
                    log.append(frames)
        except BaseException:
            self._undo(batch)
            raise

    def _undo(self, batch: Batch) -> None:
        """Leave things as they were. What cannot be undone has an unknown outcome, and reading tells."""
        for run, sizes in batch.sizes.items():
            with suppress(OSError):
                self._logs[run].undo(sizes)
        self._index.last_no = batch.last_no
        for run in batch.frames:
            self._reload(run)
        with suppress(OSError):
            self._objects.discard(batch.made)

    def _reload(self, run: RunId) -> None:
        """Read a run from disk, now or, when the disk fails again, before the next call does anything."""
        self._stale.add(run)
        with suppress(OSError):
            self._load_run(run)

    def _record(self, record: Record) -> None:
        with self._batch() as batch:
            batch.frames[record.run] = [record_frame(record)]

    def put_objects(self, objects: Iterable[tuple[Digest, bytes]]) -> None:
        with self._open(), self._batch() as batch:
            batch.objects.update(objects)

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        with self._open():
            found = {digest: self._objects.get(digest) for digest in digests if len(digest) == DIGEST_BYTES}
            return {digest: data for digest, data in found.items() if data is not None}

    def objects(self) -> Iterator[port.ObjectInfo]:
        with self._open():
            return iter(list(self._objects.infos()))

    def _remove_objects(self, dead: Collection[Digest], older_than: Instant) -> int:
        return self._objects.sweep(dead, older_than)

    def rows(self, query: RowQuery) -> list[Row]:
        with self._open() as index:
            for log in self._logs.values() if query.run is None else [self._logs.get(query.run)]:
                if log is not None and (query.last is None or query.last >= len(log.places)):
                    log.refuse_damage()
            found = index.list_rows(query)
            return self._with_contents(found) if query.content else found

    def _with_contents(self, rows: list[Row]) -> list[Row]:
        by_run: dict[RunId, list[Row]] = {}
        for row in rows:
            by_run.setdefault(row.run, []).append(row)
        full = {run: self._logs[run].contents(some) for run, some in by_run.items()}
        return [next(full[row.run]) for row in rows]

    def _remove_patches(self, run: RunId, seqs: list[int]) -> None:
        try:
            with disk.map_errors(self.place, SEGMENT_BYTES):
                self._root.with_ballast(lambda: self._logs[run].prune(set(seqs)))
        finally:
            self._reload(run)

    def delete(self, run: RunId, *, spared: port.SparedRows = spare_nothing) -> bool:
        with self._open() as index:
            index.refuse_owned(run)
            if run not in self._logs:
                index.require(run)
            if spared():
                return False
            self._root.with_ballast(lambda: self._root.note_last_no(index.last_no))
            self._root.throw_away(run)
            index.runs.pop(run, None)
            del self._logs[run]
            return True

    def stats(self) -> port.StoreStats:
        with self._open():
            row_bytes = sum(log.row_bytes() for log in self._logs.values())
            return self._stats(row_bytes=row_bytes, file_bytes=disk.size_of_tree(self.place))

    def check(self) -> Iterator[port.StoreProblem]:
        """One run or object at a time, so that others can work meanwhile."""
        with self._open():
            problems = list(self._check_rest())
            runs = list(self._logs)
            digests = [info.digest for info in self._objects.infos()]
        yield from problems
        for run in runs:
            with self._open():
                problems = list(self._logs[run].check()) if run in self._logs else []
            yield from problems
        for digest in digests:
            with self._open():
                problems = list(self._objects.check(digest))
            yield from problems

    def _check_rest(self) -> Iterator[port.StoreProblem]:
        if self._uncounted is not None:
            yield port.StoreProblem(what="file", where=self._root.at("last_no"), reason=self._uncounted)
        for name in sorted(set(os.listdir(self._root.at("runs"))) - self._logs.keys()):
            yield port.StoreProblem(what="file", where=self._root.at("runs", name), reason="it is no run")
        yield from self._objects.strangers()
        yield from self._root.check_meta()

    def meta(self, key: str) -> bytes | None:
        with self._open():
            return self._root.read_meta(key)

    def set_meta(self, key: str, value: bytes) -> None:
        with self._open(needed=len(value)):
            self._root.write_meta(key, value)

    def close(self) -> None:
        if os.getpid() != self._pid:
            return  # the parent's to close
        with self._lock:
            if not self._closed:
                self._closed = True
                self._root.close()
