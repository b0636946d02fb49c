"""What the tests of exports and of the JSON form start from: runs recorded once, and copies to harm."""

from pathlib import Path

import pytest

from orchestra.history.annotations import note, pin
from orchestra.history.archive import Archive
from orchestra.ids import Instant
from orchestra.interchange.transfer import export_run
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import FRAMER, R1, Recorded, copied, fork, record


@pytest.fixture(scope="session")
async def family() -> Recorded:
    """A run with a rollback, a pin, a note and a fork."""
    made = MemoryStore()
    states = await record(made, turns=80, rollback_at=70)
    await fork(made, "r1", 50, "r2", turns=10)
    pin(made, FRAMER, R1, 5, Instant(5), "keep")
    note(made, FRAMER, R1, 6, Instant(6), "why?")
    return made, states


@pytest.fixture
def store(family: Recorded) -> MemoryStore:
    """A copy of the family."""
    return copied(family[0])


@pytest.fixture
def export(store: MemoryStore, tmp_path: Path) -> Path:
    """The run of the family as a file."""
    return export_run(Archive(store, FRAMER), R1, tmp_path / "r1.orchestra").path


@pytest.fixture(scope="session")
async def recorded() -> Recorded:
    """A run that was rolled back near its beginning."""
    made = MemoryStore()
    return made, await record(made, turns=60, rollback_at=5)


@pytest.fixture
def recorded_store(recorded: Recorded) -> MemoryStore:
    """A copy of the run that was rolled back."""
    return copied(recorded[0])


@pytest.fixture
def archive(recorded_store: MemoryStore) -> Archive:
    """The run that was rolled back, for reading."""
    return Archive(recorded_store, FRAMER)
