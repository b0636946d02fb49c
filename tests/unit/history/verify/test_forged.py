"""Rows and seals that prove themselves and are still wrong."""

import attrs
import pytest

from orchestra.codec import cbor
from orchestra.codec.header import write_header
from orchestra.history.archive import Archive
from orchestra.history.verify.report import Finding, SnapshotSpan
from orchestra.history.verify.verifier import verify_run, verify_store
from orchestra.ids import Digest, RunId
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import FRAMER, copied, fork, record, rows_of, set_row, unreadable

pytestmark = pytest.mark.anyio
R1 = RunId("r1")


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


def forged(store: MemoryStore, seq: int, operations: list[object], references: list[Digest]) -> None:
    """Put another patch in the place of the newest one, with a header that goes with it."""
    row = rows_of(store, "r1")[seq]
    canonical = cbor.encode([references, operations])
    header = attrs.evolve(archive(store).header(row), patch=FRAMER.address("patch", canonical))
    header = attrs.evolve(header, counts=None)
    digest, frame = write_header(header, FRAMER)
    set_row(store, "r1", seq, digest=digest, header=frame, patch=FRAMER.write("patch", canonical))


async def test_a_patch_that_says_otherwise_than_its_seal_is_found() -> None:
    store = MemoryStore()
    await record(store, turns=32)
    forged(store, 32, [["set", ["generation"], 7]], [])
    [found] = damage(store)
    assert found.seq == 32
    assert "leads to another state than its seal" in found.reason


async def test_a_patch_that_does_not_fit_is_found() -> None:
    store = MemoryStore()
    await record(store, turns=20)
    forged(store, 20, [["push", ["status"], ["x"]]], [])
    report = verify_run(archive(store), R1)
    [found] = report.findings
    assert "does not fit the state before it" in found.reason
    assert (found.spans, report.whole) == ((SnapshotSpan(run=R1, first=20, last=20),), 19)
    assert unreadable(store, "r1") == [20]


async def test_a_state_that_does_not_fit_the_model_is_found() -> None:
    store = MemoryStore()
    await record(store, turns=20)
    forged(store, 20, [["set", ["completed_tasks"], "many"]], [])
    report = verify_run(archive(store), R1)
    assert report.whole == 19
    assert any("does not fit the model" in finding.reason for finding in report.findings)


async def test_references_must_be_those_that_are_used() -> None:
    store = MemoryStore()
    await record(store, turns=20)
    root = rows_of(store, "r1")[0].seal
    forged(store, 20, [["set", ["generation"], 0]], [root])
    assert [finding.reason for finding in damage(store)] == [
        "its list of references is not what it refers to"
    ]


async def test_a_header_that_contradicts_its_state_is_found() -> None:
    store = MemoryStore()
    await record(store, turns=20)
    row = rows_of(store, "r1")[20]
    header = attrs.evolve(archive(store).header(row), status="failed")
    digest, frame = write_header(header, FRAMER)
    set_row(store, "r1", 20, digest=digest, header=frame, status="failed")
    assert [finding.reason for finding in damage(store)] == ["its header says another status than its state"]


@pytest.mark.parametrize(
    ("canonical", "kind"),
    [
        (cbor.encode([[], {"run": "r1"}]), "root"),
        (cbor.encode([[b"x" * 32], {"run": "r1"}]), "root"),
        (cbor.encode([[], [1]]), "leaf"),
        (cbor.encode([[b"x" * 32], None]), "branch"),
        (cbor.encode([[], [cbor.Tag(cbor.TAG_VEC_REF, [40, b"t" * 32, b"l" * 32])]]), "leaf"),
    ],
)
async def test_seals_of_any_content_are_read_without_a_crash(canonical: bytes, kind: str) -> None:
    store = MemoryStore()
    await record(store, turns=3)
    digest = FRAMER.address(kind, canonical)
    store.put_objects([(digest, FRAMER.write(kind, canonical))])
    row = rows_of(store, "r1")[3]
    header = attrs.evolve(archive(store).header(row), seal=digest, sealed_at=3)
    changed, frame = write_header(header, FRAMER)
    set_row(store, "r1", 3, digest=changed, header=frame, seal=digest, sealed_at=3)
    report = verify_run(archive(store), R1)
    assert not report.is_whole
    assert report.whole == 2
