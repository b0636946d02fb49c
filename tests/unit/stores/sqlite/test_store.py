"""What the SQLite store does beyond the contract: its files, its log, its checks."""

import threading
from pathlib import Path

import apsw
import pytest

from orchestra import limits
from orchestra.errors import BadName, Damaged, LostCommits, PrunedSnapshot, StoreFailed
from orchestra.ids import Digest, Instant, RunId
from orchestra.ports.store import Annotation, Row, RowQuery
from orchestra.stores.sqlite import SqliteStore
from orchestra.stores.sqlite.statements import SQL, parse
from orchestra.testing.samples import SampleRun, sample_object


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def change(path: Path, statement: str) -> None:
    """Change a closed store behind its back."""
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def test_closing_leaves_no_log(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        SampleRun(store, "a").extend(3)
        assert path.with_name("store.db-wal").stat().st_size
    assert not path.with_name("store.db-wal").exists()
    assert not path.with_name("store.db-shm").exists()


@pytest.mark.parametrize("how", ["removed", "exchanged"])
def test_a_commit_into_a_file_that_is_gone_is_not_acknowledged(path: Path, how: str) -> None:
    with SqliteStore(path, create=True) as store:
        begun = SampleRun(store, "a")
        begun.extend(3)
        path.unlink()
        if how == "exchanged":
            path.write_bytes(b"something else")
        with pytest.raises(LostCommits, match="removed or exchanged"):
            begun.append()


def test_the_log_does_not_grow_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAL_CHECKPOINT_BYTES", 200_000)
    moved = threading.Event()
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        biggest = 0
        for _ in range(2000):
            run.append(patch=b"p" * 4000)
            size = path.with_name("store.db-wal").stat().st_size
            if store._pool.frames * 4120 < size:
                moved.set()  # the log began anew, inside a file that keeps its size
                break
            biggest = max(biggest, size)
        assert moved.is_set()
        assert list(store.check()) == []


@pytest.mark.parametrize(
    ("statement", "what", "where"),
    [
        ("UPDATE rows SET status = 'done' WHERE seq = 1", "row", "a@1"),
        ("UPDATE rows SET patch = x'00' WHERE seq = 2", "row", "a@2"),
        ("UPDATE rows SET seq = 9 WHERE seq = 3", "run", "a"),
        ("DELETE FROM rows WHERE seq = 3", "run", "a"),
        ("UPDATE runs SET fence = 7", "run", "a"),
        ("UPDATE runs SET owner = NULL", "run", "a"),
        ("UPDATE objects SET body = x'00'", "object", sample_object("o")[0].hex()),
        ("UPDATE objects SET at = at - 1", "object", sample_object("o")[0].hex()),
        ("UPDATE commands SET body = x'00'", "command", "a 1"),
        ("UPDATE annotations SET kind = 'note'", "annotation", "a@0"),
        ("UPDATE meta SET value = x'00'", "fact", "meta 'key'"),
        ("UPDATE counters SET value = 0", "fact", "counters 'commands'"),
        ("DELETE FROM runs", "run", "run number 1"),
        ("DROP INDEX rows_by_seq", "file", None),
    ],
)
def test_a_check_names_what_was_changed(path: Path, statement: str, what: str, where: str | None) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        run.append(parts={"objects": (sample_object("o"),)})
        run.extend(3)
        store.send(run.run, b"command", Instant(1))
        store.set_meta("key", b"value")
        store.annotate(Annotation(run=run.run, seq=0, kind="pin", body=b"x"))
        read = SqliteStore(path, create=False, read_only=True)
    change(path, statement)
    problems = list(read.check())
    read.close()
    assert (what, where or str(path)) in {(problem.what, problem.where) for problem in problems}


def test_a_missing_row_is_not_passed_over(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        SampleRun(store, "a").extend(4)
    change(path, "DELETE FROM rows WHERE seq = 2")
    with SqliteStore(path, create=False) as store:
        assert [row.seq for row in store.rows(RowQuery(run=RunId("a"), last=1))] == [0, 1]
        with pytest.raises(Damaged, match="a@2"):
            store.rows(RowQuery(run=RunId("a")))


def test_one_damaged_run_does_not_take_others_down(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        SampleRun(store, "a").append()
        SampleRun(store, "b").append()
    change(path, "UPDATE runs SET owner = 'x' WHERE run = 'a'")
    with SqliteStore(path, create=False) as store:
        b = SampleRun(store, "b", new=False)
        bad = SampleRun(store, "c")
        bad.run = RunId("a")
        answers = store.commit([bad.commit(), b.commit()])
        assert isinstance(answers[0], Damaged)
        assert answers[1] == 3


def test_numbers_do_not_come_back_after_a_delete(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        run.extend(3)
        run.release()
        store.delete(run.run)
        assert store.last_no() == 3
    with SqliteStore(path, create=False) as store:
        assert SampleRun(store, "b").append().no == 4


def test_a_sweep_may_read_the_store_it_sweeps(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        digest, data = sample_object("kept")
        run = SampleRun(store, "a")
        run.append(parts={"objects": ((digest, data),)})

        def spared(rows: list[Row]) -> list[Digest]:
            return [digest] if store.get_objects([digest]) else []

        assert store.sweep([digest], since=0, older_than=Instant(2**62), spared=spared) == 0


def test_a_sweep_in_steps_asks_again_about_new_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GC_BATCH_OBJECTS", 1)
    with SqliteStore(path, create=True) as store:
        objects = dict(sample_object(f"object {number}") for number in range(5))
        store.put_objects(objects.items())
        run = SampleRun(store, "a")
        asked: list[list[int]] = []

        def spared(rows: list[Row]) -> list[Digest]:
            asked.append([row.seq for row in rows])
            if len(asked) == 1:  # the next step finds a row that was not there in this one
                waiting.start()
            return []

        waiting = threading.Thread(target=run.append)

        run.append()
        removed = store.sweep(list(objects), since=0, older_than=Instant(2**62), spared=spared)
        waiting.join()
        assert removed == 5
        assert asked[0] == [0]
        assert asked[1:] in ([], [[1]])


def test_nearest_kept_snapshots_are_named(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        run.extend(6)
        store.prune(run.run, [2, 3])
        answer = store.commit([run.commit(parts={"whole": (run.run, 2)})])[0]
        assert isinstance(answer, PrunedSnapshot)
        assert "a@1 and a@4" in str(answer)


def test_large_objects_are_kept(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        digest, data = sample_object("large", 100 * limits.MB)
        store.put_objects([(digest, data)])
        assert store.get_objects([digest])[digest] == data
        assert [info.size for info in store.objects()] == [100 * limits.MB]


def test_every_statement_is_whole() -> None:
    assert not any("{" in statement for statement in SQL.values())
    assert parse("-- name: a\nSELECT 1\n-- a comment\n\n-- name: b\n{a} + 1\n") == {
        "a": "SELECT 1",
        "b": "SELECT 1 + 1",
    }


def test_compact_gives_space_back(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        run.append(patch=b"p" * 500_000)
        run.release()
        store.delete(run.run)
        before = store.stats().file_bytes
        store.compact()
        assert store.stats().file_bytes < before - 400_000
        assert list(store.check()) == []


def test_a_list_that_could_not_come_back_is_refused(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        with pytest.raises(BadName):
            run.append(agents=("one\x1ftwo",))
        assert store.last_no() == 0


def test_text_that_is_no_text_is_refused_and_the_store_goes_on(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        with pytest.raises(StoreFailed, match="BUG"):
            run.append(status="\ud800")
        run.append()
