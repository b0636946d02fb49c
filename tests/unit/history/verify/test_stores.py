"""Verifying stores that say something else, fail, or move on meanwhile."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs
import pytest

from orchestra.errors import Damaged
from orchestra.history.archive import Archive
from orchestra.history.verify.report import Finding, SnapshotSpan
from orchestra.history.verify.verifier import verify_run, verify_store
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import Row, RowQuery, RunRow, StoreProblem
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import FRAMER, copied, fork, record, rows_of

pytestmark = pytest.mark.anyio
R1, R2 = RunId("r1"), RunId("r2")


def archive(store: MemoryStore) -> Archive:
    return Archive(store, FRAMER)


def damage(store: MemoryStore) -> list[Finding]:
    return [finding for finding in verify_store(archive(store)).findings if finding.is_damage]


@pytest.fixture
def store(recorded: MemoryStore) -> MemoryStore:
    """A run with seals, patches, a rollback and large values, and a fork of it."""
    return copied(recorded)


@pytest.fixture(scope="module")
async def recorded() -> MemoryStore:
    made = MemoryStore()
    await record(made, turns=80, rollback_at=70)
    await fork(made, "r1", 50, "r2", turns=34)
    return made


class Lying(MemoryStore):
    """A store that can be made to say something else."""

    def __init__(self, base: MemoryStore) -> None:
        super().__init__()
        self._index, self._objects = base._index, base._objects
        self.run_changes: dict[str, Any] = {}
        self.lost: set[int] = set()
        self.broken: set[int] = set()
        self.problems: list[StoreProblem] = []

    def run(self, run: RunId) -> RunRow | None:
        found = super().run(run)
        return found and attrs.evolve(found, **self.run_changes)

    def rows(self, query: RowQuery) -> list[Row]:
        everything = super().rows(attrs.evolve(query, limit=None))
        found = [row for row in everything if row.seq not in self.lost][: query.limit]
        if query.content and any(row.seq in self.broken for row in found):
            raise Damaged(what="a row", reason="its row fails its check")
        return found

    def check(self) -> Iterator[StoreProblem]:
        return iter(self.problems)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"head": 79}, "beyond its head"),
        ({"head": 1 << 60}, "its newest snapshot is 80"),
        ({"digest": Digest(b"d" * 32)}, "its head"),
        ({"status": "failed"}, "its status"),
        ({"phase": None}, "its phase"),
        ({"updated_at": Instant(3)}, "time of change"),
        ({"created_at": Instant(3)}, "time of creation"),
        ({"family": R2}, "family"),
        ({"workflow": "other"}, "workflow"),
    ],
)
async def test_a_run_that_says_otherwise_than_its_head_is_named(
    store: MemoryStore, changes: dict[str, object], word: str
) -> None:
    lying = Lying(store)
    lying.run_changes = changes
    report = verify_run(archive(lying), R1)
    [found] = [finding for finding in report.findings if finding.is_damage]
    assert found.what == "run r1"
    assert word in found.reason


async def test_missing_rows_are_named_and_what_does_not_need_them_is_whole(store: MemoryStore) -> None:
    lying = Lying(store)
    lying.lost = {40, 41}
    report = verify_run(archive(lying), R1)
    [found] = report.findings
    assert found.reason == "snapshot 40 to 41 is not there"
    assert found.spans == (SnapshotSpan(run=R1, first=40, last=63),)
    assert report.whole == 80


async def test_a_missing_head_is_named(store: MemoryStore) -> None:
    lying = Lying(store)
    lying.lost = {80}
    report = verify_run(archive(lying), R1)
    assert "its head is 80, but its newest snapshot is 79" in report.findings[0].reason


async def test_rows_that_the_store_cannot_hand_out_are_one_finding(store: MemoryStore) -> None:
    lying = Lying(store)
    lying.broken = {32, 33, 50}
    report = verify_run(archive(lying), R1)
    assert [(finding.seq, finding.spans) for finding in report.findings] == [
        (32, (SnapshotSpan(run=R1, first=32, last=49), SnapshotSpan(run=R1, first=51, last=63))),
        (50, (SnapshotSpan(run=R1, first=50, last=63),)),
    ]
    assert report.unreadable == (SnapshotSpan(run=R1, first=32, last=63),)
    assert (report.rows, report.whole) == (81, 80)


async def test_what_the_store_finds_itself_is_reported(store: MemoryStore) -> None:
    lying = Lying(store)
    lying.problems = [StoreProblem(what="index", where="rows_by_no", reason="it is out of order")]
    assert [str(finding) for finding in damage(lying)] == ["damage: index rows_by_no: it is out of order"]


async def test_what_both_find_is_said_once(store: MemoryStore) -> None:
    lying = Lying(store)
    lying.broken = {60}
    lying.problems = [StoreProblem(what="row", where="r1@60", reason="its check fails")]
    assert [finding.seq for finding in damage(lying)] == [60]


async def test_a_run_that_grows_meanwhile_is_no_damage(store: MemoryStore) -> None:
    class Growing(Lying):
        def run(self, run: RunId) -> RunRow | None:
            found = super().run(run)
            self.lost = set()
            return found

    growing = Growing(store)
    growing.lost = {79, 80}  # until the run's entry is read
    assert verify_run(archive(growing), R1).findings == ()


async def test_a_run_that_is_pruned_meanwhile_is_no_damage(store: MemoryStore) -> None:
    class Pruning(Lying):
        armed = True

        def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
            if self.armed:
                self.armed = False
                self.prune(R1, range(1, 71))
                self._objects.pop(rows_of(store, "r1")[32].seal)
            return super().get_objects(digests)

    report = verify_run(archive(Pruning(store)), R1)
    assert report.is_whole
    assert report.pruned == 70


async def test_one_run_that_cannot_be_listed_does_not_hide_the_others(store: MemoryStore) -> None:
    class Unlistable(Lying):
        def runs(self, query: object) -> list[RunRow]:
            found = super().runs(query)  # type: ignore[arg-type]
            if any(row.run == R2 for row in found):
                raise Damaged(what="run r2", reason="its entry fails its check")
            return found

    report = verify_store(archive(Unlistable(store)))
    assert [run.run for run in report.runs] == [R1]
    assert [(finding.what, finding.reason) for finding in report.findings] == [
        ("run r2", "its entry fails its check")
    ]
