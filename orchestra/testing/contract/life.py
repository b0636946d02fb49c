"""Opening, describing, checking, closing and opening a store again."""

from collections.abc import Callable

import attrs
import pytest

from orchestra.errors import StoreClosed
from orchestra.ids import Instant, RunId
from orchestra.ports.store import Annotation, RowQuery, RunQuery, Store
from orchestra.testing.contract.base import FAR, OpenStore, StoreSuite, look, open_durable
from orchestra.testing.samples import NOON, SampleRun, sample_commit, sample_object, sample_row, start_run

A = RunId("a")

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
        store = open_store()
        SampleRun(store, "a").append()
        store.close()
        with pytest.raises(StoreClosed):
            CALLS[name](store)

    def test_every_method_is_tried_when_closed(self) -> None:
        assert set(CALLS) | {"close", "release"} == Store.__abstractmethods__

    def test_closing_with_a_claim_and_releasing_it_later(self, open_store: OpenStore) -> None:
        store = open_store()
        begun = SampleRun(store, "a")
        store.close()
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
        assert full.object_bytes > 0
        assert full.row_bytes > 0

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
        for _ in store.check():
            pass


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
        sent = [store.send(run.run, b"pause", Instant(NOON + n)) for n in range(2)]
        run.append(parts={"consumed": (sent[0],)})
        run.extend(2)
        store.annotate(Annotation(run=run.run, seq=2, kind="pin", body=b"p"))
    store.prune(A, [1])
    return runs
