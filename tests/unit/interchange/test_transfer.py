"""Runs as files: what goes out comes back the same, and nothing is done twice."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.errors import (
    Damaged,
    OrchestraError,
    RunExists,
    StoreFull,
    StoreReadOnly,
)
from orchestra.history.annotations import annotations_of
from orchestra.history.archive import Archive
from orchestra.history.verify.verifier import verify_run, verify_store
from orchestra.ids import Digest, RunId
from orchestra.interchange.export_store import ExportStore
from orchestra.interchange.transfer import export_run, import_run
from orchestra.ports.store import Commit, Row, RowQuery, Store
from orchestra.stores.files.store import FilesStore
from orchestra.stores.memory import MemoryStore
from orchestra.stores.sqlite.store import SqliteStore
from tests.unit.recordings import (
    FRAMER,
    R1,
    Recorded,
    Story,
    TickingClock,
    flipped,
    objects_of,
    record,
    rows_of,
    set_object,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]
R2 = RunId("r2")


@pytest.fixture(params=["memory", "sqlite", "files"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    makers: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "target.db", create=True),
        "files": lambda: FilesStore(tmp_path / "target", create=True),
    }
    with makers[request.param]() as made:
        yield made


def bare(row: Row) -> Row:
    return attrs.evolve(row, no=0)


# --- there and back


def test_a_run_comes_back_the_same(family: Recorded, export: Path, target: Store) -> None:
    imported = import_run(target, export)
    assert (imported.run, imported.rows, imported.head, imported.was_there) == (R1, 81, 80, False)
    archive = Archive(target, FRAMER)
    assert [archive.state(R1, seq) for seq in range(81)] == family[1]
    assert [bare(row) for row in target.rows(RowQuery(run=R1))] == [
        bare(row) for row in family[0].rows(RowQuery(run=R1))
    ]
    assert annotations_of(target, FRAMER, R1) == annotations_of(family[0], FRAMER, R1)
    assert verify_store(archive).findings == ()
    run = target.run(R1)
    assert run is not None
    assert not run.owned


async def test_an_imported_run_goes_on(export: Path, target: Store) -> None:
    import_run(target, export)
    async with CheckpointManager(target, clock=TickingClock(), owner="test") as manager:
        active = await manager.restore(R1)
        story = Story(9)
        for _ in range(120):
            story.turn()
        await manager.record(active, story.turn())
    assert verify_run(Archive(target, FRAMER), R1).is_whole


def test_pruned_rows_stay_pruned(store: MemoryStore, tmp_path: Path, target: Store) -> None:
    store.prune(R1, [*range(1, 32), *range(33, 71)])
    export_run(Archive(store, FRAMER), R1, tmp_path / "x.orchestra")
    import_run(target, tmp_path / "x.orchestra")
    assert [row.pruned for row in target.rows(RowQuery(run=R1))] == [
        row.pruned for row in rows_of(store, "r1")
    ]
    report = verify_store(Archive(target, FRAMER))
    assert (report.is_whole, report.pruned, report.orphans) == (True, 69, 0)


def test_only_what_is_needed_goes_out(store: MemoryStore, tmp_path: Path) -> None:
    whole = export_run(Archive(store, FRAMER), R1, tmp_path / "whole.orchestra")
    store.prune(R1, range(1, 71))
    pruned = export_run(Archive(store, FRAMER), R1, tmp_path / "pruned.orchestra")
    assert pruned.objects < whole.objects < len(objects_of(store))
    assert pruned.size < whole.size == whole.path.stat().st_size


def test_the_same_run_makes_the_same_bytes(export: Path, tmp_path: Path, target: Store) -> None:
    import_run(target, export)
    again = export_run(Archive(target, FRAMER), R1, tmp_path / "again.orchestra")
    assert again.path.read_bytes() == export.read_bytes()


def test_a_fork_comes_with_a_note_about_its_origin(store: MemoryStore, tmp_path: Path) -> None:
    export_run(Archive(store, FRAMER), R2, tmp_path / "r2.orchestra")
    target = MemoryStore()
    import_run(target, tmp_path / "r2.orchestra")
    report = verify_store(Archive(target, FRAMER))
    assert [finding.severity for finding in report.findings] == ["note"]
    found = target.run(R2)
    assert found is not None
    assert found.family == R1


async def test_objects_that_states_name_travel_along(store: MemoryStore, tmp_path: Path) -> None:
    content = b"# Report"
    named = FRAMER.address("blob", content)
    story = Story(1)
    started, phase = story.start("r3")
    workflow = attrs.evolve(started.workflow, digest=named)
    store.put_objects([(named, FRAMER.write("blob", content))])
    async with CheckpointManager(store, clock=TickingClock(), owner="test") as manager:
        await manager.begin(attrs.evolve(started, workflow=workflow), phase)
    export_run(Archive(store, FRAMER), RunId("r3"), tmp_path / "r3.orchestra")
    target = MemoryStore()
    import_run(target, tmp_path / "r3.orchestra")
    assert named in target.get_objects([named])


# --- what is there already


def test_importing_twice_changes_nothing(export: Path, target: Store) -> None:
    import_run(target, export)
    before = target.last_no()
    again = import_run(target, export)
    assert (again.was_there, again.rows, again.run) == (True, 0, R1)
    assert target.last_no() == before


async def test_another_run_of_that_name_is_refused(export: Path, target: Store) -> None:
    await record(target, turns=5, seed=3)
    before = target.rows(RowQuery(run=R1))
    with pytest.raises(RunExists):
        import_run(target, export)
    assert target.rows(RowQuery(run=R1)) == before


async def test_a_longer_history_continues_the_shorter_one(
    export: Path, tmp_path: Path, target: Store
) -> None:
    import_run(target, export)
    async with CheckpointManager(target, clock=TickingClock(), owner="test") as manager:
        active = await manager.restore(R1)
        await manager.rollback(active, 5, reason="again")
        await manager.release(active)
    longer = export_run(Archive(target, FRAMER), R1, tmp_path / "longer.orchestra").path
    assert import_run(target, export).was_there  # the store is ahead
    other = MemoryStore()
    import_run(other, export)
    assert import_run(other, longer).rows == 1
    assert verify_store(Archive(other, FRAMER)).is_whole


class Failing(MemoryStore):
    """A store that fails at one of its calls."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.calls, self._fails_at = 0, at

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self._fails_at:
            raise StoreFull(place=self.place, needed="1 MB")

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        self._call()
        return super().commit(commits, patient=patient)

    def put_objects(self, objects: object) -> None:
        self._call()
        super().put_objects(objects)  # type: ignore[arg-type]

    def annotate(self, annotation: object) -> None:
        self._call()
        super().annotate(annotation)  # type: ignore[arg-type]


def test_a_failed_import_leaves_no_run(export: Path) -> None:
    counting = Failing(0)
    import_run(counting, export)
    for at in range(1, counting.calls + 1):
        store = Failing(at)
        with pytest.raises(StoreFull):
            import_run(store, export)
        assert store.run(R1) is None
        import_run(store, export)  # and nothing is in the way of another try
        assert verify_store(Archive(store, FRAMER)).is_whole


def test_a_damaged_object_in_the_store_is_not_built_on(export: Path, store: MemoryStore) -> None:
    digest, data = next(iter(objects_of(store).items()))
    target = MemoryStore()
    target.put_objects([(digest, data)])
    set_object(target, digest, flipped(data, 50))
    with pytest.raises(Damaged):
        import_run(target, export)
    assert target.run(R1) is None


# --- the file as a store


def test_an_export_is_read_like_a_store(family: Recorded, export: Path) -> None:
    with ExportStore(export, FRAMER) as file:
        archive = Archive(file, FRAMER)
        assert archive.state(R1, 40) == family[1][40]
        assert verify_store(archive).findings == ()
        assert file.stats().rows == 81
        assert file.find(archive.row(R1, 7).digest, archive.row(R1, 7).digest, 5)[0].seq == 7
        assert file.run(R2) is None
        assert file.rows(RowQuery(run=R2)) == []
        assert (file.meta("x"), file.last_no(), file.commands(R1)) == (None, 81, [])


def test_an_export_cannot_be_written(export: Path) -> None:
    with ExportStore(export, FRAMER) as file, pytest.raises(StoreReadOnly):
        file.claim(R1, "me")
    with ExportStore(export, FRAMER) as file, pytest.raises(StoreReadOnly):
        file.put_objects([(Digest(b"x" * 32), b"")])
