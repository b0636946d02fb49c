"""Garbage collection: what nobody needs goes, what anybody may need stays."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from orchestra.checkpoint.commit import ActiveRun, TurnMaker
from orchestra.checkpoint.retention.garbage import GarbageReport, collect
from orchestra.checkpoint.retention.plan import prune_store
from orchestra.checkpoint.settings import CheckpointSettings, RetentionSettings
from orchestra.codec import cbor
from orchestra.codec.address import Addresser
from orchestra.errors import MissingObject
from orchestra.history.archive import Archive
from orchestra.ids import Digest, Instant, RunId, run_id
from orchestra.model import events as ev
from orchestra.model.apply.apply import begin
from orchestra.model.records import Output
from orchestra.model.state import WorkflowRef
from orchestra.model.tree import Vec
from orchestra.ports.store import Commit, Row, RowQuery, Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing import Damage, Fault, FaultPlan, FaultyStore
from orchestra.testing.samples import NOON
from tests.unit.checkpoint.retention.pruning import (
    FRAMER,
    after_grace,
    assert_chained,
    assert_whole,
    blob,
    days_after,
    forked,
    manager_of,
    new_store,
    recorded,
)

RUN = RunId("a")
NOTHING = RetentionSettings(per_phase=0)


@pytest.fixture(params=["memory", "sqlite", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request.param, tmp_path) as store:
        yield store


def digests(store: Store) -> set[Digest]:
    return {info.digest for info in store.objects()}


def swept(store: Store) -> GarbageReport:
    return collect(Archive(store), now=after_grace())


def take_away(store: Store, *gone: Digest) -> None:
    """Lose objects, as damage would."""
    store.sweep(gone, since=store.last_no(), older_than=after_grace(), spared=lambda rows: ())


# --- what stays and what goes


def test_nothing_that_was_recorded_is_garbage(store: Store) -> None:
    states = recorded(store, ("a", 80, "completed"), ("b", 40, None), seed=5)
    before = digests(store)
    report = swept(store)
    assert (report.objects, report.dead, report.removed, report.problems) == (len(before), 0, 0, ())
    assert digests(store) == before
    assert_whole(store, states)


def test_what_a_deleted_run_had_alone_goes(store: Store) -> None:
    states = recorded(store, ("b", 80, "completed"), seed=5)
    before = digests(store)
    recorded(store, ("a", 80, "completed"), seed=6)
    mine = digests(store) - before
    sizes = {info.digest: info.size for info in store.objects()}
    store.delete(RUN)
    report = swept(store)
    assert (report.dead, report.removed, report.young) == (len(mine), len(mine), 0)
    assert report.bytes_freed == sum(sizes[digest] for digest in mine)
    assert digests(store) == before
    assert_whole(store, states)


def test_what_forks_share_stays_until_the_last_of_them_goes(store: Store) -> None:
    recorded(store, ("a", 60, "completed"), seed=5, rollbacks=0)
    states = forked(store, "a", 50, "b", 3)
    store.delete(RUN)
    assert swept(store).problems == ()
    assert_whole(store, states)
    store.delete(RunId("b"))
    swept(store)
    assert digests(store) == set()


@pytest.mark.parametrize("seed", range(3))
def test_after_pruning_what_is_kept_is_whole(store: Store, seed: int) -> None:
    states = recorded(store, ("a", 140, "completed"), ("b", 50, None), seed=seed, rollbacks=0.01)
    states |= forked(store, "a", 40, "c", 2)
    prune_store(Archive(store), NOTHING, now=days_after(1))
    report = swept(store)
    assert report.removed > 0
    assert report.problems == ()
    assert_whole(store, states)
    assert_chained(store)
    assert swept(store).dead == 0


def test_a_trial_changes_nothing(store: Store) -> None:
    recorded(store, ("a", 40, "completed"))
    store.delete(RUN)
    before = digests(store)
    trial = collect(Archive(store), now=after_grace(), dry_run=True)
    assert digests(store) == before
    real = swept(store)
    assert attrs.evolve(trial, removed=real.removed, dry_run=False) == real
    assert real.removed == len(before)


def test_what_is_younger_than_the_grace_time_stays() -> None:
    clock = [NOON]
    store = MemoryStore(now=lambda: clock[0])
    store.put_objects([blob("old")])
    clock[0] = Instant(NOON + 10_000_000)
    store.put_objects([blob("young")])
    report = collect(Archive(store), now=Instant(NOON + 13_000_000), grace_seconds=5.0)
    assert (report.dead, report.young, report.removed) == (2, 1, 1)
    assert digests(store) == {blob("young")[0]}


# --- content that states refer to


def definition(text: str, *refers_to: Digest) -> tuple[Digest, bytes]:
    canonical = cbor.encode([list(refers_to), text])
    return FRAMER.address("definition", canonical), FRAMER.write("definition", canonical)


async def with_content(store: Store, run: str, workflow: Digest, *outputs: Digest) -> None:
    async with manager_of(store) as manager:
        started = ev.RunStarted(at=NOON, run=run_id(run), workflow=WorkflowRef(name="w", digest=workflow))
        active = await manager.begin(started)
        for place, digest in enumerate(outputs):
            output = Output(digest=digest, media_type="text/plain", size=3, at=NOON)
            await manager.record(active, [ev.OutputWritten(at=NOON, path=f"{place}.md", output=output)])
        await manager.record(active, [ev.RunEnded(at=NOON, outcome="completed")])
        await manager.release(active)


def test_definitions_and_outputs_stay_with_their_run(store: Store) -> None:
    prompt = blob("a prompt")
    workflow = definition("a workflow", prompt[0])
    outputs = [blob(f"output {n}") for n in range(40)]  # past a seal: some are in leaves, some in patches
    store.put_objects([prompt, workflow, *outputs, blob("stray")])
    anyio.run(with_content, store, "a", workflow[0], *(digest for digest, _ in outputs))
    assert swept(store).removed == 1
    wanted = {prompt[0], workflow[0], *(digest for digest, _ in outputs)}
    assert store.get_objects(wanted).keys() == wanted
    prune_store(Archive(store), NOTHING, now=days_after(1))
    assert swept(store).problems == ()
    assert store.get_objects(wanted).keys() == wanted
    store.delete(RUN)
    swept(store)
    assert digests(store) == set()


def test_a_digest_that_names_no_object_is_no_problem(store: Store) -> None:
    anyio.run(with_content, store, "a", blob("never put")[0], blob("nor this")[0])
    assert swept(store).problems == ()


def test_a_definition_whose_part_is_missing_stops_the_sweep() -> None:
    store = MemoryStore()
    missing = blob("a prompt")[0]
    workflow = definition("a workflow", missing)
    store.put_objects([workflow, blob("stray")])
    anyio.run(with_content, store, "a", workflow[0], missing)  # named as an output first, then required
    report = swept(store)
    assert f"object {missing.hex()[:16]} is missing" in report.problems[0]
    assert report.removed == 0


class Watched(FaultyStore):
    """Notes which objects are read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner, FaultPlan())
        self.read: set[Digest] = set()

    def get_objects(self, wanted: Collection[Digest]) -> Mapping[Digest, bytes]:
        self.read.update(wanted)
        return super().get_objects(wanted)


def test_large_values_are_kept_without_being_read() -> None:
    store = Watched(MemoryStore())
    states = recorded(store, ("a", 40, "completed"), seed=5)
    values = {
        task.result.digest
        for state in states.values()
        for task in state.tasks.values()
        if task.result is not None and task.result.digest is not None
    }
    store.read.clear()
    assert swept(store).dead == 0
    assert len(values) > 2
    assert store.read
    assert store.read.isdisjoint(values)
    assert values <= digests(store)


# --- unreadable is kept


def test_a_missing_object_stops_the_sweep(store: Store) -> None:
    recorded(store, ("a", 40, "completed"), ("b", 40, "completed"))
    store.put_objects([blob("stray")])
    seal = store.rows(RowQuery(run=RUN))[-1].seal
    take_away(store, seal)
    before = digests(store)
    report = swept(store)
    assert (report.dead, report.removed, report.bytes_freed) == (0, 0, 0)
    assert f"object {seal.hex()[:16]} is missing" in report.problems[0]
    assert digests(store) == before
    store.delete(RUN)  # what nobody needs may be missing
    assert swept(store).problems == ()
    assert blob("stray")[0] not in digests(store)


def reads_of(method: str) -> int:
    store = FaultyStore(_with_garbage(), FaultPlan())
    swept(store)
    return store.plan.calls[method]


def _with_garbage() -> Store:
    store = MemoryStore()
    recorded(store, ("a", 40, "completed"), ("b", 70, "completed"), seed=5)
    store.delete(RUN)
    return store


@pytest.mark.parametrize("method", ["get_objects", "rows"])
def test_a_flipped_bit_stops_the_sweep_wherever_it_is_met(method: str) -> None:
    for nth in range(reads_of(method)):
        inner = _with_garbage()
        before = digests(inner)
        damaged = FaultyStore(inner, FaultPlan([Damage(methods={method}, nth=nth)], seed=nth))
        report = swept(damaged)
        assert damaged.plan.struck
        assert report.problems
        assert report.removed == 0
        assert digests(inner) == before
        assert swept(inner).removed > 0


def test_a_store_that_fails_says_so() -> None:
    inner = _with_garbage()
    for method in ("last_no", "objects", "rows", "get_objects", "sweep"):
        with pytest.raises(Exception, match="input/output error"):
            swept(FaultyStore(inner, FaultPlan([Fault(methods={method}, nth=0)])))
    assert swept(inner).removed > 0


# --- while others work


class Meanwhile(FaultyStore):
    """Something happens just before the sweep."""

    def __init__(self, inner: Store, happens: Callable[[], object]) -> None:
        super().__init__(inner, FaultPlan())
        self._happens = happens

    def sweep(
        self,
        dead: Collection[Digest],
        *,
        since: int,
        older_than: Instant,
        spared: Callable[[list[Row]], Collection[Digest]],
    ) -> int:
        self._happens()
        return super().sweep(dead, since=since, older_than=older_than, spared=spared)


def test_what_is_needed_again_since_marking_is_spared(store: Store) -> None:
    """A run is deleted and recorded once more: the dead objects are its objects."""
    recorded(store, ("b", 5, None))
    states = recorded(store, ("a", 80, "completed"), seed=6)
    store.delete(RUN)
    again = Meanwhile(store, lambda: recorded(store, ("a", 80, "completed"), seed=6))
    report = swept(again)
    assert (report.removed, report.bytes_freed, report.problems) == (0, 0, ())
    assert report.dead > 10
    assert_whole(store, states)


def test_a_fork_since_marking_is_whole(store: Store) -> None:
    recorded(store, ("a", 140, "completed"), seed=6, rollbacks=0)
    prune_store(Archive(store), NOTHING, now=days_after(1))
    states = {}
    seq = store.rows(RowQuery(run=RUN, content=False))[-1].seq
    report = swept(Meanwhile(store, lambda: states.update(forked(store, "a", seq, "b", 40))))
    assert report.removed > 0
    assert report.problems == ()
    assert_whole(store, states)


def test_damage_that_is_met_while_sweeping_spares_everything(store: Store) -> None:
    recorded(store, ("a", 40, "completed"))
    store.delete(RUN)

    def record_and_lose() -> None:
        recorded(store, ("b", 3, None), seed=9)
        take_away(store, store.rows(RowQuery(run=RunId("b")))[0].seal)

    report = swept(Meanwhile(store, record_and_lose))
    assert report.dead > 0
    assert (report.removed, report.bytes_freed, len(report.problems)) == (0, 0, 1)


# --- a writer that stopped


def first_commit(store: Store, content: Digest) -> Commit:
    """The commit of a run that begins with an output; the content was put before."""
    claim = store.claim(RUN, "writer", new=True)
    started = ev.RunStarted(at=NOON, run=RUN, workflow=WorkflowRef(name="w", digest=content))
    state = begin(started)
    turn = TurnMaker(Addresser(), CheckpointSettings()).make_jump(
        ActiveRun(claim=claim, state=state), state, (started,), None
    )
    return attrs.evolve(turn.commit, requires=(content,))


def test_a_writer_that_stopped_goes_on_within_the_grace_time(store: Store) -> None:
    store.put_objects([blob("output")])
    commit = first_commit(store, blob("output")[0])
    now = Instant(after_grace() - 2 * 3600 * 1_000_000)
    report = collect(Archive(store), now=now)
    assert (report.dead, report.young, report.removed) == (1, 1, 0)
    assert isinstance(store.commit([commit])[0], int)
    assert swept(store).dead == 0
    assert blob("output")[0] in digests(store)


def test_a_writer_that_stopped_for_too_long_is_refused(store: Store) -> None:
    store.put_objects([blob("output")])
    commit = first_commit(store, blob("output")[0])
    assert swept(store).removed == 1
    assert isinstance(store.commit([commit])[0], MissingObject)
    assert store.run(RUN) is None
    store.put_objects([blob("output")])
    assert isinstance(store.commit([commit])[0], int)


# --- a reader that looks later


def test_a_reader_of_what_was_pruned_gets_an_error_and_no_wrong_data(store: Store) -> None:
    states = recorded(store, ("a", 200, "completed"), seed=2, rollbacks=0)
    reader = Archive(store)
    held = reader.document(RUN, 96)  # sealed: nothing but the root was fetched
    loaded = Archive(store).state(RUN, 96)
    prune_store(Archive(store), NOTHING, now=days_after(1))
    swept(store)
    state = states[RUN, 96]
    assert reader.row(RUN, 96).pruned
    assert loaded == state  # what was read whole stays
    with pytest.raises(MissingObject, match="is missing"):
        reader.loader.fetch_all(held)
    wanted = [decision.description for decision in state.decisions]
    found = [_looked_at(held["decisions"], place) for place in range(len(wanted))]
    assert None in found
    assert all(each in (None, want) for each, want in zip(found, wanted, strict=True))


def _looked_at(decisions: Vec[Any], place: int) -> str | None:
    try:
        return str(decisions[place]["description"])
    except MissingObject:
        return None
