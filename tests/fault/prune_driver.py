"""Kills processes that prune a SQLite store while another process records into it. Run by `test_prune_kill`.

    python -m tests.fault.prune_driver FOLDER kill 100
    python -m tests.fault.prune_driver FOLDER stop 0

Every piece of work is done by a process of its own, forked from this one, which touches no store and starts
no thread. A process that is to die does so by SIGKILL at a given write or sync below SQLite.
"""

import json
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import anyio
import apsw

from orchestra.checkpoint.retention.garbage import collect
from orchestra.checkpoint.retention.plan import plan_run, prune_store
from orchestra.checkpoint.settings import RetentionSettings
from orchestra.errors import OrchestraError, PrunedSnapshot
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.ports.store import Commit, Store
from orchestra.stores.sqlite.store import SqliteStore
from orchestra.testing import FaultPlan, FaultyStore
from tests.unit.checkpoint.retention.pruning import (
    Teller,
    after_grace,
    assert_chained,
    days_after,
    forked,
    manager_of,
    recorded,
    whole_seqs,
)

RULES: Final = RetentionSettings(per_phase=1)
ENDED: Final = (RunId("a"), RunId("b"))
LIVE: Final = RunId("c")
REFUSED: Final = 3
"""Exit code of a process whose work was refused as it should be."""


def main(folder: Path, mode: str, points: int) -> None:
    """Do it all; raises when anything is not as it should be."""
    template = folder / "template"
    template.mkdir()
    done(fork(lambda: prepare(template)))
    if mode == "kill":
        kill_everywhere(folder, template, points)
    else:
        stop_everywhere(folder, template)


# --- processes


def fork(work: Callable[[], object]) -> int:
    """Start a process that does this and nothing else."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except PrunedSnapshot:
        code = REFUSED
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def done(child: int, *expected: int) -> int:
    """Wait for a process; its exit code (or, negative, its signal) must be 0 or among the expected."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, *expected), f"a process ended with {code}"
    return code


# --- the work


def opened(folder: Path) -> SqliteStore:
    """The store, for those that are not to die: what they write outlives a process without being synced."""
    return SqliteStore(folder / "db", create=False, synchronous="normal")


def prepare(folder: Path) -> None:
    """Runs to prune, a run to go on with, and garbage; beside it what must be left."""
    with SqliteStore(folder / "db", create=True) as store:
        recorded(store, ("a", 230, "completed"), ("b", 190, "failed"), ("c", 3, None), seed=4, rollbacks=0)
        recorded(store, ("gone", 40, "completed"), seed=9)
        store.delete(RunId("gone"))
        archive = Archive(store)
        plans = {run: plan_run(archive, run, RULES, now=days_after(1)) for run in ENDED}
        assert all(plan.dropped for plan in plans.values())
    kept = {run: sorted(plan.kept) for run, plan in plans.items()}
    (folder / "kept.json").write_text(json.dumps(kept))


def prune(store: Store) -> None:
    """Prune and collect as hard as one can."""
    prune_store(Archive(store), RULES, now=days_after(1))
    report = collect(Archive(store), now=after_grace(), grace_seconds=0)
    assert report.problems == ()


def prune_until(folder: Path, deadly: int | None) -> None:
    """Prune and collect; die at that write or sync, or leave a note of how many there were."""
    vfs = DeadlyVfs(deadly)
    with SqliteStore(folder / "db", create=False, vfs=vfs.name) as store:
        prune(store)
    (folder / "writes").write_text(str(vfs.writes))


def record(folder: Path, ready: int, stop: int, others_end: int) -> None:
    """Record until told to stop, noting what was acknowledged."""
    os.close(others_end)

    async def go_on(store: Store) -> None:
        async with manager_of(store) as manager:
            teller = Teller(manager, seed=9, rollbacks=0.0)
            teller.made = 1000
            active = await manager.restore(LIVE)
            with (folder / "acknowledged").open("a", buffering=1) as acknowledged:
                for turn in count():
                    await teller.turn(active)
                    acknowledged.write(f"{active.seq}\n")
                    if turn == 0:
                        os.write(ready, b"!")
                    if stopped(stop):
                        return

    with opened(folder) as store:
        anyio.run(go_on, store)


def stopped(pipe: int) -> bool:
    """Whether somebody wrote into the pipe, or nobody is there to do so any more."""
    os.set_blocking(pipe, False)
    try:
        os.read(pipe, 1)
    except BlockingIOError:
        return False
    return True


def verify(folder: Path) -> None:
    """Nothing that was kept or acknowledged is lost, now and after pruning was finished."""
    kept = {RunId(run): seqs for run, seqs in json.loads((folder / "kept.json").read_text()).items()}
    with opened(folder) as store:
        assert list(store.check()) == []
        assert_kept(store, kept)
        assert_acknowledged(store, folder / "acknowledged")
        prune(store)
        assert_kept(store, kept)
        assert {run: sorted(whole_seqs(store, run)) for run in kept} == kept
        assert_acknowledged(store, folder / "acknowledged")
        assert_chained(store)


def assert_kept(store: Store, kept: dict[RunId, list[int]]) -> None:
    archive = Archive(store)
    for run, seqs in kept.items():
        assert whole_seqs(store, run) >= set(seqs)
        for seq in [*seqs[::16], seqs[-1]]:
            archive.state(run, seq)  # everything read is proved by its digest


def assert_acknowledged(store: Store, notes: Path) -> None:
    if notes.exists():
        last = int(notes.read_text().splitlines()[-1])
        assert whole_seqs(store, LIVE) >= set(range(last + 1))
        Archive(store).state(LIVE, last)


# --- killing


class DeadlyVfs(apsw.VFS):
    """Counts writes and syncs, and ends the process at one of them."""

    def __init__(self, deadly: int | None) -> None:
        self.name, self.writes, self._deadly = "deadly", 0, deadly
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self, name, flags)

    def strike(self) -> None:
        if self.writes == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        self.writes += 1


class _File(apsw.VFSFile):
    def __init__(self, vfs: DeadlyVfs, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._vfs.strike()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._vfs.strike()
        super().xSync(flags)


def kill_everywhere(folder: Path, template: Path, points: int) -> None:
    """Kill the pruning process at points spread over all its writes, or at every one when `points` is 0."""
    calm = Path(shutil.copytree(template, folder / "calm"))
    done(fork(lambda: prune_until(calm, None)))
    writes = int((calm / "writes").read_text())
    points = points or writes
    assert writes >= points, f"only {writes} writes to die at"
    killed = 0
    for point in range(points):
        place = Path(shutil.copytree(template, folder / "now"))
        killed += kill_at(place, point * writes // points) == -signal.SIGKILL
        shutil.rmtree(place)
    # Another process's writes change how many the pruning makes, so a few may outlive their point.
    assert killed >= points * 0.9, f"only {killed} of {points} died"
    print(f"{killed} killed at {writes} writes")


def kill_at(place: Path, deadly: int) -> int:
    ready, begun = os.pipe()
    told, stop = os.pipe()
    recorder = fork(lambda: record(place, begun, told, stop))
    os.close(begun)
    assert os.read(ready, 1) == b"!", "the recorder did not begin"
    code = done(fork(lambda: prune_until(place, deadly)), -signal.SIGKILL)
    os.write(stop, b"!")
    done(recorder)
    for pipe in (ready, told, stop):
        os.close(pipe)
    done(fork(lambda: verify(place)))
    return code


# --- stopping


class Stopping(FaultyStore):
    """Stops the process before its n-th commit, until somebody lets it go on.

    All its threads stop, so none of them may be in a transaction then: the one that makes the log long would
    keep the database locked for as long as the process stands still.
    """

    def __init__(self, inner: SqliteStore, nth: int) -> None:
        super().__init__(inner, FaultPlan())
        self._left = nth
        self._pool = inner._pool

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        if self._left == 0:
            with self._pool.pause():
                # This very thread: if another took the signal, this one could be past here when it stops.
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        self._left -= 1
        return super().commit(commits, patient=patient)


def stop_everywhere(folder: Path, template: Path) -> None:
    """Stop a writer at a commit, prune and collect everything, and let it go on."""
    kept = json.loads((template / "kept.json").read_text())["a"]
    gone = next(seq for seq in range(80) if seq not in kept)
    for nth in (0, 1, 30, 31, 32):
        assert stop_at(folder, template, lambda place, nth=nth: record_some(place, nth)) == 0  # type: ignore[misc]
    assert stop_at(folder, template, lambda place: fork_from(place, gone)) == REFUSED
    assert stop_at(folder, template, lambda place: fork_from(place, kept[-1])) == 0


def stop_at(folder: Path, template: Path, work: Callable[[Path], None]) -> int:
    place = Path(shutil.copytree(template, folder / "now"))
    writer = fork(lambda: work(place))
    _, status = os.waitpid(writer, os.WUNTRACED)
    assert os.WIFSTOPPED(status), "the writer did not stop"
    try:
        done(fork(lambda: prune_until(place, None)))
    finally:
        os.kill(writer, signal.SIGCONT)
    code = done(writer, REFUSED)
    done(fork(lambda: verify(place)))
    shutil.rmtree(place)
    return code


def record_some(folder: Path, nth: int) -> None:
    """Record past the next seal, stopping once on the way."""

    async def go_on(store: Store) -> None:
        async with manager_of(store) as manager:
            teller = Teller(manager, seed=9, rollbacks=0.1)
            teller.made = 1000
            active = await manager.restore(LIVE)
            for _ in range(36):
                await teller.turn(active)
            (folder / "acknowledged").write_text(f"{active.seq}\n")

    with opened(folder) as store:
        anyio.run(go_on, Stopping(store, nth))


def fork_from(folder: Path, seq: int) -> None:
    """Fork a run, stopping when the base was read and nothing is written yet."""
    with opened(folder) as store:
        states = forked(Stopping(store, 0), "a", seq, "d", 2)
        archive = Archive(store)
        for (run, each), state in states.items():
            assert archive.state(run, each) == state


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
