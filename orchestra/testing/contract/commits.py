"""Commits: whole or not at all, refused one by one, repeatable."""

import attrs
import pytest

from orchestra.errors import (
    FenceLost,
    HeadMoved,
    MissingObject,
    OrchestraError,
    PrunedSnapshot,
    RunExists,
    UnknownSnapshot,
)
from orchestra.ids import Fence, RunId
from orchestra.ports.store import RowQuery, Store
from orchestra.testing.contract.base import StoreSuite, existing_run, look, sweep_all
from orchestra.testing.samples import (
    NOON,
    SampleRun,
    numbers,
    sample_commit,
    sample_object,
    sample_row,
    start_run,
)

AWKWARD = ("a,b", 'quo"ted', "it's", "zwölf", "雪", "", " ", "%", "_", "back\\slash", "[1]", "null")


class CommitContract(StoreSuite):
    """Promises 1 and 2: what a commit does, and that a refused one does nothing."""

    def test_everything_of_a_commit_is_there(self, store: Store) -> None:
        digest, data = sample_object("a leaf")
        begun = SampleRun(store, "a")
        row = begun.append(parts={"objects": ((digest, data),), "family": RunId("origin")}, phase=None)
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
        begun.append(patch=None, pruned=True)
        begun.append()
        assert [row.pruned for row in store.rows(RowQuery(run=begun.run))] == [True, False]
        assert store.rows(RowQuery(run=begun.run))[0].patch is None

    def test_a_repeated_commit_changes_nothing(self, store: Store) -> None:
        begun = start_run(store)
        commit = begun.commit(parts={"objects": (sample_object("leaf"),)})
        no = numbers(store.commit([commit]))
        before = look(store)
        assert store.commit([commit]) == no
        assert store.commit([commit, commit]) == no + no
        assert look(store) == before

    def test_the_first_commit_can_be_repeated(self, store: Store) -> None:
        commit = SampleRun(store, "a").commit()
        assert store.commit([commit]) == store.commit([commit])

    def test_an_older_row_is_not_a_repetition(self, store: Store) -> None:
        begun = start_run(store)
        old = begun.commit()
        begun.accept(old, store.commit([old])[0])
        begun.append()
        before = look(store)
        assert isinstance(store.commit([old])[0], HeadMoved)
        assert look(store) == before

    def test_an_empty_batch(self, store: Store) -> None:
        assert store.commit([]) == []

    def test_one_batch_holds_rows_of_many_runs(self, store: Store) -> None:
        runs = [SampleRun(store, name) for name in "abc"]
        commits = [run.commit() for run in runs]
        given = numbers(store.commit(commits))
        assert given == sorted(set(given))
        rows = store.rows(RowQuery(after_no=0))
        assert [(row.run, row.no) for row in rows] == list(zip("abc", given, strict=True))

    def test_one_batch_holds_several_rows_of_a_run(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        rows = [sample_row("a", 0)]
        for seq in (1, 2, 3):
            rows.append(sample_row("a", seq, rows[-1]))
        previous = [None, *rows]
        batch = [sample_commit(row, before) for row, before in zip(rows, previous, strict=False)]
        given = numbers(store.commit(batch))
        assert given == sorted(set(given))
        assert [row.digest for row in store.rows(RowQuery(run=begun.run))] == [row.digest for row in rows]

    def test_what_follows_a_refused_row_is_refused(self, store: Store) -> None:
        begun = start_run(store)
        refused = begun.commit(parts={"requires": (sample_object("absent")[0],)})
        after = sample_commit(sample_row("a", 2, refused.row), refused.row)
        before = look(store)
        results = store.commit([refused, after])
        assert [type(result) for result in results] == [MissingObject, HeadMoved]
        assert look(store) == before

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_a_zombie_is_refused_and_harms_nobody(self, store: Store, position: int) -> None:
        zombie = start_run(store, "zombie")
        zombie.release()
        owner = SampleRun(store, "zombie", new=False)
        others = [SampleRun(store, "a"), SampleRun(store, "b")]
        batch = [other.commit() for other in others]
        command = store.send(zombie.run, b"pause", NOON)
        late = zombie.commit(parts={"objects": (sample_object("late"),), "consumed": (command,)})
        batch.insert(position, late)
        results = store.commit(batch)
        lost = results.pop(position)
        assert isinstance(lost, FenceLost)
        assert (lost.data["run"], lost.data["fence"], lost.data["current"]) == ("zombie", 1, 2)
        assert len(numbers(results)) == 2
        assert store.get_objects([sample_object("late")[0]]) == {}
        assert [waiting.id for waiting in store.commands(zombie.run)] == [command]
        owner.append()

    def test_a_fence_from_the_future_is_refused(self, store: Store) -> None:
        begun = start_run(store)
        ahead = attrs.evolve(begun.commit(), fence=Fence(7))
        assert isinstance(store.commit([ahead])[0], FenceLost)

    def test_the_head_must_be_the_expected_one(self, store: Store) -> None:
        begun = start_run(store)
        moved = attrs.evolve(
            begun.commit(parts={"objects": (sample_object("late"),)}), expected=sample_object("other")[0]
        )
        before = look(store)
        assert isinstance(store.commit([moved])[0], HeadMoved)
        assert look(store) == before

    def test_a_gap_is_refused(self, store: Store) -> None:
        begun = start_run(store)
        before = look(store)
        commit = begun.commit()
        gap = attrs.evolve(commit, row=attrs.evolve(commit.row, seq=2))
        assert isinstance(store.commit([gap])[0], OrchestraError)
        assert look(store) == before

    def test_a_run_begins_once(self, store: Store) -> None:
        start_run(store)
        second = sample_commit(sample_row("a", 0, status="another"))
        before = look(store)
        assert isinstance(store.commit([second])[0], RunExists)
        assert look(store) == before

    def test_a_run_begins_at_its_beginning(self, store: Store) -> None:
        first = sample_row("a", 0)
        late = sample_commit(sample_row("a", 1, first), first)
        assert isinstance(store.commit([late])[0], OrchestraError)
        assert store.run(first.run) is None

    def test_required_objects_must_be_there(self, store: Store) -> None:
        begun = SampleRun(store, "a")
        digest, data = sample_object("needed")
        commit = begun.commit(parts={"requires": (digest,), "objects": (sample_object("own"),)})
        refused = store.commit([commit])[0]
        assert isinstance(refused, MissingObject)
        assert digest.hex()[:16] in str(refused)
        assert list(store.objects()) == []
        assert store.run(begun.run) is None
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
        commit = SampleRun(store, "a").commit(parts={"requires": (digest,)})
        assert isinstance(store.commit([commit])[0], MissingObject)

    def test_a_fork_needs_its_base_whole(self, store: Store) -> None:
        base = start_run(store, "base", rows=3)
        store.prune(base.run, [1])
        fork = SampleRun(store, "fork")
        refused = store.commit([fork.commit(parts={"whole": (base.run, 1)})])[0]
        assert isinstance(refused, PrunedSnapshot)
        assert (refused.data["run"], refused.data["seq"]) == ("base", 1)
        assert store.run(fork.run) is None
        fork.append(parts={"whole": (base.run, 2)})
        fork.append(parts={"whole": (base.run, 0)})

    @pytest.mark.parametrize("base", [("gone", 0), ("never", 0), ("short", 1)])
    def test_a_fork_needs_its_base_at_all(self, store: Store, base: tuple[RunId, int]) -> None:
        SampleRun(store, "short").append()
        gone = start_run(store, "gone")
        gone.release()
        store.delete(gone.run)
        fork = SampleRun(store, "fork")
        assert isinstance(store.commit([fork.commit(parts={"whole": base})])[0], UnknownSnapshot)
        assert store.run(fork.run) is None

    def test_numbers_grow_over_all_runs(self, store: Store) -> None:
        runs = [SampleRun(store, name) for name in "abc"]
        given = [run.append().no for _ in range(3) for run in runs]
        assert given == sorted(set(given))
        assert store.last_no() == given[-1]

    def test_numbers_never_go_back(self, store: Store) -> None:
        keep, gone = SampleRun(store, "keep"), SampleRun(store, "gone")
        keep.append()
        highest = gone.append().no
        gone.release()
        store.delete(gone.run)
        assert store.last_no() == highest
        assert keep.append().no > highest
