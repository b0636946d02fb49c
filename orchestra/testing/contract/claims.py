"""Claims: who may append, and how that right is taken, kept and lost."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestra.errors import FenceLost, OrchestraError, RunExists, RunOwned, UnknownRun
from orchestra.ids import RunId
from orchestra.ports.store import Claim, RunQuery, Store
from orchestra.testing.contract.base import OpenStore, StoreSuite, existing_run, open_durable
from orchestra.testing.samples import OWNER, SampleRun, numbers, start_run

RACERS = 8


class ClaimContract(StoreSuite):
    """One live claim per run; fences grow; giving up is harmless."""

    def test_a_new_run_is_written_by_its_first_commit(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        assert (begun.claim.run, begun.claim.fence, begun.claim.owner) == ("a", 1, OWNER)
        assert store.run(begun.run) is None
        assert store.runs(RunQuery()) == []
        begun.append()
        seen = existing_run(store, begun.run)
        assert (seen.owner, seen.owned, seen.fence) == (OWNER, True, 1)

    def test_a_claim_is_exclusive(self, store: Store) -> None:
        begun = start_run(store)
        for new in (False, True):
            with pytest.raises(OrchestraError) as caught:
                store.claim(begun.run, "another", new=new)
            assert isinstance(caught.value, RunOwned if not new else (RunOwned, RunExists))
        begun.append()

    def test_the_owner_is_named(self, store: Store) -> None:
        SampleRun(store, "a").append()
        with pytest.raises(RunOwned) as caught:
            store.claim(RunId("a"), "another")
        assert caught.value.data["run"] == "a"
        assert OWNER in str(caught.value)

    def test_a_claim_on_a_run_to_come_is_exclusive(self, store: Store) -> None:
        SampleRun(store, "a")
        with pytest.raises(RunOwned):
            store.claim(RunId("a"), "another", new=True)

    def test_an_unknown_run_cannot_be_claimed(self, store: Store) -> None:
        with pytest.raises(UnknownRun):
            store.claim(RunId("absent"), OWNER)
        SampleRun(store, "absent").append()  # the failed claim left nothing behind

    def test_an_existing_run_is_not_new(self, store: Store) -> None:
        begun = start_run(store)
        begun.release()
        with pytest.raises(RunExists):
            store.claim(begun.run, OWNER, new=True)
        assert SampleRun(store, "a", new=False).claim.fence == 2

    def test_the_fence_grows_with_every_claim(self, store: Store) -> None:
        begun = start_run(store)
        for fence in (2, 3, 4):
            begun.release()
            begun = SampleRun(store, "a", new=False)
            seen = existing_run(store, begun.run)
            assert begun.claim.fence == seen.fence == fence
        begun.append()

    def test_release(self, store: Store) -> None:
        begun = start_run(store)
        begun.release()
        seen = existing_run(store, begun.run)
        assert (seen.owner, seen.owned) == (OWNER, False)
        begun.release()

    def test_releasing_a_void_claim_does_nothing(self, store: Store) -> None:
        old = start_run(store)
        old.release()
        current = SampleRun(store, "a", new=False)
        old.release()
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
        runs = [SampleRun(store, name) for name in ("a", "b", "a.b", "A")]
        for run in runs:
            run.append()
        runs[0].release()
        assert [store.claim(runs[0].run, "another").fence, runs[1].append().seq] == [2, 1]

    @pytest.mark.parametrize("new", [False, True])
    def test_of_many_claimants_one_wins(self, store: Store, new: bool) -> None:
        if not new:
            begun = start_run(store)
            begun.release()
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
            assert (seen.owned, seen.owner, seen.fence) == (False, OWNER, 1)
            after = SampleRun(store, "a", new=False)
            assert after.claim.fence == 2
            assert isinstance(store.commit([before.commit()])[0], FenceLost)
            SampleRun(store, "never-begun").append()

    def test_fences_outlive_the_process(self, open_store: OpenStore) -> None:
        with open_durable(open_store) as store:
            SampleRun(store, "a").append()
        with open_store() as store:
            assert SampleRun(store, "a", new=False).claim.fence == 2  # and nothing is committed under it
        with open_store() as store:
            third = SampleRun(store, "a", new=False)
            assert third.claim.fence == 3
            numbers(store.commit([third.commit()]))
