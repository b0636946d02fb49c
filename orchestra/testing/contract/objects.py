"""Objects: bytes under a digest, and how `sweep` removes those that nobody needs."""

import threading
import time
from collections.abc import Collection

import pytest

from orchestra.ids import Digest, Instant
from orchestra.ports.store import ObjectInfo, Row, RowQuery, Store
from orchestra.testing.contract.base import FAR, StoreSuite, look, sweep_all
from orchestra.testing.samples import SampleRun, numbers, sample_digest, sample_object

MB = 1024 * 1024


class ObjectContract(StoreSuite):
    """Promise 3 for objects: byte for byte, idempotent, listed."""

    @pytest.mark.parametrize("data", [b"", b"\0", b"\r\n" * 7, bytes(range(256)), b"x" * 5 * MB])
    def test_objects_come_back_exactly(self, store: Store, data: bytes) -> None:
        digest = sample_digest(len(data))
        store.put_objects([(digest, data)])
        assert store.get_objects([digest]) == {digest: data}
        begun = SampleRun(store, "a")
        other = sample_digest("committed", len(data))
        begun.append(parts={"objects": ((other, data),)})
        assert store.get_objects([digest, other]) == {digest: data, other: data}

    def test_missing_objects_are_left_out(self, store: Store) -> None:
        there, data = sample_object("there")
        store.put_objects([(there, data)])
        assert store.get_objects([sample_digest("absent"), there]) == {there: data}
        assert store.get_objects([]) == {}

    def test_many_objects_at_once(self, store: Store) -> None:
        many = dict(sample_object(f"object {n}") for n in range(1500))
        store.put_objects(iter(many.items()))
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
        thing = sample_object("leaf")
        store.put_objects([thing])
        first = _info(store, thing[0])
        _await_tick(first.at)
        store.put_objects([thing])
        second = _info(store, thing[0])
        assert second.at > first.at
        _await_tick(second.at)
        SampleRun(store, "a").append(parts={"objects": (thing,)})
        assert _info(store, thing[0]).at > second.at
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
        things = [sample_object(f"object {n}") for n in range(5)]
        store.put_objects(things)
        dead = [digest for digest, _ in things[:3]]
        assert sweep_all(store, [*dead, sample_digest("absent")]) == 3
        assert look(store).objects == dict(things[3:])
        assert sweep_all(store, dead) == 0
        store.put_objects(things[:1])
        assert store.get_objects(dead) == dict(things[:1])

    def test_the_young_stay(self, store: Store) -> None:
        old, young = sample_object("old"), sample_object("young")
        store.put_objects([old])
        _await_tick(_info(store, old[0]).at)
        store.put_objects([young])
        border = _info(store, young[0]).at
        assert sweep_all(store, [old[0], young[0]], older_than=border) == 1
        assert look(store).objects == dict([young])
        assert sweep_all(store, [young[0]], older_than=Instant(0)) == 0

    def test_the_spared_stay(self, store: Store) -> None:
        things = [sample_object(f"object {n}") for n in range(3)]
        store.put_objects(things)
        kept = things[1][0]
        dead = [digest for digest, _ in things]
        assert store.sweep(dead, since=0, older_than=FAR, spared=lambda rows: [kept]) == 2
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
        thing = sample_object("leaf")
        store.put_objects([thing])

        def spare(rows: list[Row]) -> Collection[Digest]:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.sweep([thing[0]], since=0, older_than=FAR, spared=spare)
        assert look(store).objects == dict([thing])
        SampleRun(store, "a").append()

    def test_no_commit_happens_meanwhile(self, store: Store) -> None:
        """A commit that arrives during a sweep waits, and what it brings along is there afterwards."""
        thing = sample_object("leaf")
        store.put_objects([thing])
        begun = SampleRun(store, "a")
        over: list[bool] = []
        found: list[bool] = []

        def commit() -> None:
            begun.append(parts={"objects": (thing,)})
            found.append(bool(over))

        writer = threading.Thread(target=commit)

        def spare(rows: list[Row]) -> Collection[Digest]:
            writer.start()
            for _ in range(50):
                assert store.last_no() == 0
            over.append(True)
            return ()

        assert store.sweep([thing[0]], since=0, older_than=FAR, spared=spare) == 1
        writer.join()
        assert found == [True]
        assert look(store).objects == dict([thing])

    def test_objects_outlive_their_run_until_swept(self, store: Store) -> None:
        thing = sample_object("leaf")
        begun = SampleRun(store, "a")
        begun.append(parts={"objects": (thing,)})
        begun.release()
        store.delete(begun.run)
        assert look(store).objects == dict([thing])
        assert sweep_all(store, [thing[0]]) == 1
        assert look(store).objects == {}


def _info(store: Store, digest: Digest) -> ObjectInfo:
    return next(info for info in store.objects() if info.digest == digest)


def _await_tick(at: Instant) -> None:
    """Wait until the clock shows later than `at`. A store may stamp coarsely, but not coarser than 10 ms."""
    while time.time_ns() // 1000 <= at + 10_000:
        time.sleep(0.001)
