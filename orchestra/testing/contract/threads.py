"""Many threads on one store: nobody is refused, nothing is torn, and commit numbers appear in order."""

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

from orchestra.ids import Digest
from orchestra.ports.store import Row, RowQuery, RunQuery, Store
from orchestra.testing.contract.base import FAR, StoreSuite
from orchestra.testing.samples import SampleRun, sample_object

Work = Callable[[], None]

WRITERS = 8
ROWS = 25


class ThreadContract(StoreSuite):
    """Promise 4 under load, with promises 1 and 2 watched by readers meanwhile."""

    def test_writers_and_readers_together(self, store: Store) -> None:
        done = threading.Event()
        followed: list[tuple[str, int]] = []
        readers = [partial(_watch, store, done), partial(_follow, store, done, followed)]
        writers = [partial(_write, store, f"run-{n}") for n in range(WRITERS)]
        _together(readers, writers, done)
        assert sorted(followed) == sorted((f"run-{n}", seq) for n in range(WRITERS) for seq in range(ROWS))
        assert len(followed) == len(set(followed))
        assert list(store.check()) == []

    def test_retention_beside_writers(self, store: Store) -> None:
        done = threading.Event()
        writers = [partial(_write, store, f"run-{n}") for n in range(WRITERS // 2)]
        _together([partial(_retain, store, done)], writers, done)
        for run in store.runs(RunQuery()):
            rows = store.rows(RowQuery(run=run.run))
            assert [row.seq for row in rows] == list(range(ROWS))
            assert not rows[-1].pruned
        assert list(store.check()) == []


def _write(store: Store, name: str) -> None:
    run = SampleRun(store, name)
    for n in range(ROWS):
        objects = (sample_object(f"{name} {n}"), sample_object(f"shared {n}"))
        run.append(parts={"objects": objects})
    run.release()


def _watch(store: Store, done: threading.Event) -> None:
    """Whatever is seen has no gaps, and its objects are there."""
    last = False
    while not last:
        last = done.is_set()
        for run in store.runs(RunQuery()):
            rows = store.rows(RowQuery(run=run.run))
            assert [row.seq for row in rows] == list(range(len(rows)))
            assert len(rows) > run.head
            needed: list[Digest] = [sample_object(f"{run.run} {row.seq}")[0] for row in rows]
            assert len(store.get_objects(needed)) == len(rows)


def _follow(store: Store, done: threading.Event, followed: list[tuple[str, int]]) -> None:
    """A reader that asks for what is newer than the last it saw misses nothing."""
    after, last = 0, False
    while not last:
        last = done.is_set()
        for row in store.rows(RowQuery(after_no=after, content=False)):
            assert row.no > after
            after = row.no
            followed.append((row.run, row.seq))


def _retain(store: Store, done: threading.Event) -> None:
    """Prunes and sweeps what nobody needs, all the time."""
    last = False
    while not last:
        last = done.is_set()
        for run in store.runs(RunQuery()):
            store.prune(run.run, range(0, run.head, 2))
        since = store.last_no()
        held = [info.digest for info in store.objects()]
        store.sweep(held, since=since, older_than=FAR, spared=partial(_all, held))


def _all(kept: Collection[Digest], rows: list[Row]) -> Collection[Digest]:
    return kept


def _together(readers: Sequence[Work], writers: Sequence[Work], done: threading.Event) -> None:
    """Run all at once; `done` is set when the writers are through. What any of them raised is raised here."""
    everybody = len(readers) + len(writers)
    ready = threading.Barrier(everybody)

    def start(work: Work) -> None:
        ready.wait()
        work()

    with ThreadPoolExecutor(everybody) as pool:
        reading = [pool.submit(start, work) for work in readers]
        writing = [pool.submit(start, work) for work in writers]
        wait(writing)
        done.set()
    for future in writing + reading:
        future.result()
