"""Opening the SQLite store: what is at the place, and what is never done to it."""

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from orchestra.errors import (
    BadSetting,
    Damaged,
    LostCommits,
    NotAStore,
    OrchestraError,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
)
from orchestra.ids import RunId
from orchestra.ports.store import RowQuery, RunQuery
from orchestra.stores.registry import open_store
from orchestra.stores.sqlite import SqliteStore, open_sqlite
from orchestra.stores.sqlite.opener import APPLICATION_ID, FORMAT, expected_tables, tables_of
from orchestra.testing.samples import SampleRun
from tests.unit.stores.sqlite.dying import beside, crashed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def fill(path: Path, rows: int = 3) -> None:
    with SqliteStore(path, create=True) as store:
        SampleRun(store, "a").extend(rows)


def test_schema_and_migrations_are_equal() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute((files("orchestra.stores.sqlite") / "schema.sql").read_text("utf-8"))
    assert tables_of(connection) == expected_tables()


def test_missing_is_missing(path: Path) -> None:
    with pytest.raises(StoreMissing):
        SqliteStore(path, create=False)
    assert list(path.parent.iterdir()) == []


def test_parents_are_made_and_the_draft_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "store.db"
    SqliteStore(path, create=True).close()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["store.db", "store.db-ballast"]


def test_a_directory_is_not_a_store(path: Path) -> None:
    path.mkdir()
    with pytest.raises(NotAStore, match="directory"):
        SqliteStore(path, create=True)


@pytest.mark.parametrize("create", [True, False])
def test_an_empty_file_is_not_a_store(path: Path, create: bool) -> None:
    path.touch()
    with pytest.raises(NotAStore, match="empty"):
        SqliteStore(path, create=create)
    assert path.stat().st_size == 0


def test_other_files_are_left_alone(path: Path) -> None:
    path.write_bytes(b"a letter " * 1000)
    with pytest.raises(NotAStore, match="not an SQLite"):
        SqliteStore(path, create=True)
    assert path.read_bytes() == b"a letter " * 1000


def test_databases_of_others_are_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="another program"):
        SqliteStore(path, create=True)
    assert path.read_bytes() == before


def test_a_newer_format_is_left_alone(path: Path) -> None:
    fill(path)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", FORMAT + 1)
    connection.close()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(StoreTooNew):
            SqliteStore(path, create=True, read_only=read_only)
    assert path.read_bytes() == before


def test_other_tables_are_damage(path: Path) -> None:
    fill(path)
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE extra (x)")
    connection.close()
    with pytest.raises(Damaged, match="tables"):
        SqliteStore(path, create=False)


@pytest.mark.parametrize("keep", [50, 100, 3000, 4096, 8192, 20_000])
def test_a_truncated_database_is_damaged(path: Path, keep: int) -> None:
    fill(path)
    with path.open("r+b") as file:
        file.truncate(keep)
    with pytest.raises(Damaged):
        SqliteStore(path, create=True)
    assert path.stat().st_size == keep


def test_a_second_name_is_refused(path: Path) -> None:
    fill(path)
    os.link(path, path.with_name("other.db"))
    with pytest.raises(NotAStore, match="hard links"):
        SqliteStore(path, create=False)


def test_a_forgotten_draft_is_taken_away(path: Path) -> None:
    fill(path)
    draft = beside(path, ".123-abcd.new")
    os.link(path, draft)
    SqliteStore(path, create=False).close()
    assert not draft.exists()


def test_a_symbolic_link_leads_to_the_same_store(path: Path) -> None:
    fill(path)
    link = path.parent / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with SqliteStore(path, create=False) as store, SqliteStore(link, create=False) as same:
        store.claim(RunId("a"), "one")
        assert [run.owned for run in same.runs(RunQuery())] == [True]
    assert [entry.name for entry in link.parent.iterdir()] == ["link.db"]


# Lost commits.


def test_a_crash_loses_nothing(path: Path) -> None:
    crashed(path)
    with SqliteStore(path, create=False) as store:
        assert [row.seq for row in store.rows(RowQuery())] == [0, 1, 2, 3, 4]
        assert list(store.check()) == []
        assert not any(run.owned for run in store.runs(RunQuery()))


def test_a_deleted_log_is_lost_commits(path: Path) -> None:
    crashed(path)
    beside(path, "-wal").unlink()
    beside(path, "-shm").unlink()
    with pytest.raises(LostCommits) as caught:
        SqliteStore(path, create=True)
    assert caught.value.data["last"] == 5
    with SqliteStore(path, create=False, read_only=True) as store:
        assert [problem.what for problem in store.check()] == ["file"]


def test_the_log_of_another_database_is_lost_commits(path: Path, tmp_path: Path) -> None:
    crashed(path)
    other = tmp_path / "other.db"
    crashed(other, rows=2)
    beside(path, "-wal").write_bytes(beside(other, "-wal").read_bytes()[:-100])
    beside(path, "-shm").unlink()
    with pytest.raises((LostCommits, Damaged)):
        SqliteStore(path, create=True)


def test_an_older_copy_is_lost_commits(path: Path) -> None:
    fill(path)
    old = path.read_bytes()
    with SqliteStore(path, create=False) as store:
        SampleRun(store, "a", new=False).extend(2)
    path.write_bytes(old)
    with pytest.raises(LostCommits) as caught:
        SqliteStore(path, create=False)
    assert (caught.value.data["first"], caught.value.data["last"]) == (4, 5)


def test_a_cut_off_log_is_lost_commits_and_the_evidence_stays(path: Path) -> None:
    crashed(path)
    wal = beside(path, "-wal")
    data = bytearray(wal.read_bytes())
    data[len(data) // 2] ^= 1
    wal.write_bytes(data)
    beside(path, "-shm").unlink()
    with pytest.raises(LostCommits):
        SqliteStore(path, create=True)
    assert wal.read_bytes() == data


def test_a_loss_can_be_accepted_and_numbers_do_not_come_back(path: Path) -> None:
    crashed(path)
    beside(path, "-wal").unlink()
    beside(path, "-shm").unlink()
    with SqliteStore(path, create=False, read_only=True) as store:
        assert store.accept_loss() == 5
    with SqliteStore(path, create=False) as store:
        assert list(store.check()) == []
        assert SampleRun(store, "b").append().no == 6


@pytest.mark.parametrize("suffix", ["-wal", "-lock", "-anchor"])
def test_nothing_is_made_over_remains(path: Path, suffix: str) -> None:
    beside(path, suffix).write_bytes(b"remains")
    with pytest.raises(NotAStore, match=suffix):
        SqliteStore(path, create=True)
    assert not path.exists()


def test_a_removed_database_is_lost_commits(path: Path) -> None:
    fill(path)
    path.unlink()
    with pytest.raises(LostCommits, match="gone"):
        SqliteStore(path, create=True)
    assert not path.exists()


# Reading only.


def test_opened_for_reading_it_reads_and_does_not_write(path: Path) -> None:
    fill(path)
    with SqliteStore(path, create=True, read_only=True) as store:
        assert len(store.rows(RowQuery())) == 3
        for write in (lambda: store.claim(RunId("a"), "x"), lambda: store.set_meta("k", b"v")):
            with pytest.raises(StoreReadOnly):
                write()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


READER = """
import os, sys
from pathlib import Path
import attrs, apsw, orchestra.stores.sqlite as sqlite, orchestra.testing.samples
from orchestra.errors import StoreReadOnly
from orchestra.ports.store import RowQuery, RunQuery
os.setuid(65534)
with sqlite.SqliteStore(Path(sys.argv[1]), create=True) as store:
    assert len(store.rows(RowQuery())) == 3, store.rows(RowQuery())
    assert [run.owned for run in store.runs(RunQuery())] == [False]
    try:
        store.set_meta("k", b"v")
    except StoreReadOnly as error:
        print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not write")
@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_read_only_file_is_read(public: Path, mode: int) -> None:
    path = public / "store.db"
    fill(path)
    path.chmod(0o444)
    public.chmod(mode)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be written: the file is read-only" in done.stdout


# Two at once, and by URL.


def _create(path: str, go: str, results: "multiprocessing.Queue[str]") -> None:
    while not Path(go).exists():
        pass
    try:
        with SqliteStore(Path(path), create=True) as store:
            store.set_meta(str(os.getpid()), b"here")
        results.put("")
    except OrchestraError as error:
        results.put(repr(error))


@pytest.mark.parametrize("attempt", range(3))
def test_several_processes_make_one_store(path: Path, attempt: int) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = context.Queue()
    go = path.with_name("go")
    workers = [context.Process(target=_create, args=(str(path), str(go), results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    go.touch()
    assert [results.get(timeout=60) for _ in workers] == [""] * 3
    for worker in workers:
        worker.join()
    with SqliteStore(path, create=False) as store:
        assert all(store.meta(str(worker.pid)) == b"here" for worker in workers)


def test_by_url(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_sqlite(str(path), {"synchronous": "normal", "mmap": "64MB"}, True) as store:
        assert store.place == str(path)
    with open_sqlite(str(path), {"mode": "ro"}, False) as store, pytest.raises(StoreReadOnly):
        store.set_meta("k", b"v")


@pytest.mark.parametrize(
    "options", [{"sync": "full"}, {"synchronous": "off"}, {"mmap": "lots"}, {"mmap": "-1"}, {"mode": "x"}]
)
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(BadSetting):
        open_sqlite(str(tmp_path / "store.db"), options, True)
    assert list(tmp_path.iterdir()) == []


def test_the_application_id_marks_our_files(path: Path) -> None:
    fill(path)
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID


def test_a_lost_write_without_a_number_is_noticed_and_can_be_accepted(path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from orchestra.stores.sqlite import SqliteStore\n"
        "store = SqliteStore(Path(sys.argv[1]), create=True)\n"
        "store.set_meta('one', b'1'); store.set_meta('two', b'2'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    wal = beside(path, "-wal")
    data = bytearray(wal.read_bytes())
    data[-1] ^= 1
    wal.write_bytes(data)
    with pytest.raises(LostCommits, match="acknowledged"):
        SqliteStore(path, create=False)
    with pytest.raises(LostCommits, match="acknowledged"):
        open_store(f"sqlite:{path}", read_only=True)
    with SqliteStore(path, create=False, read_only=True) as store:
        store.accept_loss()
    with SqliteStore(path, create=False) as store:
        assert (store.meta("one"), store.meta("two")) == (b"1", None)
        assert list(store.check()) == []
