"""A store opened for reading changes none of its files, also after a crash, and tells of lost commits."""

import fcntl
import os
from pathlib import Path

import pytest

from orchestra.errors import LostCommits
from orchestra.ports.store import RowQuery, RunQuery
from orchestra.stores.registry import open_store
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.samples import SampleRun
from tests.unit.stores.sqlite.dying import beside, crashed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def _files(path: Path) -> dict[str, bytes]:
    """Everything beside a database but the index of its log."""
    found = {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}
    return {name: data for name, data in found.items() if not name.endswith("-shm")}


@pytest.mark.parametrize("index", [True, False], ids=["with its index", "without"])
def test_reading_after_a_crash_changes_no_file(path: Path, index: bool) -> None:
    crashed(path)
    if not index:
        beside(path, "-shm").unlink()
    before = _files(path)
    with open_store(f"sqlite:{path}", read_only=True) as store:
        assert [row.seq for row in store.rows(RowQuery())] == [0, 1, 2, 3, 4]
        assert not any(run.owned for run in store.runs(RunQuery()))
        assert list(store.check()) == []
    assert _files(path) == before


def test_reading_opens_the_database_for_reading(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        SampleRun(store, "a").extend(3)
    with open_store(f"sqlite:{path}", read_only=True) as store:
        assert len(store.rows(RowQuery())) == 3
        links = [(entry, entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        opened = [int(entry.name) for entry, target in links if target == path.resolve()]
        assert opened
        assert all(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY for fd in opened)


def test_a_reader_is_told_of_lost_commits_too(path: Path) -> None:
    crashed(path)
    beside(path, "-wal").unlink()
    beside(path, "-shm").unlink()
    with pytest.raises(LostCommits):
        open_store(f"sqlite:{path}", read_only=True)
    with open_store(f"sqlite:{path}?mode=ro", read_only=True) as store:
        assert [problem.what for problem in store.check()] == ["file"]


def test_damage_that_stops_a_check_is_told_without_advice_to_check(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        SampleRun(store, "a").extend(40)
    with path.open("r+b") as file:
        file.seek(4096)  # the second page: a table's
        file.write(b"\x07" * 8)
    with open_store(f"sqlite:{path}", read_only=True) as store:
        reasons = {problem.reason for problem in store.check()}
    assert reasons == {"CorruptError: database disk image is malformed"}
