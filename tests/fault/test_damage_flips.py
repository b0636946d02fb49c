"""One flipped bit, anywhere: it is noticed and named, and no reader is handed wrong data."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.codec.frame import read_frame
from orchestra.errors import DamageError, OrchestraError
from orchestra.history.archive import Archive
from orchestra.history.verify.report import StoreReport
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import Digest, RunId
from orchestra.interchange.json_check import verify_file
from orchestra.interchange.transfer import export_run, import_run
from orchestra.model.state import State
from orchestra.ports.store import Row
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import (
    FRAMER,
    copied,
    flipped,
    fork,
    large_values,
    objects_of,
    record,
    rows_of,
    set_object,
    set_row,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]
FLIPS = 1_000
RUNS = (RunId("r1"), RunId("r2"))

Recorded = tuple[MemoryStore, dict[RunId, list[State]]]


@pytest.fixture(scope="module")
async def recorded() -> Recorded:
    """A run with two seals and a fork that shares objects with it, and every state of both."""
    store = MemoryStore()
    await record(store, turns=33, seed=11)
    await fork(store, "r1", 20, "r2", turns=1)
    archive = Archive(store, FRAMER)
    return store, {run: [archive.state(run, row.seq) for row in rows_of(store, run)] for run in RUNS}


@attrs.frozen
class Flip:
    """A place in a store where a bit can be flipped."""

    name: str  # what a finding must name: run@seq or a digest
    size: int  # how many bytes there are
    apply: Callable[[MemoryStore, int], bool]  # flips a bit; tells whether that changed any data


def places(store: MemoryStore) -> list[Flip]:
    """Every stored byte string of a store."""
    found = [_object(digest, len(data)) for digest, data in objects_of(store).items()]
    for run in RUNS:
        for row in rows_of(store, run):
            found.extend(_columns(row))
    return found


def _object(digest: Digest, size: int) -> Flip:
    def apply(store: MemoryStore, bit: int) -> bool:
        data = objects_of(store)[digest]
        set_object(store, digest, flipped(data, bit))
        return differs(data, flipped(data, bit))

    return Flip(digest.hex(), size, apply)


def _columns(row: Row) -> Iterator[Flip]:
    def flip(column: str) -> Callable[[MemoryStore, int], bool]:
        def apply(store: MemoryStore, bit: int) -> bool:
            data: bytes = getattr(row, column)
            set_row(store, row.run, row.seq, **{column: flipped(data, bit)})
            return column != "patch" or differs(data, flipped(data, bit))

        return apply

    for column in ("header", "patch", "digest", "parent", "seal"):
        held: Any = getattr(row, column)
        if held:
            yield Flip(f"{row.run}@{row.seq}", len(held), flip(column))


def differs(before: bytes, after: bytes) -> bool:
    """Whether a changed frame holds other data; some bits of a compressed one mean nothing."""
    try:
        return read_frame(before, what="") != read_frame(after, what="")
    except DamageError:
        return True


def is_named(report: StoreReport, name: str) -> bool:
    for finding in report.findings:
        at = f"{finding.run}@{finding.seq}"
        if finding.is_damage and name in (at, None if finding.digest is None else finding.digest.hex()):
            return True
    return False


def test_every_flip_in_a_store_is_named(recorded: Recorded) -> None:
    base, states = recorded
    spots = places(base)
    chance = random.Random(8)
    chosen = chance.choices(spots, weights=[spot.size for spot in spots], k=FLIPS)
    changed = 0
    for spot in chosen:
        store = copied(base)
        if not spot.apply(store, chance.randrange(spot.size * 8)):
            continue
        changed += 1
        report = verify_store(Archive(store, FRAMER))
        assert is_named(report, spot.name), (spot.name, report.findings)
        if changed % 20 == 0:
            readers_get_the_truth(store, states, report)
    assert changed > FLIPS * 0.9


def readers_get_the_truth(store: MemoryStore, states: dict[RunId, list[State]], report: StoreReport) -> None:
    """Whoever reads gets what was recorded, or an error where the verification says so."""
    for run in report.runs:
        bad = {seq for span in run.unreadable for _, seq in span}
        for row in rows_of(store, run.run):
            archive = Archive(store, FRAMER)
            try:
                state = archive.snapshot(row).state
                for value in large_values(state):
                    archive.value(value)
            except DamageError:
                assert row.seq in bad
            else:
                assert state == states[run.run][row.seq]
                assert row.seq not in bad


def test_every_flip_in_an_export_is_noticed(recorded: Recorded, tmp_path: Path) -> None:
    path = export_run(Archive(recorded[0], FRAMER), RUNS[0], tmp_path / "r1.orchestra").path
    data, chance = path.read_bytes(), random.Random(9)
    target = MemoryStore()
    for number, bit in enumerate(chance.sample(range(len(data) * 8), FLIPS)):
        path.write_bytes(flipped(data, bit))
        if number % 10 == 0:
            with pytest.raises(OrchestraError):
                import_run(target, path)
        try:
            assert not verify_file(path).is_whole, bit
        except OrchestraError:
            continue  # it does not even look like an export of a format that is known
    assert target.stats().runs == target.stats().objects == 0
