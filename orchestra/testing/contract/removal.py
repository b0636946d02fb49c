"""Removal: `prune` takes patches and keeps headers, `delete` takes whole runs."""

from contextlib import suppress

import attrs
import pytest

from orchestra.errors import RunOwned, UnknownRun
from orchestra.ids import RunId
from orchestra.ports.store import Annotation, Row, RowQuery, Store
from orchestra.testing.contract.base import OpenStore, StoreSuite, look, open_durable
from orchestra.testing.samples import NOON, SampleRun, sample_object, start_run


class Interrupted(Exception):
    """Ends a call from within."""


class PruneContract(StoreSuite):
    """Retention takes patches, never headers, never the head."""

    def test_patches_go_and_headers_stay(self, store: Store) -> None:
        begun, rows = _record(store)
        assert store.prune(begun.run, [1, 3]) == 2
        assert store.rows(RowQuery(run=begun.run)) == _prune_copies(rows, {1, 3})

    def test_the_head_is_never_prune_copies(self, store: Store) -> None:
        begun, rows = _record(store)
        assert store.prune(begun.run, range(6)) == 5
        assert store.rows(RowQuery(run=begun.run)) == _prune_copies(rows, set(range(5)))
        assert store.prune(begun.run, [5]) == 0

    def test_again_is_nothing(self, store: Store) -> None:
        begun, _ = _record(store)
        store.prune(begun.run, [1, 3])
        assert store.prune(begun.run, [1, 3]) == 0
        assert store.prune(begun.run, [1, 2]) == 1
        assert store.prune(begun.run, []) == 0

    def test_what_is_spared_stays(self, store: Store) -> None:
        begun, rows = _record(store)
        assert store.prune(begun.run, [0, 1, 3], spared=lambda: {1, 9}) == 2
        assert store.rows(RowQuery(run=begun.run)) == _prune_copies(rows, {0, 3})

    def test_who_spares_may_read(self, store: Store) -> None:
        begun, _ = _record(store)

        def spare() -> set[int]:
            return {row.seq for row in store.rows(RowQuery(run=begun.run, last=1))}

        assert store.prune(begun.run, [0, 1, 3], spared=spare) == 1

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

    def test_unknown_numbers_are_skipped(self, store: Store) -> None:
        begun, rows = _record(store)
        assert store.prune(begun.run, [-1, 99]) == 0
        assert store.rows(RowQuery(run=begun.run)) == rows

    def test_a_live_run_goes_on(self, store: Store) -> None:
        begun, rows = _record(store)
        store.prune(begun.run, [0, 4])
        later = begun.extend(2)
        assert store.prune(begun.run, [5]) == 1
        assert store.rows(RowQuery(run=begun.run)) == [*_prune_copies(rows, {0, 4, 5}), *later]

    def test_everything_else_stays(self, store: Store) -> None:
        begun, _ = _record(store)
        other, _ = _record(store, "b")
        begun.append(parts={"objects": (sample_object("leaf"),)})
        store.send(begun.run, b"pause", NOON)
        store.annotate(Annotation(run=begun.run, seq=1, kind="note", body=b"n"))
        before = look(store)
        store.prune(begun.run, range(7))
        after = look(store)
        assert attrs.evolve(after, rows=before.rows) == before
        assert [row for row in after.rows if row.run == other.run] == [
            row for row in before.rows if row.run == other.run
        ]
        assert store.stats().pruned == 6

    def test_pruning_outlives_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            begun, _ = _record(store)
            store.send(begun.run, b"pause", NOON)
            store.annotate(Annotation(run=begun.run, seq=1, kind="note", body=b"n"))
            store.prune(begun.run, [0, 2])
            before = look(store)
        with open_store() as store:
            assert attrs.evolve(look(store), runs=before.runs) == before
            assert SampleRun(store, "a", new=False).append().seq == 6


class DeleteContract(StoreSuite):
    """`delete` removes a run with its rows, commands and annotations."""

    def test_a_run_goes_whole(self, store: Store) -> None:
        other, _ = _record(store, "b")
        begun, _ = _record(store)
        store.send(begun.run, b"pause", NOON)
        store.annotate(Annotation(run=begun.run, seq=1, kind="note", body=b"n"))
        begun.release()
        store.delete(begun.run)
        assert store.run(begun.run) is None
        assert store.rows(RowQuery(run=begun.run)) == []
        assert store.commands(begun.run) == []
        assert store.annotations(begun.run) == []
        assert {row.run for row in store.rows(RowQuery(after_no=0))} == {other.run}
        other.append()

    def test_a_live_run_is_not_deleted(self, store: Store) -> None:
        begun, rows = _record(store)
        with pytest.raises(RunOwned):
            store.delete(begun.run)
        assert store.rows(RowQuery(run=begun.run)) == rows
        begun.append()

    def test_a_run_of_which_something_is_spared_stays_whole(self, store: Store) -> None:
        begun, rows = _record(store)
        store.send(begun.run, b"pause", NOON)
        begun.release()
        assert store.delete(begun.run, spared=lambda: {row.seq for row in store.rows(RowQuery())}) is False
        assert store.rows(RowQuery(run=begun.run)) == rows
        assert len(store.commands(begun.run)) == 1
        assert store.delete(begun.run, spared=set) is True
        assert store.run(begun.run) is None

    def test_an_unknown_run_cannot_be_deleted(self, store: Store) -> None:
        with pytest.raises(UnknownRun):
            store.delete(RunId("absent"))

    def test_a_deleted_run_can_begin_again(self, store: Store) -> None:
        begun, _ = _record(store)
        store.send(begun.run, b"pause", NOON)
        store.annotate(Annotation(run=begun.run, seq=0, kind="note", body=b"n"))
        begun.release()
        store.delete(begun.run)
        again = SampleRun(store, "a")
        assert again.claim.fence == 1
        row = again.append()
        assert store.rows(RowQuery(run=again.run)) == [row]
        assert store.commands(again.run) == []
        assert store.annotations(again.run) == []

    def test_deletion_outlives_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            SampleRun(store, "keep").append()
            begun, rows = _record(store)
            begun.release()
            store.delete(begun.run)
        with open_store() as store:
            assert store.run(begun.run) is None
            assert store.last_no() == rows[-1].no
            assert SampleRun(store, "a").append().no > rows[-1].no


def _record(store: Store, run: str = "a") -> tuple[SampleRun, list[Row]]:
    begun = SampleRun(store, run)
    return begun, begun.extend(6)


def _prune_copies(rows: list[Row], seqs: set[int]) -> list[Row]:
    return [attrs.evolve(row, patch=None, pruned=True) if row.seq in seqs else row for row in rows]
