"""Several processes on one store, some of which die."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from orchestra import limits
from orchestra.errors import FenceLost, RunExists, RunOwned, StoreBusy, StoreClosed
from orchestra.ids import RunId
from orchestra.ports.store import RowQuery, RunQuery, Store
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.samples import SampleRun, sample_commit, sample_row

PREAMBLE = """
import os, sys
from pathlib import Path
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.samples import SampleRun, sample_object
store = SqliteStore(Path(sys.argv[1]), create=True)
"""


@contextmanager
def child(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `code` on the store named first; killed at the end if it lives."""
    command = [sys.executable, "-c", PREAMBLE + code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def seqs(store: Store, run: str) -> list[int]:
    return [row.seq for row in store.rows(RowQuery(run=RunId(run)))]


OWN = "run = SampleRun(store, sys.argv[2]); run.append(); print('owned', flush=True); sys.stdin.read()"


def test_a_run_is_free_the_moment_its_owner_dies(path: Path) -> None:
    with child(OWN, path, "a") as owner, SqliteStore(path, create=True) as store:
        assert line(owner) == "owned"
        assert [run.owned for run in store.runs(RunQuery())] == [True]
        with pytest.raises(RunOwned, match="the contract suite"):
            store.claim(RunId("a"), "me")
        with pytest.raises(RunOwned):
            store.delete(RunId("a"))
        owner.kill()
        owner.wait()
        assert [run.owned for run in store.runs(RunQuery())] == [False]
        assert store.claim(RunId("a"), "me").fence == 2


def test_a_claim_on_a_new_run_excludes_others_before_its_first_commit(path: Path) -> None:
    with SqliteStore(path, create=True) as one, SqliteStore(path, create=False) as two:
        run = SampleRun(one, "a")
        assert one.run(run.run) is None
        with pytest.raises(RunOwned):
            two.claim(run.run, "me", new=True)
        run.append()
        run.release()
        with pytest.raises(RunExists):
            two.claim(run.run, "me", new=True)
        two.claim(run.run, "me")
        with pytest.raises(AssertionError) as caught:
            run.append()
        assert isinstance(caught.value.__cause__, FenceLost)


def test_one_of_many_claims_wins(path: Path) -> None:
    stores = [SqliteStore(path, create=True) for _ in range(4)]
    for number in range(50):
        won: list[int] = []
        gate = threading.Barrier(len(stores))

        def race(
            index: int, run: str = f"run{number}", won: list[int] = won, gate: threading.Barrier = gate
        ) -> None:
            gate.wait()
            try:
                stores[index].claim(RunId(run), str(index), new=True)
                won.append(index)
            except RunOwned:
                pass

        threads = [threading.Thread(target=race, args=(index,)) for index in range(len(stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
    for store in stores:
        store.close()


def test_a_forked_child_may_not_use_the_store(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        run.append()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            answer = "used it"
            try:
                store.commit([sample_commit(sample_row("a", 1, run.head), run.head)])
            except StoreClosed as error:
                answer = str(error)
            os.write(writing, answer.encode())
            os._exit(0)
        os.waitpid(pid, 0)
        assert "before a fork" in os.read(reading, 1000).decode()
        run.append()
        assert list(store.check()) == []


FORK = """
SampleRun(store, 'a').append()
if os.fork():
    os._exit(0)
print('orphan', flush=True)
sys.stdin.read()
"""


def test_a_child_that_outlives_its_parent_does_not_keep_its_runs(path: Path) -> None:
    with child(FORK, path) as parent:
        line(parent)
        parent.wait()
        with SqliteStore(path, create=True) as store:
            assert [run.owned for run in store.runs(RunQuery())] == [False]
            store.claim(RunId("a"), "me")


COMMIT = """
run = SampleRun(store, 'a')
while True:
    print(run.append(parts={'objects': (sample_object(str(run.head), 3000),)}).seq, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 40, 200])
def test_what_was_acknowledged_survives_a_kill(path: Path, after: int) -> None:
    with child(COMMIT, path) as process:
        acknowledged = [int(line(process)) for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        assert process.stdout is not None
        acknowledged += [int(rest) for rest in process.stdout.read().split()]
        process.wait()
    with SqliteStore(path, create=False) as store:
        found = seqs(store, "a")
        # The last commit may have been made without being acknowledged any more.
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1
        assert list(store.check()) == []
        run = SampleRun(store, "a", new=False)
        run.extend(2)
        assert len(seqs(store, "a")) == len(found) + 2


MANY = "run = SampleRun(store, sys.argv[2]); run.extend(40); print('done', flush=True); store.close()"


def test_processes_write_side_by_side(path: Path) -> None:
    SqliteStore(path, create=True).close()
    with child(MANY, path, "a") as a, child(MANY, path, "b") as b, child(MANY, path, "c") as c:
        assert [line(process) for process in (a, b, c)] == ["done"] * 3
        assert [process.wait() for process in (a, b, c)] == [0, 0, 0]
    with SqliteStore(path, create=False) as store:
        assert all(len(seqs(store, run)) == 40 for run in "abc")
        assert [row.no for row in store.rows(RowQuery(after_no=0))] == list(range(1, 121))
        assert list(store.check()) == []


def test_a_lock_that_is_never_given_back_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BUSY_SECONDS", 0.1)
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        run.append()
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="locked by other processes"):
            run.append()
        other.execute("ROLLBACK")
        other.close()
        run.append()


def test_a_lock_that_is_given_back_is_waited_for(path: Path) -> None:
    with SqliteStore(path, create=True) as store:
        run = SampleRun(store, "a")
        run.append()
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=run.append)
        waiting.start()
        other.execute("COMMIT")
        other.close()
        waiting.join()
        assert seqs(store, "a") == [0, 1]


def test_spawned_processes_open_their_own(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with SqliteStore(path, create=True) as store:
        worker = context.Process(target=_write, args=(str(path),))
        worker.start()
        SampleRun(store, "b").extend(5)
        worker.join()
        assert worker.exitcode == 0
        assert seqs(store, "a") == [0, 1, 2, 3, 4]


def _write(path: str) -> None:
    with SqliteStore(Path(path), create=False) as store:
        SampleRun(store, "a").extend(5)
