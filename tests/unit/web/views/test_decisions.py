"""The decisions of a run as the page shows them, also those that a fork brought along."""

from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.stores.memory import MemoryStore
from orchestra.web.views.snapshots import decisions
from tests.unit.checkpoint.retention.pruning import forked, recorded


def test_a_fork_begins_with_the_decisions_of_its_origin() -> None:
    with MemoryStore() as store:
        states = recorded(store, ("a", 60, "completed"), seed=5, rollbacks=0)
        states |= forked(store, "a", 40, "b", 12)
        archive = Archive(store)
        told = decisions(archive, archive.run(RunId("b")))["decisions"]
        newest = states[RunId("b"), 12].decisions
    assert [each["description"] for each in told] == [each.description for each in newest]
    brought = len(states[RunId("a"), 40].decisions)
    assert brought > 0
    assert [each["inherited"] for each in told] == [place < brought for place in range(len(told))]


def test_what_a_run_decided_itself_is_its_own() -> None:
    with MemoryStore() as store:
        recorded(store, ("a", 30, "completed"), seed=5, rollbacks=0)
        archive = Archive(store)
        told = decisions(archive, archive.run(RunId("a")))["decisions"]
    assert told
    assert not any(each["inherited"] for each in told)
