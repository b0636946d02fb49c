"""Commits: whole or not at all, refused one by one, repeatable; and claims, the right to make them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest

from orchestra import errors
from orchestra.errors import FenceLost, OrchestraError, RunExists, RunOwned, UnknownRun
from orchestra.ids import RunId
from orchestra.ports.store import Claim, RowQuery, RunQuery, Store
from orchestra.testing import samples
from orchestra.testing.contract.base import (
    OpenStore,
    StoreSuite,
    command_ids,
    existing_run,
    look,
    open_durable,
    refuse,
    sweep_all,
)
from orchestra.testing.samples import SampleRun, numbers, sample_commit, sample_object, sample_row, start_run

RACERS = 8
AWKWARD = ("a,b", 'quo"ted', "it's", "zwölf", "雪", "", " ", "%", "_", "back\\slash", "[1]", "null")


class CommitContract(StoreSuite):
    """Promises 1 and 2: what a commit does, and that a refused one does nothing."""

    def test_everything_of_a_commit_is_there(self, store: Store) -> None:
        digest, data = sample_object("a leaf")
        parts = {"objects": ((digest, data),), "family": RunId("origin")}
        row = SampleRun(store, "a").append(parts=parts, phase=None)
        assert store.rows(RowQuery(run=row.run)) == [row]
        assert store.get_objects([digest]) == {digest: data}
        assert store.last_no() == row.no > 0
        seen = existing_run(store, row.run)
        assert (seen.run, seen.family, seen.workflow) == ("a", "origin", "code-review")
        assert (seen.status, seen.phase, seen.head, seen.digest) == ("running", None, 0, row.digest)
        assert (seen.fence, seen.owned) == (1, True)
        assert (seen.created_at, seen.updated_at) == (row.at, row.at)

    def test_the_run_follows_its_head(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        first = begun.append()
        second = begun.append(status="completed", phase="write")
        seen = existing_run(store, begun.run)
        assert (seen.status, seen.phase, seen.head, seen.digest) == ("completed", "write", 1, second.digest)
        assert (seen.created_at, seen.updated_at) == (first.at, second.at)

    def test_rows_come_back_exactly(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        rows = [
            begun.append(triggers=AWKWARD, agents=tuple(reversed(AWKWARD)), status="it's", phase="雪"),
            begun.append(triggers=(), agents=(), phase=None, marked=True),
            begun.append(header=b"", patch=b"", size=0),
            begun.append(header=bytes(range(256)), patch=b"\0\r\n\xff" * 9),
            begun.append(at=0, sealed_at=4, size=2**40),
            begun.append(patch=b"x" * 3_000_000, header=b"y" * 70_000),
        ]
        assert store.rows(RowQuery(run=begun.run)) == rows

    def test_a_row_can_arrive_without_its_patch(self, store: Store) -> None:
        """A run that was pruned elsewhere is brought in as it is."""
        begun = SampleRun(store, "a")
        rows = [begun.append(patch=None, pruned=True), begun.append()]
        assert store.rows(RowQuery(run=begun.run)) == rows
        assert [row.pruned for row in rows] == [True, False]

    def test_a_repeated_commit_changes_nothing(self, store: Store, begun: SampleRun) -> None:
        commit = begun.commit(parts={"objects": (sample_object("leaf"),)})
        no = numbers(store.commit([commit]))
        before = look(store)
        assert store.commit([commit]) == no
        assert store.commit([commit, commit]) == no + no
        assert look(store) == before

    def test_the_first_commit_can_be_repeated(self, store: Store) -> None:
        commit = SampleRun(store, "a").commit()
        assert store.commit([commit]) == store.commit([commit])

    def test_an_older_row_is_not_a_repetition(self, store: Store, begun: SampleRun) -> None:
        old = begun.commit()
        begun.accept(old, store.commit([old])[0])
        begun.append()
        refuse(store, old, errors.HeadMoved)

    def test_an_empty_batch(self, store: Store) -> None:
        assert store.commit([]) == []

    def test_one_batch_holds_rows_of_many_runs(self, store: Store) -> None:
        given = numbers(store.commit([SampleRun(store, name).commit() for name in "abc"]))
        assert given == sorted(set(given))
        rows = store.rows(RowQuery(after_no=0))
        assert [(row.run, row.no) for row in rows] == list(zip("abc", given, strict=True))

    def test_one_batch_holds_several_rows_of_a_run(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        rows = [sample_row("a", 0)]
        for seq in (1, 2, 3):
            rows.append(sample_row("a", seq, rows[-1]))
        batch = [sample_commit(row, before) for row, before in zip(rows, [None, *rows], strict=False)]
        given = numbers(store.commit(batch))
        assert given == sorted(set(given))
        assert [row.digest for row in store.rows(RowQuery(run=begun.run))] == [row.digest for row in rows]

    def test_what_follows_a_refused_row_is_refused(self, store: Store, begun: SampleRun) -> None:
        refused = begun.commit(parts={"requires": (sample_object("absent")[0],)})
        after = sample_commit(sample_row("a", 2, refused.row), refused.row)
        before = look(store)
        results = store.commit([refused, after])
        assert [type(result) for result in results] == [errors.MissingObject, errors.HeadMoved]
        assert look(store) == before

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_a_zombie_is_refused_and_harms_nobody(self, store: Store, position: int) -> None:
        zombie = start_run(store, "zombie")
        zombie.release()
        owner = SampleRun(store, "zombie", new=False)
        batch = [SampleRun(store, name).commit() for name in "ab"]
        command = zombie.send()
        late = zombie.commit(parts={"objects": (sample_object("late"),), "consumed": (command,)})
        batch.insert(position, late)
        results = store.commit(batch)
        lost = results.pop(position)
        assert isinstance(lost, errors.FenceLost)
        assert (lost.data["run"], lost.data["fence"], lost.data["current"]) == ("zombie", 1, 2)
        assert len(numbers(results)) == 2
        assert store.get_objects([sample_object("late")[0]]) == {}
        assert command_ids(store, zombie.run) == [command]
        owner.append()

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"fence": 7}, errors.FenceLost),
            ({"expected": sample_object("other")[0]}, errors.HeadMoved),
            ({"row": sample_row("a", 2)}, OrchestraError),
            ({"row": sample_row("a", 0, status="another"), "expected": None}, errors.RunExists),
        ],
        ids=["fence from the future", "another head", "gap", "beginning"],
    )
    def test_what_does_not_follow_is_refused(
        self, store: Store, begun: SampleRun, change: dict[str, Any], error: type[OrchestraError]
    ) -> None:
        refuse(store, attrs.evolve(begun.commit(), objects=(sample_object("late"),), **change), error)

    def test_a_run_begins_at_its_beginning(self, store: Store) -> None:
        first = sample_row("a", 0)
        refuse(store, sample_commit(sample_row("a", 1, first), first), OrchestraError)

    def test_required_objects_must_be_there(self, store: Store) -> None:
        digest, data = sample_object("needed")
        parts = {"requires": (digest,), "objects": (sample_object("own"),)}
        commit = SampleRun(store, "a").commit(parts=parts)
        assert digest.hex()[:16] in str(refuse(store, commit, errors.MissingObject))
        store.put_objects([(digest, data)])
        numbers(store.commit([commit]))

    def test_what_a_batch_wrote_earlier_is_there(self, store: Store) -> None:
        needed = sample_object("needed")
        giver, taker = SampleRun(store, "giver"), SampleRun(store, "taker")
        batch = [giver.commit(parts={"objects": (needed,)}), taker.commit(parts={"requires": (needed[0],)})]
        numbers(store.commit(batch))

    def test_swept_objects_are_not_there(self, store: Store) -> None:
        digest, data = sample_object("swept")
        store.put_objects([(digest, data)])
        sweep_all(store, [digest])
        refuse(store, SampleRun(store, "a").commit(parts={"requires": (digest,)}), errors.MissingObject)

    def test_a_fork_needs_its_base_whole(self, store: Store) -> None:
        base = start_run(store, "base", rows=3)
        store.prune(base.run, [1])
        fork = SampleRun(store, "fork")
        refused = refuse(store, fork.commit(parts={"whole": (base.run, 1)}), errors.PrunedSnapshot)
        assert (refused.data["run"], refused.data["seq"]) == ("base", 1)
        fork.append(parts={"whole": (base.run, 2)})
        fork.append(parts={"whole": (base.run, 0)})

    @pytest.mark.parametrize("base", [("gone", 0), ("never", 0), ("short", 1)])
    def test_a_fork_needs_its_base_at_all(self, store: Store, base: tuple[RunId, int]) -> None:
        start_run(store, "short")
        start_run(store, "gone").delete()
        refuse(store, SampleRun(store, "fork").commit(parts={"whole": base}), errors.UnknownSnapshot)

    def test_numbers_grow_over_all_runs(self, store: Store) -> None:
        runs = [SampleRun(store, name) for name in "abc"]
        given = [run.append().no for _ in range(3) for run in runs]
        assert given == sorted(set(given))
        assert store.last_no() == given[-1]

    def test_numbers_never_go_back(self, store: Store, begun: SampleRun) -> None:
        gone = SampleRun(store, "gone")
        highest = gone.append().no
        gone.delete()
        assert store.last_no() == highest
        assert begun.append().no > highest


class ClaimContract(StoreSuite):
    """One live claim per run; fences grow; giving up is harmless."""

    def test_a_new_run_is_written_by_its_first_commit(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        assert (begun.claim.run, begun.claim.fence, begun.claim.owner) == ("a", 1, samples.OWNER)
        assert store.run(begun.run) is None
        assert store.runs(RunQuery()) == []
        begun.append()
        seen = existing_run(store, begun.run)
        assert (seen.owner, seen.owned, seen.fence) == (samples.OWNER, True, 1)

    @pytest.mark.parametrize("new", [False, True])
    def test_a_claim_is_exclusive(self, store: Store, begun: SampleRun, new: bool) -> None:
        with pytest.raises((RunOwned, RunExists) if new else RunOwned):
            store.claim(begun.run, "another", new=new)
        begun.append()

    def test_the_owner_is_named(self, store: Store, begun: SampleRun) -> None:
        with pytest.raises(RunOwned, match=samples.OWNER) as caught:
            store.claim(begun.run, "another")
        assert caught.value.data["run"] == "a"

    def test_a_claim_on_a_run_to_come_is_exclusive(self, store: Store) -> None:
        SampleRun(store, "a")
        with pytest.raises(RunOwned):
            store.claim(RunId("a"), "another", new=True)

    def test_an_unknown_run_cannot_be_claimed(self, store: Store) -> None:
        with pytest.raises(UnknownRun):
            store.claim(RunId("absent"), samples.OWNER)
        start_run(store, "absent")  # the failed claim left nothing behind

    def test_an_existing_run_is_not_new(self, store: Store, begun: SampleRun) -> None:
        begun.release()
        with pytest.raises(RunExists):
            store.claim(begun.run, samples.OWNER, new=True)
        assert SampleRun(store, "a", new=False).claim.fence == 2

    def test_the_fence_grows_with_every_claim(self, store: Store, begun: SampleRun) -> None:
        for fence in (2, 3, 4):
            begun.release()
            begun = SampleRun(store, "a", new=False)
            assert begun.claim.fence == existing_run(store, begun.run).fence == fence
        begun.append()

    def test_release(self, store: Store, begun: SampleRun) -> None:
        begun.release()
        seen = existing_run(store, begun.run)
        assert (seen.owner, seen.owned) == (samples.OWNER, False)
        begun.release()

    def test_releasing_a_void_claim_does_nothing(self, store: Store, begun: SampleRun) -> None:
        begun.release()
        current = SampleRun(store, "a", new=False)
        begun.release()
        with pytest.raises(RunOwned):
            store.claim(current.run, "another")
        current.append()

    def test_a_run_that_never_began_can_be_begun_by_another(self, store: Store) -> None:
        first = SampleRun(store, "a")
        first.release()
        second = SampleRun(store, "a")
        first.release()
        with pytest.raises(RunOwned):
            store.claim(second.run, "another", new=True)
        second.append()

    def test_claims_of_different_runs_do_not_meet(self, store: Store) -> None:
        runs = [start_run(store, name) for name in ("a", "b", "a.b", "A")]
        runs[0].release()
        assert [store.claim(runs[0].run, "another").fence, runs[1].append().seq] == [2, 1]

    @pytest.mark.parametrize("new", [False, True])
    def test_of_many_claimants_one_wins(self, store: Store, new: bool) -> None:
        if not new:
            start_run(store).release()
        ready = threading.Barrier(RACERS)

        def race(number: int) -> Claim | RunOwned:
            ready.wait()
            try:
                return store.claim(RunId("a"), f"racer {number}", new=new)
            except RunOwned as error:
                return error

        with ThreadPoolExecutor(RACERS) as pool:
            results = list(pool.map(race, range(RACERS)))
        [won] = [result for result in results if isinstance(result, Claim)]
        SampleRun(store, "a", claim=won).append()

    def test_closing_gives_claims_up(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            before = start_run(store)
            SampleRun(store, "never-begun")
        with open_store() as store:
            seen = existing_run(store, before.run)
            assert (seen.owned, seen.owner, seen.fence) == (False, samples.OWNER, 1)
            assert SampleRun(store, "a", new=False).claim.fence == 2
            assert isinstance(store.commit([before.commit()])[0], FenceLost)
            start_run(store, "never-begun")

    def test_fences_outlive_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            start_run(store)
        with open_store() as store:
            assert SampleRun(store, "a", new=False).claim.fence == 2  # and nothing is committed under it
        with open_store() as store:
            third = SampleRun(store, "a", new=False)
            assert third.claim.fence == 3
            numbers(store.commit([third.commit()]))
