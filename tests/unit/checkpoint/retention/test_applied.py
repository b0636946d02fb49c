"""Retention carried out: what is left of runs, on every store."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import attrs
import pytest

from orchestra.checkpoint.retention.plan import apply_plan, plan_run, prune_run, prune_store
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.errors import PrunedSnapshot, UnknownRun
from orchestra.history.annotations import pin, unpin
from orchestra.history.archive import Archive
from orchestra.history.lineage import last_good
from orchestra.ids import RunId
from orchestra.model import events as ev
from orchestra.ports.store import Annotation, RowQuery, Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.samples import NOON
from tests.unit.checkpoint.retention.pruning import (
    FRAMER,
    assert_chained,
    assert_whole,
    days_after,
    forked,
    manager_of,
    new_store,
    recorded,
    whole_seqs,
)

RUN = RunId("a")
NOTHING = RetentionSettings(per_phase=0)


@pytest.fixture(params=["memory", "sqlite", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request.param, tmp_path) as store:
        yield store


def test_kept_snapshots_are_whole_and_dropped_ones_say_so(store: Store) -> None:
    states = recorded(store, ("a", 120, "completed"), ("b", 50, "failed"), ("c", 40, None), seed=3)
    states |= forked(store, "a", 40, "d", 5)
    archive = Archive(store)
    pin(store, FRAMER, RUN, 77, NOON)
    before = {run: plan_run(archive, RunId(run), NOTHING, now=days_after(1)) for run in "abcd"}
    report = prune_store(archive, NOTHING, now=days_after(1))
    assert {run.run: run.dropped for run in report.runs} == {
        run: len(each.dropped) for run, each in before.items()
    }
    assert before["a"].kept[77] == ("pin",)
    assert before["a"].kept[40] == ("fork",)
    for run, each in before.items():
        mine = {(name, seq): state for (name, seq), state in states.items() if name == run}
        assert_whole(store, mine, only=each.kept)
    assert whole_seqs(store, "c") == set(range(41))
    assert report.dropped > 40
    assert_chained(store)
    assert prune_store(archive, NOTHING, now=days_after(1)).dropped == 0


@pytest.mark.parametrize("seed", range(12))
def test_any_rules_leave_a_whole_history(seed: int) -> None:
    store = MemoryStore()
    states = recorded(store, ("a", 50 + seed * 5, "completed"), seed=seed, rollbacks=0.02 * (seed % 4))
    settings = RetentionSettings(
        days=(None, 0, 30)[seed % 3], per_phase=(None, 0, 1, 3)[seed % 4], per_run=(None, 7)[seed % 2]
    )
    archive = Archive(store)
    planned = plan_run(archive, RUN, settings, now=days_after(2))
    newest_first = sorted(planned.dropped, reverse=True)
    for count in (1, len(newest_first) // 2):  # on the way, too, what is not marked as pruned is whole
        store.prune(RUN, newest_first[:count])
        assert_whole(store, states)
    apply_plan(archive, planned)
    assert_whole(store, states)
    assert whole_seqs(store, "a") == set(planned.kept)
    assert plan_run(archive, RUN, settings, now=days_after(2)).dropped == ()
    assert_chained(store)


@pytest.mark.parametrize("seed", range(5))
def test_every_decision_is_in_a_kept_state(seed: int) -> None:
    store = MemoryStore()
    states = recorded(store, ("a", 150, "completed"), seed=seed, rollbacks=0.05)
    archive = Archive(store)
    prune_store(archive, NOTHING, now=days_after(99))
    made = {decision for state in states.values() for decision in state.decisions}
    kept = {decision for seq in whole_seqs(store, "a") for decision in archive.state(RUN, seq).decisions}
    assert made == kept
    head = set(archive.state(RUN, archive.run(RUN).head).decisions)
    assert head < made  # rollbacks undid some: the head alone would not do
    lines = [line for row in store.rows(RowQuery(run=RUN)) for line in archive.header(row).events]
    assert len([line for line in lines if line.kind == "decision_made"]) == len(made)


def test_the_last_good_stays_the_same(store: Store) -> None:
    recorded(store, ("a", 150, "failed"), seed=8)
    archive = Archive(store)
    good = last_good(archive, RUN)
    prune_store(archive, NOTHING, now=days_after(99))
    assert last_good(archive, RUN) == good


def test_a_failed_run_goes_on_after_pruning(store: Store) -> None:
    states = recorded(store, ("a", 100, "failed"), seed=8)

    async def go_on() -> None:
        async with manager_of(store) as manager:
            active = await manager.restore(RUN)
            resumed = await manager.record(active, [ev.RunResumed(at=days_after(100))])
            states[RUN, resumed.header.seq] = resumed.state
            again = await manager.rollback(active, reason="again")
            states[RUN, again.header.seq] = again.state
            with pytest.raises(PrunedSnapshot):
                await manager.rollback(active, 40, reason="too far")

    assert 40 in plan_run(Archive(store), RUN, NOTHING, now=days_after(99)).dropped
    prune_store(Archive(store), NOTHING, now=days_after(99))
    anyio.run(go_on)
    assert_whole(store, states)
    assert_chained(store)


def test_a_trial_changes_nothing(store: Store) -> None:
    recorded(store, ("a", 100, "completed"))
    archive = Archive(store)
    before = store.rows(RowQuery(run=RUN))
    trial = prune_store(archive, NOTHING, now=days_after(1), dry_run=True)
    assert store.rows(RowQuery(run=RUN)) == before
    held = store.stats().row_bytes
    real = prune_store(archive, NOTHING, now=days_after(1))
    assert attrs.evolve(real, dry_run=True) == trial
    assert real.dropped == store.stats().pruned > 0
    assert 0 < real.bytes_freed <= held - store.stats().row_bytes + 8 * real.dropped


def test_a_completed_run_goes_whole(store: Store) -> None:
    recorded(store, ("a", 40, "completed"), ("b", 80, "completed"), ("c", 5, None))
    forked(store, "b", 3, "d")
    settings = RetentionSettings(delete_on_completion=True)
    archive = Archive(store)
    trial = prune_store(archive, settings, now=days_after(1), dry_run=True)
    held = store.stats().row_bytes
    report = prune_store(archive, settings, now=days_after(1))
    assert {run.run: run.action for run in report.runs} == {
        "a": "delete",
        "b": "prune",
        "c": "keep",
        "d": "keep",
    }
    assert attrs.evolve(report, dry_run=True) == trial
    assert store.run(RUN) is None
    with pytest.raises(UnknownRun):
        plan_run(archive, RUN, settings, now=days_after(1))
    assert 0 < report.bytes_freed <= held - store.stats().row_bytes + 8 * 120
    assert_chained(store)


def test_an_unpinned_snapshot_goes(store: Store) -> None:
    recorded(store, ("a", 100, "completed"))
    archive = Archive(store)
    pin(store, FRAMER, RUN, 50, NOON)
    prune_store(archive, NOTHING, now=days_after(1))
    assert 50 in whole_seqs(store, "a")
    unpin(store, RUN, 50)
    prune_store(archive, NOTHING, now=days_after(1))
    assert 50 not in whole_seqs(store, "a")


def test_a_run_whose_pins_cannot_be_read_is_kept() -> None:
    store = MemoryStore()
    recorded(store, ("a", 40, "completed"), ("b", 100, "completed"))
    store.annotate(Annotation(run=RUN, seq=3, kind="pin", body=b"damaged"))
    report = prune_store(Archive(store), NOTHING, now=days_after(1))
    told = {run.run: run for run in report.runs}
    assert (told[RUN].action, told[RUN].dropped) == ("keep", 0)
    assert "the pin on a@3 is damaged" in told[RUN].why
    assert told[RunId("b")].dropped > 0
    assert whole_seqs(store, "a") == set(range(42))


def test_a_run_that_is_taken_over_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    recorded(store, ("a", 40, "completed"))
    settings = RetentionSettings(delete_on_completion=True)
    planned = plan_run(Archive(store), RUN, settings, now=days_after(1))
    claim = store.claim(RUN, "somebody")
    monkeypatch.setattr("orchestra.checkpoint.retention.plan.plan_run", lambda *_, **__: planned)
    report = prune_run(Archive(store), RUN, settings, now=days_after(1))
    assert (report.action, report.dropped) == ("keep", 0)
    assert "owned by somebody" in report.why
    store.release(claim)
    assert prune_run(Archive(store), RUN, settings, now=days_after(1)).action == "delete"
    assert prune_run(Archive(store), RUN, settings, now=days_after(1)).why == "it is not there any more"


def test_a_fork_that_was_not_known_when_the_store_was_looked_through_keeps_its_base() -> None:
    store = MemoryStore()
    recorded(store, ("a", 100, "completed"))
    forked(store, "a", 20, "b")
    prune_run(Archive(store), RUN, NOTHING, now=days_after(1), forked=frozenset())
    assert 20 in whole_seqs(store, "a")
    assert 21 not in whole_seqs(store, "a")


def test_a_stale_plan_does_no_harm() -> None:
    store = MemoryStore()
    states = recorded(store, ("a", 40, "failed"))
    planned = plan_run(Archive(store), RUN, NOTHING, now=days_after(1))

    async def go_on() -> None:
        async with manager_of(store) as manager:
            active = await manager.restore(RUN)
            for n in range(40):
                snapshot = await manager.record(active, [ev.Spent(at=days_after(2), tokens_in=n)])
                states[RUN, active.seq] = snapshot.state

    anyio.run(go_on)
    apply_plan(Archive(store), planned)
    assert whole_seqs(store, "a") >= set(range(41, 82))
    assert_whole(store, states)


def test_what_is_forked_or_pinned_after_the_plan_stays(store: Store) -> None:
    states = recorded(store, ("a", 100, "completed"))
    archive = Archive(store)
    planned = plan_run(archive, RUN, NOTHING, now=days_after(1))
    assert {20, 45, 50} <= set(planned.dropped)
    states |= forked(store, "a", 20, "b")
    pin(store, FRAMER, RUN, 45, NOON)
    dropped = apply_plan(archive, planned)
    whole = whole_seqs(store, "a")
    assert {*range(21), *range(32, 46)} <= whole
    assert whole.isdisjoint({21, 31, 46, 50})
    assert dropped == len(set(planned.dropped) - whole)
    assert_whole(store, states, only=whole)


@pytest.mark.parametrize("how", ["forked", "pinned"])
def test_a_run_that_is_forked_or_pinned_after_the_plan_is_not_deleted(store: Store, how: str) -> None:
    states = recorded(store, ("a", 40, "completed"))
    archive, gone = Archive(store), RetentionSettings(delete_on_completion=True)
    planned = plan_run(archive, RUN, gone, now=days_after(1))
    assert planned.action == "delete"
    if how == "forked":
        states |= forked(store, "a", 20, "b")
    else:
        pin(store, FRAMER, RUN, 40, NOON)
    assert apply_plan(archive, planned) == 0
    assert_whole(store, states)


def test_a_fork_that_comes_while_rows_go_keeps_what_is_left(store: Store) -> None:
    recorded(store, ("a", 100, "completed"))
    archive = Archive(store)
    planned = plan_run(archive, RUN, NOTHING, now=days_after(1))
    store.prune(RUN, [seq for seq in planned.dropped if seq > 25])
    forked(store, "a", 20, "b")
    apply_plan(archive, planned)
    whole = whole_seqs(store, "a")
    assert set(range(21)) <= whole
    assert whole.isdisjoint(range(21, 32))
