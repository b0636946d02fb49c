"""Objects, and removal: `sweep` takes objects, `prune` patches and keeps headers, `delete` whole runs."""

import threading
import time
from collections.abc import Collection
from contextlib import suppress

import attrs
import pytest

from orchestra.errors import RunOwned, UnknownRun
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import Row, RowQuery, Store
from orchestra.testing.contract.base import FAR, OpenStore, StoreSuite, look, open_durable, sweep_all
from orchestra.testing.samples import SampleRun, numbers, sample_digest, sample_object, start_run

MB = 1024 * 1024
LONG = 6
"""How many rows the run has of which something is removed."""


class ObjectContract(StoreSuite):
    """Promise 3 for objects: byte for byte, idempotent, listed."""

    @pytest.mark.parametrize("data", [b"", b"\0", b"\r\n" * 7, bytes(range(256)), b"x" * 5 * MB])
    def test_objects_come_back_exactly(self, store: Store, data: bytes) -> None:
        digest, other = sample_digest(len(data)), sample_digest("committed", len(data))
        store.put_objects([(digest, data)])
        assert store.get_objects([digest]) == {digest: data}
        SampleRun(store, "a").append(parts={"objects": ((other, data),)})
        assert store.get_objects([digest, other]) == {digest: data, other: data}

    def test_missing_objects_are_left_out(self, store: Store) -> None:
        there, data = sample_object("there")
        store.put_objects([(there, data)])
        assert store.get_objects([sample_digest("absent"), there]) == {there: data}
        assert store.get_objects([]) == {}

    def test_many_objects_at_once(self, store: Store) -> None:
        many = dict(_put(store, 1500))
        assert store.get_objects(many.keys()) == many
        assert {info.digest for info in store.objects()} == set(many)

    def test_the_list_has_no_bytes_but_sizes(self, store: Store) -> None:
        assert list(store.objects()) == []
        digest, data = sample_object("leaf", 1000)
        store.put_objects([(digest, data)])
        [info] = store.objects()
        assert info.digest == digest
        assert info.size > 0

    def test_writing_again_counts_as_written_now(self, store: Store) -> None:
        [thing] = _put(store, 1)
        first = _age(store, thing[0])
        store.put_objects([thing])
        second = _age(store, thing[0])
        SampleRun(store, "a").append(parts={"objects": (thing,)})
        assert _age(store, thing[0]) > second > first
        assert store.get_objects([thing[0]]) == dict([thing])

    def test_the_same_object_twice_in_a_batch(self, store: Store) -> None:
        thing = sample_object("leaf")
        store.put_objects([thing, thing])
        runs = [SampleRun(store, name) for name in "ab"]
        numbers(store.commit([run.commit(parts={"objects": (thing, thing)}) for run in runs]))
        assert [info.digest for info in store.objects()] == [thing[0]]


class SweepContract(StoreSuite):
    """What `sweep` takes, what it must leave, and what it shows its callback."""

    def test_the_dead_go(self, store: Store) -> None:
        things = _put(store, 5)
        dead = [digest for digest, _ in things[:3]]
        assert sweep_all(store, [*dead, sample_digest("absent")]) == 3
        assert look(store).objects == dict(things[3:])
        assert sweep_all(store, dead) == 0
        store.put_objects(things[:1])
        assert store.get_objects(dead) == dict(things[:1])

    def test_the_young_stay(self, store: Store) -> None:
        old, young = sample_object("old"), sample_object("young")
        store.put_objects([old])
        _age(store, old[0])
        store.put_objects([young])
        border = _age(store, young[0])
        assert sweep_all(store, [old[0], young[0]], older_than=border) == 1
        assert look(store).objects == dict([young])
        assert sweep_all(store, [young[0]], older_than=Instant(0)) == 0

    def test_the_spared_stay(self, store: Store) -> None:
        things = _put(store, 3)
        dead = [digest for digest, _ in things]
        assert store.sweep(dead, since=0, older_than=FAR, spared=lambda rows: [dead[1]]) == 2
        assert look(store).objects == dict([things[1]])

    def test_later_rows_are_handed_in(self, store: Store) -> None:
        runs = [SampleRun(store, name) for name in "ab"]
        for run in runs:
            run.append()
        since = store.last_no()
        later = [run.append() for run in runs]
        seen: list[Row] = []

        def spare(rows: list[Row]) -> Collection[Digest]:
            seen.extend(rows)
            return ()

        store.sweep([sample_digest("absent")], since=since, older_than=FAR, spared=spare)
        assert sorted(seen, key=lambda row: row.no) == later

    def test_the_callback_can_read(self, store: Store) -> None:
        thing = sample_object("needed")
        begun = SampleRun(store, "a")
        row = begun.append(parts={"objects": (thing,)})
        seen: list[object] = []

        def spare(rows: list[Row]) -> Collection[Digest]:
            seen.extend([store.rows(RowQuery(run=begun.run)), dict(store.get_objects([thing[0]]))])
            return [thing[0]]

        assert store.sweep([thing[0]], since=0, older_than=FAR, spared=spare) == 0
        assert seen == [[row], dict([thing])]

    def test_a_callback_that_fails_removes_nothing(self, store: Store) -> None:
        [thing] = _put(store, 1)

        def spare(rows: list[Row]) -> Collection[Digest]:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.sweep([thing[0]], since=0, older_than=FAR, spared=spare)
        assert look(store).objects == dict([thing])
        SampleRun(store, "a").append()

    def test_no_commit_happens_meanwhile(self, store: Store) -> None:
        """A commit that arrives during a sweep waits, and what it brings along is there afterwards."""
        [thing] = _put(store, 1)
        begun = SampleRun(store, "a")
        order: list[str] = []

        def commit() -> None:
            begun.append(parts={"objects": (thing,)})
            order.append("committed")

        writer = threading.Thread(target=commit)

        def spare(rows: list[Row]) -> Collection[Digest]:
            writer.start()
            for _ in range(50):
                assert store.last_no() == 0
            order.append("swept")
            return ()

        assert store.sweep([thing[0]], since=0, older_than=FAR, spared=spare) == 1
        writer.join()
        assert order == ["swept", "committed"]
        assert look(store).objects == dict([thing])

    def test_objects_outlive_their_run_until_swept(self, store: Store) -> None:
        thing = sample_object("leaf")
        begun = SampleRun(store, "a")
        begun.append(parts={"objects": (thing,)})
        begun.delete()
        assert look(store).objects == dict([thing])
        assert sweep_all(store, [thing[0]]) == 1
        assert look(store).objects == {}


def _put(store: Store, count: int) -> list[tuple[Digest, bytes]]:
    things = [sample_object(f"object {n}") for n in range(count)]
    store.put_objects(iter(things))
    return things


def _age(store: Store, digest: Digest) -> Instant:
    """When an object was written. Waits until the clock is past it: stamps may be as coarse as 10 ms."""
    [at] = [info.at for info in store.objects() if info.digest == digest]
    while time.time_ns() // 1000 <= at + 10_000:
        time.sleep(0.001)
    return at


class Interrupted(Exception):
    """Ends a call from within."""


class RemovalSuite(StoreSuite):
    """Each test has a run of several rows, a command and a note."""

    @pytest.fixture
    def recorded(self, store: Store) -> SampleRun:
        return _record(store)


class PruneContract(RemovalSuite):
    """Retention takes patches, never headers, never the head."""

    @pytest.mark.parametrize(
        ("asked", "spared", "gone"),
        [
            ([1, 3], [], {1, 3}),
            (range(LONG), [], set(range(LONG - 1))),  # never the head
            ([LONG - 1], [], set()),
            ([0, 1, 3], [1, 9], {0, 3}),
            ([-1, 99], [], set()),
        ],
    )
    def test_patches_go_and_headers_stay(
        self, store: Store, recorded: SampleRun, asked: list[int], spared: list[int], gone: set[int]
    ) -> None:
        rows = _rows(recorded)
        assert store.prune(recorded.run, asked, spared=lambda: spared) == len(gone)
        assert _rows(recorded) == _prune_copies(rows, gone)

    def test_again_is_nothing(self, store: Store, recorded: SampleRun) -> None:
        assert [store.prune(recorded.run, seqs) for seqs in ([1, 3], [1, 3], [1, 2], [])] == [2, 0, 1, 0]

    def test_who_spares_may_read(self, store: Store, recorded: SampleRun) -> None:
        def spare() -> set[int]:
            return {row.seq for row in store.rows(RowQuery(run=recorded.run, last=1))}

        assert store.prune(recorded.run, [0, 1, 3], spared=spare) == 1

    def test_the_newest_go_first(self, store: Store) -> None:
        run = start_run(store, "long", rows=230)
        asked = 0

        def spare() -> set[int]:
            nonlocal asked
            asked += 1
            if asked == 2:
                raise Interrupted
            return set()

        with suppress(Interrupted):  # a store that does all in one step asks only once
            store.prune(run.run, range(229), spared=spare)
        gone = [row.pruned for row in store.rows(RowQuery(run=run.run, content=False))]
        assert any(gone)
        assert gone[:-1] == sorted(gone[:-1])

    def test_a_live_run_goes_on(self, store: Store, recorded: SampleRun) -> None:
        rows = _rows(recorded)
        store.prune(recorded.run, [0, 4])
        later = recorded.extend(2)
        assert store.prune(recorded.run, [5]) == 1
        assert _rows(recorded) == [*_prune_copies(rows, {0, 4, 5}), *later]

    def test_everything_else_stays(self, store: Store, recorded: SampleRun) -> None:
        other = _record(store, "b")
        recorded.append(parts={"objects": (sample_object("leaf"),)})
        before, rows = look(store), _rows(other)
        store.prune(recorded.run, range(7))
        assert attrs.evolve(look(store), rows=before.rows) == before
        assert _rows(other) == rows
        assert store.stats().pruned == 6

    def test_pruning_outlives_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            store.prune(_record(store).run, [0, 2])
            before = look(store)
        with open_store() as store:
            assert attrs.evolve(look(store), runs=before.runs) == before
            assert SampleRun(store, "a", new=False).append().seq == LONG


class DeleteContract(RemovalSuite):
    """`delete` removes a run with its rows, commands and annotations."""

    def test_a_run_goes_whole(self, store: Store, recorded: SampleRun) -> None:
        other = _record(store, "b")
        recorded.delete()
        assert store.run(recorded.run) is None
        assert [*_rows(recorded), *store.commands(recorded.run), *store.annotations(recorded.run)] == []
        assert {row.run for row in store.rows(RowQuery(after_no=0))} == {other.run}
        other.append()

    def test_a_live_run_is_not_deleted(self, store: Store, recorded: SampleRun) -> None:
        before = look(store)
        with pytest.raises(RunOwned):
            store.delete(recorded.run)
        assert look(store) == before
        recorded.append()

    def test_a_run_of_which_something_is_spared_stays_whole(self, store: Store, recorded: SampleRun) -> None:
        recorded.release()
        before = look(store)
        assert store.delete(recorded.run, spared=lambda: {row.seq for row in store.rows(RowQuery())}) is False
        assert look(store) == before
        assert store.delete(recorded.run, spared=set) is True
        assert store.run(recorded.run) is None

    def test_an_unknown_run_cannot_be_deleted(self, store: Store) -> None:
        with pytest.raises(UnknownRun):
            store.delete(RunId("absent"))

    def test_a_deleted_run_can_begin_again(self, store: Store, recorded: SampleRun) -> None:
        recorded.delete()
        again = SampleRun(store, "a")
        assert again.claim.fence == 1
        row = again.append()
        assert _rows(again) == [row]
        assert [*store.commands(again.run), *store.annotations(again.run)] == []

    def test_deletion_outlives_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            start_run(store, "keep")
            begun = _record(store)
            last = store.last_no()
            begun.delete()
        with open_store() as store:
            assert store.run(begun.run) is None
            assert store.last_no() == last
            assert SampleRun(store, "a").append().no > last


def _record(store: Store, run: str = "a") -> SampleRun:
    begun = start_run(store, run, rows=LONG)
    begun.send()
    begun.annotate(1, "note")
    return begun


def _rows(run: SampleRun) -> list[Row]:
    return run.store.rows(RowQuery(run=run.run))


def _prune_copies(rows: list[Row], seqs: set[int]) -> list[Row]:
    return [attrs.evolve(row, patch=None, pruned=True) if row.seq in seqs else row for row in rows]
