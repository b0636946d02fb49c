"""Pruning and collecting that fail at any call to the store: what is kept is whole, the next try finishes."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from orchestra.checkpoint.retention.garbage import collect
from orchestra.checkpoint.retention.plan import plan_run, prune_store
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.errors import StoreFailed
from orchestra.history.annotations import pin
from orchestra.history.archive import Archive
from orchestra.ids import Digest, RunId
from orchestra.ports.store import Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing import Damage, Fault, FaultPlan, FaultyStore
from orchestra.testing.faulty import count_calls
from orchestra.testing.samples import NOON
from tests.unit.checkpoint.retention.pruning import (
    FRAMER,
    States,
    after_grace,
    assert_chained,
    assert_content,
    copy_of,
    days_after,
    forked,
    new_store,
    recorded,
    whole_seqs,
)

RULES = RetentionSettings(per_phase=1)
ENDED = (RunId("a"), RunId("b"))


@attrs.frozen
class World:
    """A store with runs to prune and objects to collect, and what must be left of it."""

    store: Store
    states: States
    kept: dict[RunId, set[int]]  # by the plan
    left: set[Digest]  # after everything was done undisturbed

    def assert_kept(self, store: Store) -> None:
        """What the plan keeps for a reason of its own reads as it was recorded."""
        archive = Archive(store)
        for run, kept in self.kept.items():
            assert whole_seqs(store, run) >= kept
            for seq in [*sorted(kept)[::8], max(kept)]:
                assert archive.state(run, seq) == self.states[run, seq]
                assert_content(archive, self.states[run, seq])

    def assert_done(self, store: Store) -> None:
        """Everything is as it is when nothing went wrong."""
        assert {run: whole_seqs(store, run) for run in ENDED} == {run: self.kept[run] for run in ENDED}
        assert {info.digest for info in store.objects()} == self.left
        self.assert_kept(store)
        assert_chained(store)


def work(store: Store) -> None:
    """What is to fail."""
    archive = Archive(store)
    prune_store(archive, RULES, now=days_after(1))
    collect(archive, now=after_grace())


def prepared(store: Store) -> States:
    states = recorded(store, ("a", 70, "completed"), ("b", 66, "failed"), ("c", 5, None), seed=4, rollbacks=0)
    states |= forked(store, "a", 5, "d", 2)
    recorded(store, ("gone", 40, "completed"), seed=9)
    store.delete(RunId("gone"))
    return states


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with MemoryStore() as store:
        yield world_of(store, copy_of)


def world_of(store: Store, copied: Callable[[Store], Store]) -> World:
    states = prepared(store)
    archive = Archive(store)
    runs = {run for run, _ in states}
    kept = {run: set(plan_run(archive, run, RULES, now=days_after(1)).kept) for run in runs}
    calm = copied(store)
    work(calm)
    made = World(store, states, kept, {info.digest for info in calm.objects()})
    made.assert_done(calm)
    assert len(made.left) < len(list(store.objects()))
    return made


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failure_at_every_call(world: World, when: Literal["before", "after"]) -> None:
    calls = count_calls(work, copy_of(world.store))
    assert calls > 50
    for nth in range(calls):
        store = copy_of(world.store)
        with pytest.raises(StoreFailed):
            work(FaultyStore(store, FaultPlan([Fault(nth=nth, when=when)])))
        world.assert_kept(store)
        work(store)
        world.assert_done(store)


def test_a_flipped_bit_at_every_read(world: World) -> None:
    """Whatever cannot be read is kept; nothing fails, and the next try finishes."""
    for method in ("rows", "get_objects"):
        for nth in range(count_calls(work, copy_of(world.store), {method})):
            store = copy_of(world.store)
            work(FaultyStore(store, FaultPlan([Damage(methods={method}, nth=nth)], seed=nth)))
            world.assert_kept(store)
            work(store)
            world.assert_done(store)


def test_a_failure_at_calls_of_a_store_on_disk(tmp_path: Path) -> None:
    with new_store("sqlite", tmp_path / "template") as store:
        world = world_of(store, copy_of)
    names = (str(number) for number in range(1000))

    def fresh() -> Store:
        return new_store("sqlite", shutil.copytree(tmp_path / "template", tmp_path / next(names)))

    with fresh() as store:
        calls = count_calls(work, store)
    for nth in range(0, calls, 5):
        with fresh() as store:
            when: Any = "before" if nth % 2 else "after"
            with pytest.raises(StoreFailed):
                work(FaultyStore(store, FaultPlan([Fault(nth=nth, when=when)])))
            world.assert_kept(store)
        with new_store("sqlite", Path(store.place).parent) as store:
            work(store)
            world.assert_done(store)
            assert list(store.check()) == []


def test_a_pin_survives_every_failure(world: World) -> None:
    run, seq = RunId("a"), 20
    assert seq not in world.kept[run]
    for nth in range(0, count_calls(work, copy_of(world.store)), 4):
        store = copy_of(world.store)
        pin(store, FRAMER, run, seq, NOON)
        with suppress(StoreFailed):  # with a pin there is less to do
            work(FaultyStore(store, FaultPlan([Fault(nth=nth)])))
        work(store)
        assert Archive(store).state(run, seq) == world.states[run, seq]
