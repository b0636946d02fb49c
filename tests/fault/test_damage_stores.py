"""Damage on disk, below the stores' own checks: it is named, the rest stays readable, and runs go on."""

import random
from pathlib import Path

import apsw
import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.errors import DamageError, OrchestraError
from orchestra.history.archive import Archive
from orchestra.history.verify.report import StoreReport
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import RunId
from orchestra.model.state import State
from orchestra.ports.store import Store
from orchestra.stores.files.store import FilesStore
from orchestra.stores.sqlite.store import SqliteStore
from tests.unit.recordings import FRAMER, TickingClock, flipped, record

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]
R1, OTHER = RunId("r1"), RunId("other")

SPOILED = "CAST(substr({0}, 1, 50) || x'00' || substr({0}, 52) AS BLOB)"


@pytest.fixture(scope="module")
async def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two runs; copy it before it is damaged."""
    path = tmp_path_factory.mktemp("recorded") / "runs.db"
    with SqliteStore(path, create=True) as store:
        await record(store, turns=70)
        await record(store, run="other", turns=3)
    return path


@pytest.fixture
def damaged(database: Path, tmp_path: Path) -> Path:
    for path in database.parent.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path / database.name


def change(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def verified(store: Store) -> StoreReport:
    return verify_store(Archive(store, FRAMER))


@pytest.mark.parametrize(
    ("statement", "named", "whole"),
    [
        (f"UPDATE rows SET patch = {SPOILED.format('patch')} WHERE seq = 70", "snapshot r1@70", 69),
        (f"UPDATE rows SET patch = {SPOILED.format('patch')} WHERE seq = 66", "snapshot r1@66", 65),
        (f"UPDATE rows SET header = {SPOILED.format('header')} WHERE seq = 30", "snapshot r1@30", 70),
        ("UPDATE rows SET status = 'x' WHERE seq = 70", "snapshot r1@70", 69),
        ("UPDATE rows SET size = size + 1 WHERE seq = 8", "snapshot r1@8", 70),
        ("DELETE FROM rows WHERE seq = 40", "snapshot r1@40", 70),
        ("DELETE FROM rows WHERE seq = 70", "snapshot r1@70", 69),
    ],
)
def test_damaged_rows_are_named(damaged: Path, statement: str, named: str, whole: int) -> None:
    change(damaged, statement)
    with SqliteStore(damaged, create=False) as store:
        report = verified(store)
        assert named in {finding.what for finding in report.findings if finding.is_damage}
        assert {run.run: run.whole for run in report.runs} == {R1: whole, OTHER: 3}


def test_a_damaged_run_does_not_hide_the_others(damaged: Path) -> None:
    change(damaged, "UPDATE runs SET workflow = 'x' WHERE run = 'r1'")
    with SqliteStore(damaged, create=False) as store:
        report = verified(store)
        assert [finding.what for finding in report.findings] == ["run r1"]
        assert [(run.run, run.is_whole) for run in report.runs] == [(OTHER, True)]


@pytest.mark.parametrize("statement", ["DELETE FROM objects", "UPDATE objects SET body = x'00'"])
def test_damaged_objects_are_named(damaged: Path, statement: str) -> None:
    change(damaged, f"{statement} WHERE rowid = (SELECT max(rowid) FROM objects)")
    with SqliteStore(damaged, create=False) as store:
        report = verified(store)
        [found] = report.findings
        assert found.snapshots == [(OTHER, seq) for seq in range(4)]
        assert {run.run: run.whole for run in report.runs} == {R1: 70, OTHER: None}


async def test_a_run_goes_on_from_what_is_whole(damaged: Path) -> None:
    change(damaged, "DELETE FROM rows WHERE seq = 70")
    with SqliteStore(damaged, create=False) as store:
        async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
            active = await manager.restore(R1)
        assert active.state.rollbacks[-1].to_seq == 69


# --- files


@pytest.fixture(scope="module")
async def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[State]]:
    path = tmp_path_factory.mktemp("recorded") / "store"
    with FilesStore(path, create=True) as store:
        return path, await record(store, turns=34)


def copy_tree(source: Path, target: Path) -> Path:
    for path in source.rglob("*"):
        place = target / path.relative_to(source)
        if path.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
        else:
            place.mkdir(parents=True, exist_ok=True)
    return target


def test_flips_in_files_are_noticed_and_never_read(folder: tuple[Path, list[State]], tmp_path: Path) -> None:
    source, states = folder
    chance = random.Random(12)
    files = [
        path for top in ("runs", "objects") for path in sorted((source / top).rglob("*")) if path.is_file()
    ]
    for number in range(40):
        place = copy_tree(source, tmp_path / str(number))
        path = place / chance.choice(files).relative_to(source)
        path.write_bytes(flipped(path.read_bytes(), chance.randrange(path.stat().st_size * 8)))
        try:
            store = FilesStore(place, create=False)
        except OrchestraError:
            continue
        with store:
            assert not verified(store).is_whole
            assert reads_the_truth(store, states)


def reads_the_truth(store: Store, states: list[State]) -> bool:
    for seq, state in enumerate(states):
        try:
            found = Archive(store, FRAMER).state(R1, seq)
        except (DamageError, OrchestraError):
            continue
        if found != state:
            return False
    return True
