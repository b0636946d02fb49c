"""A store as a whole: opening, describing, checking, closing, opening again, and many threads on it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import attrs
import pytest

from orchestra.errors import StoreClosed
from orchestra.ids import Digest, RunId
from orchestra.ports.store import Annotation, RowQuery, RunQuery, Store
from orchestra.testing.contract.base import FAR, OpenStore, StoreSuite, look, open_durable
from orchestra.testing.samples import NOON, SampleRun, sample_commit, sample_object, sample_row, start_run

Work = Callable[[], None]

A = RunId("a")
WRITERS = 8
ROWS = 25

CALLS: dict[str, Callable[[Store], object]] = {
    "claim": lambda store: store.claim(A, "owner"),
    "commit": lambda store: store.commit([sample_commit(sample_row("a", 0))]),
    "put_objects": lambda store: store.put_objects([sample_object("leaf")]),
    "get_objects": lambda store: store.get_objects([sample_object("leaf")[0]]),
    "objects": lambda store: list(store.objects()),
    "run": lambda store: store.run(A),
    "runs": lambda store: store.runs(RunQuery()),
    "rows": lambda store: store.rows(RowQuery()),
    "find": lambda store: store.find(b"", b"\xff", 1),
    "send": lambda store: store.send(A, b"pause", NOON),
    "withdraw": lambda store: store.withdraw(A, 1),
    "commands": lambda store: store.commands(A),
    "annotate": lambda store: store.annotate(Annotation(run=A, seq=0, kind="note", body=b"n")),
    "annotations": lambda store: store.annotations(A),
    "prune": lambda store: store.prune(A, [0]),
    "delete": lambda store: store.delete(A),
    "sweep": lambda store: store.sweep([], since=0, older_than=FAR, spared=lambda rows: ()),
    "last_no": lambda store: store.last_no(),
    "stats": lambda store: store.stats(),
    "check": lambda store: list(store.check()),
    "compact": lambda store: store.compact(),
    "meta": lambda store: store.meta("key"),
    "set_meta": lambda store: store.set_meta("key", b"value"),
}


class LifeContract(StoreSuite):
    """Promise 4, and what a store says about itself."""

    def test_it_says_what_it_is(self, store: Store) -> None:
        assert store.properties.scheme
        assert store.place

    def test_closing_twice_is_harmless(self, open_store: OpenStore) -> None:
        store = open_store()
        store.close()
        store.close()
        with store:
            pass

    @pytest.mark.parametrize("name", CALLS)
    def test_a_closed_store_says_so(self, open_store: OpenStore, name: str) -> None:
        with open_store() as store:
            start_run(store)
        with pytest.raises(StoreClosed):
            CALLS[name](store)

    def test_every_method_is_tried_when_closed(self) -> None:
        assert set(CALLS) | {"close", "release"} == Store.__abstractmethods__

    def test_closing_with_a_claim_and_releasing_it_later(self, open_store: OpenStore) -> None:
        with open_store() as store:
            begun = SampleRun(store, "a")
        with pytest.raises(StoreClosed):
            begun.append()

    def test_facts_about_the_store(self, store: Store) -> None:
        assert store.meta("key") is None
        for value in (b"one", b"", b"\0" * 1000):
            store.set_meta("key", value)
            assert store.meta("key") == value
        store.set_meta("../Other key/雪", b"other")
        assert store.meta("../Other key/雪") == b"other"
        assert store.meta("key") == b"\0" * 1000
        assert store.meta("KEY") is None

    def test_stats_count(self, store: Store) -> None:
        empty = store.stats()
        assert (empty.runs, empty.rows, empty.pruned, empty.objects) == (0, 0, 0, 0)
        assert (empty.object_bytes, empty.row_bytes) == (0, 0)
        _fill(store)
        full = store.stats()
        assert (full.runs, full.rows, full.pruned, full.objects) == (2, 8, 1, 3)
        assert min(full.object_bytes, full.row_bytes) > 0

    def test_a_healthy_store_has_no_problems(self, store: Store) -> None:
        assert list(store.check()) == []
        _fill(store)
        assert list(store.check()) == []

    def test_compacting_changes_nothing(self, store: Store) -> None:
        runs = _fill(store)
        before = look(store)
        store.compact()
        assert look(store) == before
        assert list(store.check()) == []
        for run in runs:
            run.append()

    def test_lists_survive_changes_made_meanwhile(self, store: Store) -> None:
        """An iterator that is being read does not break, or block, what happens beside it."""
        things = [sample_object(f"object {n}") for n in range(20)]
        later = [sample_object(f"later {n}") for n in range(20)]
        store.put_objects(things)
        found = set()
        for info in store.objects():
            found.add(info.digest)
            store.put_objects([later.pop()] if later else [])
        assert found >= {digest for digest, _ in things}
        list(store.check())


class DurableContract(StoreSuite):
    """What a store that is closed and opened again remembers."""

    def test_everything_is_there_again(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            _fill(store)
            store.set_meta("key", b"value")
            before = look(store)
        for _ in range(2):
            with open_store() as store:
                after = look(store)
                assert [attrs.evolve(run, owned=True) for run in after.runs] == before.runs
                assert attrs.evolve(after, runs=before.runs) == before
                assert store.meta("key") == b"value"
                assert list(store.check()) == []

    def test_object_ages_are_there_again(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            store.put_objects([sample_object("leaf")])
            before = list(store.objects())
        with open_store() as store:
            assert list(store.objects()) == before

    def test_work_goes_on(self, open_store: OpenStore) -> None:
        last = 0
        for n in range(4):
            with open_durable(open_store) as store:
                assert store.last_no() == last
                begun = SampleRun(store, "a", new=n == 0)
                last = [row.no for row in begun.extend(3)][-1]
        with open_store() as store:
            assert [row.seq for row in store.rows(RowQuery(run=A))] == list(range(12))

    def test_repeating_after_a_crash(self, open_store: OpenStore) -> None:
        """The writer that never heard back asks again, under a new claim."""
        with open_durable(open_store) as store:
            begun = start_run(store)
            unsure = begun.commit()
            [no] = store.commit([unsure])
        with open_store() as store:
            again = store.claim(A, "owner")
            assert store.commit([attrs.evolve(unsure, fence=again.fence)]) == [no]
            assert len(store.rows(RowQuery(run=A))) == 2


def _fill(store: Store) -> list[SampleRun]:
    runs = [SampleRun(store, name) for name in "ab"]
    for n, run in enumerate(runs):
        run.append(parts={"objects": (sample_object(f"own {n}"), sample_object("shared"))})
        sent = [run.send(at=NOON + n) for n in range(2)]
        run.append(parts={"consumed": (sent[0],)})
        run.extend(2)
        run.annotate(2, "pin")
    store.prune(A, [1])
    return runs


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
        run.append(parts={"objects": (sample_object(f"{name} {n}"), sample_object(f"shared {n}"))})
    run.release()


def _rounds(done: threading.Event) -> Iterator[None]:
    """Again and again until the others are done, and once more then."""
    while not done.is_set():
        yield
    yield


def _watch(store: Store, done: threading.Event) -> None:
    """Whatever is seen has no gaps, and its objects are there."""
    for _ in _rounds(done):
        for run in store.runs(RunQuery()):
            rows = store.rows(RowQuery(run=run.run))
            assert [row.seq for row in rows] == list(range(len(rows)))
            assert len(rows) > run.head
            needed: list[Digest] = [sample_object(f"{run.run} {row.seq}")[0] for row in rows]
            assert len(store.get_objects(needed)) == len(rows)


def _follow(store: Store, done: threading.Event, followed: list[tuple[str, int]]) -> None:
    """A reader that asks for what is newer than the last it saw misses nothing."""
    after = 0
    for _ in _rounds(done):
        for row in store.rows(RowQuery(after_no=after, content=False)):
            assert row.no > after
            after = row.no
            followed.append((row.run, row.seq))


def _retain(store: Store, done: threading.Event) -> None:
    """Prunes and sweeps what nobody needs, all the time."""
    for _ in _rounds(done):
        for run in store.runs(RunQuery()):
            store.prune(run.run, range(0, run.head, 2))
        since = store.last_no()
        held = _digests(store)
        store.sweep(held, since=since, older_than=FAR, spared=lambda rows: _digests(store))


def _digests(store: Store) -> list[Digest]:
    return [info.digest for info in store.objects()]


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
