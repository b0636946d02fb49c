"""What a verification finds in a run and in a store, and that it finds nothing where nothing is wrong."""

import random
from collections.abc import Collection, Mapping

import attrs
import pytest

from orchestra.codec.address import KINDS
from orchestra.codec.values import freeze
from orchestra.errors import UnknownRun
from orchestra.history.annotations import note, pin
from orchestra.history.archive import Archive
from orchestra.history.verify.report import Finding, SnapshotSpan, Spans
from orchestra.history.verify.verifier import verify_run, verify_store
from orchestra.ids import Digest, Instant, RunId
from orchestra.limits import LARGE_VALUE_BYTES
from orchestra.ports.store import Annotation
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import (
    ADDRESSER,
    FRAMER,
    copied,
    flipped,
    fork,
    objects_of,
    record,
    rows_of,
    set_object,
    set_row,
    unreadable,
)

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


# --- nothing wrong


async def test_a_whole_store_has_no_findings(store: MemoryStore) -> None:
    report = verify_store(archive(store))
    assert report.findings == ()
    assert report.is_whole
    assert all(run.head_is_whole for run in report.runs)
    assert (report.rows, report.pruned, report.orphans) == (81 + 35, 0, 0)
    assert report.objects == len(objects_of(store))
    assert {(run.run, run.head, run.whole) for run in report.runs} == {(R1, 80, 80), (R2, 34, 34)}


async def test_verifying_writes_nothing(store: MemoryStore) -> None:
    before = (dict(store._objects), list(rows_of(store, "r1")), store.last_no())
    verify_store(archive(store))
    assert before == (dict(store._objects), list(rows_of(store, "r1")), store.last_no())


async def test_progress_is_told(store: MemoryStore) -> None:
    told: list[tuple[int, int]] = []
    verify_run(archive(store), R1, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (81, 81)


async def test_every_object_is_read_once(store: MemoryStore) -> None:
    asked: list[Digest] = []

    class Counting(MemoryStore):
        def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
            asked.extend(digests)
            return store.get_objects(digests)

    counting = Counting()
    counting._index = store._index
    verify_store(archive(counting))
    # The ledger reads each object once; the replay reads at most those again.
    assert max(asked.count(digest) for digest in set(asked)) <= 2 + len(store._index.runs)


async def test_an_unknown_run_is_refused(store: MemoryStore) -> None:
    with pytest.raises(UnknownRun):
        verify_run(archive(store), RunId("nobody"))


async def test_pruned_snapshots_are_counted_and_still_proved(store: MemoryStore) -> None:
    store.prune(R1, range(33, 71))
    report = verify_run(archive(store), R1)
    assert (report.pruned, report.is_whole, report.whole) == (38, True, 80)
    set_row(store, "r1", 40, header=flipped(rows_of(store, "r1")[40].header, 100))
    assert {finding.seq for finding in verify_run(archive(store), R1).findings} == {40}


async def test_a_deleted_origin_is_a_note(store: MemoryStore) -> None:
    store.delete(R1)
    report = verify_run(archive(store), R2)
    assert report.is_whole
    [found] = report.findings
    assert (found.severity, found.run) == ("note", R2)
    assert "r1@50" in found.reason


async def test_annotations_of_a_whole_store_are_fine(store: MemoryStore) -> None:
    pin(store, FRAMER, R1, 3, Instant(1), "keep this")
    note(store, FRAMER, R1, 4, Instant(1), "odd")
    assert damage(store) == []


# --- objects


async def test_a_shared_damaged_object_names_exactly_its_snapshots(store: MemoryStore) -> None:
    seals = {row.seq: row.seal for row in rows_of(store, "r1") if row.sealed_at == row.seq}
    fork_seal = rows_of(store, "r2")[0].seal
    every = objects_of(store)
    shared = [rows_of(store, "r1")[0].seal, fork_seal, *random.Random(7).sample(sorted(every), 5)]
    for digest in dict.fromkeys(shared):
        data = every[digest]
        set_object(store, digest, flipped(data, len(data) * 8 - 3))
        report = verify_store(archive(store))
        found = [finding for finding in report.findings if finding.digest == digest]
        assert len(found) == 1, (digest.hex(), report.findings)
        named = set(found[0].snapshots)
        expected = {(run, seq) for run in (R1, R2) for seq in unreadable(store, run)}
        assert named == expected
        assert report.findings == (found[0],)
        set_object(store, digest, data)
    assert set(seals) == {0, 32, 64, 71}
    assert fork_seal not in seals.values()


async def test_the_newest_whole_ancestor_is_named(store: MemoryStore) -> None:
    newest = rows_of(store, "r1")[80].seal
    set_object(store, newest, None)
    report = verify_store(archive(store))
    damaged = [run for run in report.runs if not run.head_is_whole]
    assert [(run.run, run.head, run.whole) for run in damaged] == [(R1, 80, 70)]
    [found] = report.findings
    assert found.reason == "it is missing"
    assert found.spans == (SnapshotSpan(run=R1, first=71, last=80),)
    assert str(found).endswith("(unreadable: r1@71 to @80)")


async def test_a_damaged_large_value_names_the_snapshots_that_hold_it() -> None:
    store = MemoryStore()
    await record(store, turns=60, seed=5)
    values = sorted(digest for digest, data in objects_of(store).items() if KINDS[data[1]] == "value")[:4]
    assert values
    for digest in values:
        data = objects_of(store)[digest]
        set_object(store, digest, data[:-1])
        [found] = damage(store)
        assert [seq for _, seq in found.snapshots] == unreadable(store, "r1")
        set_object(store, digest, data)


async def test_orphans_are_counted_and_a_damaged_one_is_named(store: MemoryStore) -> None:
    large = freeze("x" * (LARGE_VALUE_BYTES + 1), ADDRESSER)
    assert large.digest is not None
    assert large.encoded is not None
    store.put_objects([(large.digest, FRAMER.write("value", large.encoded))])
    assert verify_store(archive(store)).orphans == 1
    assert damage(store) == []
    set_object(store, large.digest, b"")
    [found] = damage(store)
    assert found.digest == large.digest
    assert found.spans == ()


async def test_an_object_that_a_state_names_is_proved_when_it_is_there(store: MemoryStore) -> None:
    named = Digest(b"w" * 32)  # the digest of the workflow's definition
    store.put_objects([(named, FRAMER.write("blob", b"text"))])
    report = verify_store(archive(store))
    assert report.orphans == 0
    assert [finding.digest for finding in report.findings] == [named]


# --- rows


async def test_a_damaged_patch_takes_the_rest_of_its_segment(store: MemoryStore) -> None:
    patch = rows_of(store, "r1")[40].patch
    assert patch is not None
    set_row(store, "r1", 40, patch=flipped(patch, 77))
    report = verify_run(archive(store), R1)
    [found] = report.findings
    assert (found.seq, found.what) == (40, "the patch of snapshot r1@40")
    assert found.spans == report.unreadable == (SnapshotSpan(run=R1, first=40, last=63),)
    assert [seq for _, seq in found.snapshots] == unreadable(store, "r1")
    assert report.whole == 80


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"status": "x"}, "status"),
        ({"phase": None}, "phase"),
        ({"at": Instant(1)}, "time"),
        ({"triggers": ()}, "triggers"),
        ({"agents": ("x",)}, "agents"),
        ({"marked": False}, "mark"),
        ({"seal": Digest(b"s" * 32)}, "seal"),
        ({"sealed_at": 3}, "seal position"),
        ({"parent": Digest(b"p" * 32)}, "parent"),
        ({"no": 0}, "committed"),
        ({"pruned": True}, "pruned"),
        ({"patch": None}, "pruned"),
        ({"digest": Digest(b"d" * 32)}, "digest"),
        ({"header": b""}, "frame"),
    ],
)
async def test_a_wrong_column_is_named(store: MemoryStore, columns: dict[str, object], word: str) -> None:
    set_row(store, "r1", 45, **columns)
    found = damage(store)
    assert {finding.seq for finding in found} >= {45}
    assert any(word in finding.reason for finding in found), found


async def test_pruning_what_is_needed_is_damage(store: MemoryStore) -> None:
    store.prune(R1, [40, 41])
    report = verify_run(archive(store), R1)
    [found] = report.findings
    assert found.seq == 40
    assert found.spans == (SnapshotSpan(run=R1, first=42, last=63),)


async def test_annotations_that_cannot_be_read_are_named(store: MemoryStore) -> None:
    pin(store, FRAMER, R1, 3, Instant(1), "keep this")
    kept = store.annotations(R1)[0]
    store.annotate(attrs.evolve(kept, body=flipped(kept.body, 400)))
    store.annotate(Annotation(run=R1, seq=5, kind="note", body=kept.body))
    assert {(finding.seq, finding.what) for finding in damage(store)} == {
        (3, "the pin on r1@3"),
        (5, "the note on r1@5"),
    }


# --- spans


def test_spans_join_neighbours_of_one_run() -> None:
    spans = Spans()
    for run, seq in ((R1, 0), (R1, 1), (R1, 1), (R1, 5), (R2, 6), (R2, 7)):
        spans.add(run, seq)
    found = spans.to_tuple()
    assert [str(span) for span in found] == ["r1@0 to @1", "r1@5", "r2@6 to @7"]
    assert [len(span) for span in found] == [2, 1, 2]
    spans.forget(R1)
    assert [list(span) for span in spans.to_tuple()] == [[(R2, 6), (R2, 7)]]
