"""Pruning and collecting while others fork, record and collect: every order of their calls by seed.

The actors run in threads of their own, but only one call to the store is made at a time, and the seed says
whose is next. The same seed gives the same order again.
"""

import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from orchestra.checkpoint.retention.garbage import collect
from orchestra.checkpoint.retention.plan import prune_store
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.errors import MissingObject, OrchestraError, PrunedSnapshot
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.model import events as ev
from orchestra.ports.store import Commit, Store
from orchestra.testing import FaultPlan, FaultyStore
from tests.unit.checkpoint.retention.pruning import (
    States,
    Teller,
    after_grace,
    assert_chained,
    assert_whole,
    copy_of,
    days_after,
    forked,
    manager_of,
    new_store,
    recorded,
)

Result = TypeVar("Result")
Refused = PrunedSnapshot | MissingObject

RUN = RunId("a")
NOTHING = RetentionSettings(per_phase=0)


class Turns:
    """Lets actors take turns in an order that follows from the seed alone."""

    def __init__(self, seed: int, actors: int) -> None:
        self._random = random.Random(seed)
        self._pace = [self._random.choice((1, 10, 200)) for _ in range(actors)]
        self._changed = threading.Condition()
        self._playing = set(range(actors))
        self._waiting: set[int] = set()
        self._turn: int | None = None

    @contextmanager
    def of(self, actor: int) -> Iterator[None]:
        with self._changed:
            self._waiting.add(actor)
            self._choose()
            self._changed.wait_for(lambda: self._turn == actor)
            self._waiting.remove(actor)
        try:
            yield
        finally:
            with self._changed:
                self._turn = None
                self._choose()

    def finish(self, actor: int) -> None:
        with self._changed:
            self._playing.remove(actor)
            self._choose()

    def _choose(self) -> None:
        if self._turn is None and self._playing and self._waiting == self._playing:
            waiting = sorted(self._waiting)
            self._turn = self._random.choices(waiting, [self._pace[actor] for actor in waiting])[0]
            self._changed.notify_all()


class InTurn(FaultyStore):
    """One actor's view of a store. What is called from within a call belongs to it."""

    def __init__(self, inner: Store, turns: Turns, actor: int) -> None:
        super().__init__(inner, FaultPlan())
        self._turns, self._actor, self._inside = turns, actor, False

    def _call(
        self, method: str, do: Callable[[], Result], bend: Callable[[Result], Result] | None = None
    ) -> Result:
        if self._inside:
            return do()
        with self._turns.of(self._actor):
            self._inside = True
            try:
                return do()
            finally:
                self._inside = False


def play(store: Store, seed: int, *actors: Callable[[Store], Any]) -> list[Any]:
    """Let the actors work on a store at the same time; gives back what each made of it."""
    turns = Turns(seed, len(actors))

    def work(place: int) -> Any:
        try:
            return actors[place](InTurn(store, turns, place))
        finally:
            turns.finish(place)

    with ThreadPoolExecutor(len(actors)) as pool:
        return list(pool.map(work, range(len(actors))))


def pruning(store: Store) -> None:
    """Prune and collect as hard as one can."""
    prune_store(Archive(store), NOTHING, now=days_after(1))
    collect(Archive(store), now=after_grace(), grace_seconds=0)


def forking(seq: int) -> Callable[[Store], States | Refused]:
    def work(store: Store) -> States | Refused:
        try:
            return forked(store, "a", seq, "b", 2)
        except (PrunedSnapshot, MissingObject) as refused:
            return refused

    return work


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store("memory", tmp_path_factory.mktemp("template")) as store:
        recorded(store, ("a", 70, "failed"), ("x", 40, "completed"), seed=4, rollbacks=0)
        store.delete(RunId("x"))
        yield store


def check_fork(store: Store, fork: States | Refused) -> bool:
    """Whether there is a fork. If so it is whole, leads to its parent, and stays so when pruned once more."""
    if isinstance(fork, dict):
        assert_whole(store, fork)
        pruning(store)
        assert_whole(store, fork)
    else:
        assert store.run(RunId("b")) is None
    assert_chained(store)
    return isinstance(fork, dict)


def test_a_fork_or_the_pruning_wins(template: Store) -> None:
    won = set()
    for seed in range(100):
        store = copy_of(template)
        fork, _ = play(store, seed, forking(1 + seed % 31), pruning)
        won.add(check_fork(store, fork))
    assert won == {True, False}


def test_a_fork_or_the_pruning_wins_on_sqlite(tmp_path: Path) -> None:
    with new_store("sqlite", tmp_path / "template") as store:
        recorded(store, ("a", 70, "failed"), seed=4, rollbacks=0)
    won = set()
    for seed in range(300):  # twelve or more, until both have won: threads have a say
        shutil.copytree(tmp_path / "template", tmp_path / str(seed))
        with new_store("sqlite", tmp_path / str(seed)) as store:
            fork, _ = play(store, seed, forking(1 + seed % 31), pruning)
            won.add(check_fork(store, fork))
        if seed >= 11 and len(won) == 2:
            break
    assert won == {True, False}


class PrunedBeforeCommit(FaultyStore):
    """Everything is pruned and collected when a fork has read its base and is about to commit."""

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        pruning(self.inner)
        return super().commit(commits, patient=patient)


@pytest.mark.parametrize("scheme", ["memory", "sqlite", "files"])
def test_a_fork_that_comes_too_late_is_refused(scheme: str, tmp_path: Path) -> None:
    with new_store(scheme, tmp_path) as store:
        recorded(store, ("a", 70, "failed"), seed=4, rollbacks=0)
        late = PrunedBeforeCommit(store, FaultPlan())
        with pytest.raises(PrunedSnapshot, match="a@20 was pruned"):
            forked(late, "a", 20, "b")
        assert store.run(RunId("b")) is None
        head = Archive(store).run(RUN).head
        assert_whole(store, forked(late, "a", head, "b", 2))
        assert_chained(store)


def going_on(store: Store) -> States:
    """Take the run over and record past a seal."""

    async def main() -> States:
        async with manager_of(store) as manager:
            teller = Teller(manager, seed=9, rollbacks=0.1)
            active = await manager.restore(RUN)
            teller.made = 1000
            await teller.record(active, ev.RunResumed(at=days_after(0)))
            for _ in range(36):
                try:
                    await teller.turn(active)
                except (PrunedSnapshot, MissingObject):
                    continue  # it wanted to roll back to what is pruned
            await manager.release(active)
            return teller.states

    return anyio.run(main)


def test_a_run_that_is_resumed_meanwhile_loses_nothing(template: Store) -> None:
    for seed in range(30):
        store = copy_of(template)
        states, _ = play(store, seed, going_on, pruning)
        assert len(states) > 30
        for place in states:
            assert not Archive(store).row(*place).pruned
        assert_chained(store)
        assert_whole(store, states)


def test_several_may_prune_and_collect_at_once(template: Store) -> None:
    calm = copy_of(template)
    pruning(calm)
    left = {info.digest for info in calm.objects()}
    for seed in range(30):
        store = copy_of(template)
        play(store, seed, pruning, pruning, pruning)
        pruning(store)
        assert {info.digest for info in store.objects()} == left
