"""A disk that is full or fails: nothing acknowledged is lost, nothing unacknowledged is half there."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from orchestra import limits
from orchestra.errors import StoreFailed, StoreFull
from orchestra.ids import Instant, RunId
from orchestra.ports.store import RowQuery, Store
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.samples import SampleRun, sample_object
from tests.fault.faulty_vfs import Disk, faulty_vfs

NAMES = count()


@pytest.fixture
def vfs() -> str:
    return f"faulty{next(NAMES)}"


@pytest.fixture
def disk(vfs: str) -> Iterator[Disk]:
    with faulty_vfs(vfs) as disk:
        yield disk


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BUSY_SECONDS", 2.0)


def seqs(store: Store, run: str) -> list[int]:
    return [row.seq for row in store.rows(RowQuery(run=RunId(run)))]


def work(store: Store, run: SampleRun, acknowledged: list[int]) -> None:
    """A commit with objects, a claim of its own and everything else that writes."""
    objects = (
        sample_object(f"small {run.run} {len(acknowledged)}"),
        sample_object(f"large {len(acknowledged)}", 9000),
    )
    acknowledged.append(run.append(parts={"objects": objects}).seq)
    store.put_objects([sample_object(f"ahead {len(acknowledged)}", 3000)])
    store.send(run.run, b"do", Instant(1))


def test_a_failed_sync_is_not_acknowledged(tmp_path: Path, disk: Disk, vfs: str) -> None:
    with SqliteStore(tmp_path / "a.db", create=True, vfs=vfs) as store:
        run = SampleRun(store, "a")
        run.extend(3)
        before = run.head
        disk.fail_syncs(1)
        with pytest.raises(StoreFailed):
            run.append()
        assert run.head is before
        syncs = disk.syncs
        run.extend(2)
        assert disk.syncs >= syncs + 4, "the log was not moved into the database first"
        assert seqs(store, "a") == [0, 1, 2, 3, 4]
        assert list(store.check()) == []


def test_while_syncs_fail_nothing_is_accepted(tmp_path: Path, disk: Disk, vfs: str) -> None:
    with SqliteStore(tmp_path / "a.db", create=True, vfs=vfs) as store:
        run = SampleRun(store, "a")
        run.extend(2)
        disk.fail_syncs(1000)
        for _ in range(3):
            with pytest.raises(StoreFailed):
                run.append()
        disk.fail_syncs(0)
        run.append()
        assert seqs(store, "a") == [0, 1, 2]


def test_one_failed_write_costs_one_commit(tmp_path: Path, disk: Disk, vfs: str) -> None:
    with SqliteStore(tmp_path / "a.db", create=True, vfs=vfs) as store:
        run = SampleRun(store, "a")
        run.extend(2)
        disk.fail_writes(1)
        with pytest.raises(StoreFailed):
            run.append()
        run.append()
        assert seqs(store, "a") == [0, 1, 2]
        assert list(store.check()) == []


@pytest.mark.parametrize("start", range(1, 60))
def test_full_from_every_write_on(tmp_path: Path, disk: Disk, vfs: str, start: int) -> None:
    acknowledged: list[int] = []
    with SqliteStore(tmp_path / "a.db", create=True, vfs=vfs) as store:
        run = SampleRun(store, "a")
        run.append()
        disk.fill_from(start)
        refused: list[str] = []
        for _ in range(4):
            try:
                work(store, run, acknowledged)
            except StoreFull as error:
                refused.append(str(error))
        disk.free()
        assert refused or start > 20
        assert all("needs about" in message for message in refused)
        assert seqs(store, "a") == [0, *acknowledged]
        work(store, run, acknowledged)
        assert seqs(store, "a") == [0, *acknowledged]
        assert list(store.check()) == []
    with SqliteStore(tmp_path / "a.db", create=False) as store:
        assert seqs(store, "a") == [0, *acknowledged]
        assert list(store.check()) == []


@pytest.mark.parametrize("start", range(1, 30, 2))
def test_a_disk_that_is_full_at_creation_leaves_nothing(
    tmp_path: Path, disk: Disk, vfs: str, start: int
) -> None:
    disk.fill_from(start)
    opened = True
    try:
        SqliteStore(tmp_path / "a.db", create=True, vfs=vfs).close()
    except StoreFull:
        opened = False
    assert opened or list(tmp_path.iterdir()) == []
    disk.free()
    with SqliteStore(tmp_path / "a.db", create=True, vfs=vfs) as store:
        SampleRun(store, "a").append()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True)
    if made.returncode:
        pytest.skip("this machine does not let tests mount a filesystem")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill_up(run: SampleRun) -> None:
    """Commit until there is no more room."""
    for _ in range(10_000):
        try:
            run.append(patch=b"p" * 2000)
        except StoreFull:
            return
    raise AssertionError("the disk never was full")


def take_the_rest(place: Path) -> None:
    """Leave no free block on a filesystem."""
    with place.open("wb", buffering=0) as filler, suppress(OSError):
        for _ in range(1000):
            filler.write(bytes(4096))


def test_a_real_full_disk_loses_nothing_and_goes_on(small_disk: Path) -> None:
    path = small_disk / "a.db"
    ballast = small_disk / "filler"
    ballast.write_bytes(bytes(600_000))
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        fill_up(run)
        assert run.head is not None
        assert seqs(store, "a") == list(range(run.head.seq + 1))
        ballast.unlink()
        run.extend(3)
        assert seqs(store, "a") == list(range(run.head.seq + 1))
        assert list(store.check()) == []


@pytest.mark.parametrize("how", ["prune", "delete", "sweep"])
def test_removal_works_on_a_full_disk(small_disk: Path, how: str) -> None:
    path = small_disk / "a.db"
    with SqliteStore(path, create=True) as store:
        assert path.with_name("a.db-ballast").exists()
        objects = [sample_object(f"object {number}", 3000) for number in range(60)]
        store.put_objects(objects)
        run = SampleRun(store, "a")
        fill_up(run)
        take_the_rest(small_disk / "filler")
        assert run.head is not None
        run.release()
        if how == "prune":
            assert store.prune(run.run, range(run.head.seq)) == run.head.seq
        elif how == "delete":
            store.delete(run.run)
        else:
            dead = [digest for digest, _ in objects]
            far = Instant(2**62)
            assert store.sweep(dead, since=store.last_no(), older_than=far, spared=lambda rows: ()) == 60
        assert list(store.check()) == []
        other = SampleRun(store, "b")
        other.extend(5)
        assert seqs(store, "b") == [0, 1, 2, 3, 4]
        (small_disk / "filler").unlink()
        store.prune(other.run, [1])
        assert path.with_name("a.db-ballast").exists()
