"""A files store whose process is killed, or whose disk fails, at every call to the operating system."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestra.errors import OrchestraError, StoreFailed, StoreFull, StoreReadOnly
from orchestra.ids import RunId
from orchestra.ports.store import Annotation, RowQuery, RunQuery, Store
from orchestra.stores.files import log
from orchestra.stores.files.store import FilesStore
from orchestra.testing.contract.base import sweep_all
from orchestra.testing.samples import NOON, SampleRun, sample_object

CALLS = ("write", "fsync", "replace", "rename", "mkdir", "rmdir", "unlink", "ftruncate", "utime", "open")
SEGMENT = 1500  # bytes: the workload fills several segments

Fact = tuple[object, ...]
Step = Callable[[Store, dict[str, SampleRun]], object]


def begin(name: str) -> Step:
    def step(store: Store, runs: dict[str, SampleRun]) -> None:
        runs[name] = SampleRun(store, name)

    return step


def append(*names: str, consume: bool = False) -> Step:
    def step(store: Store, runs: dict[str, SampleRun]) -> None:
        commits = []
        for name in names:
            head = runs[name].head
            seq = head.seq + 1 if head else 0
            waiting = tuple(command.id for command in store.commands(runs[name].run)) if consume else ()
            parts = {
                "objects": (sample_object(f"{name} {seq}"), sample_object("shared")),
                "consumed": waiting,
            }
            commits.append(runs[name].commit(parts=parts))
        for name, commit, result in zip(names, commits, store.commit(commits), strict=True):
            runs[name].accept(commit, result)

    return step


def again(store: Store, runs: dict[str, SampleRun]) -> None:
    runs["a"].release()
    runs["a"] = SampleRun(store, "a", new=False)


def delete(store: Store, runs: dict[str, SampleRun]) -> None:
    runs["b"].release()
    store.delete(RunId("b"))


def sweep(store: Store, runs: dict[str, SampleRun]) -> None:
    sweep_all(store, [sample_object(f"b {n}")[0] for n in range(9)])


STEPS: list[Step] = [
    begin("a"),
    append("a"),
    append("a"),
    begin("b"),
    append("a", "b"),
    lambda store, runs: store.send(RunId("a"), b"pause", NOON),
    lambda store, runs: store.annotate(Annotation(run=RunId("a"), seq=1, kind="note", body=b"n")),
    append("b", "a", consume=True),
    lambda store, runs: store.put_objects([sample_object("ahead")]),
    again,
    append("a", "b"),
    lambda store, runs: store.prune(RunId("a"), [0, 1, 2]),
    lambda store, runs: store.set_meta("key", b"value"),
    delete,
    sweep,
    append("a"),
]


def facts(store: Store) -> set[Fact]:
    """Everything a store shows, one by one."""
    found: set[Fact] = {("meta", store.meta("key"))}
    for run in store.runs(RunQuery()):
        found.add(("fence", run.run, run.fence))
        found |= {("command", run.run, command.id, command.body) for command in store.commands(run.run)}
        found |= {("note", note.run, note.seq, note.body) for note in store.annotations(run.run)}
    for row in store.rows(RowQuery()):
        found.add(("row", row.run, row.seq, row.no, row.digest, row.header, row.patch))
        for text in (f"{row.run} {row.seq}", "shared"):
            assert store.get_objects([sample_object(text)[0]]), f"{row.run}@{row.seq} lacks {text}"
    objects = store.get_objects([info.digest for info in store.objects()])
    return found | {("object", digest, data) for digest, data in objects.items()}


def stages(root: Path) -> list[set[Fact]]:
    """What a store shows before the first step and after each."""
    runs: dict[str, SampleRun] = {}
    with FilesStore(root, create=True) as store:
        seen = [facts(store)]
        for step in STEPS:
            step(store, runs)
            seen.append(facts(store))
    return seen


def verify(root: Path, done: int, expected: list[set[Fact]]) -> str | None:
    """What is wrong with a store after `done` acknowledged steps and a crash somewhere in the next one."""
    before, after = expected[done], expected[min(done + 1, len(STEPS))]
    try:
        with FilesStore(root, create=True) as store:
            found = facts(store)
            problems = list(store.check())
            for name in ("a", "b"):
                run = SampleRun(store, name, new=store.run(RunId(name)) is None)
                run.append()
    except (OrchestraError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    if problems:
        return str(problems)
    lost, surplus = (before & after) - found, found - (before | after)
    return f"lost {lost}, surplus {surplus}" if lost or surplus else None


@contextlib.contextmanager
def intercepted(strike: Callable[[str], None]) -> Iterator[None]:
    """Ask before every call that changes the disk."""
    real: dict[str, Any] = {name: getattr(os, name) for name in CALLS}

    def watched(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            strike(name)
            return real[name](*args, **options)

        return call

    try:
        for name in CALLS:
            setattr(os, name, watched(name))
        yield
    finally:
        for name in CALLS:
            setattr(os, name, real[name])


def work(root: Path, acknowledge: Callable[[int], object]) -> None:
    """All steps, acknowledging each."""
    runs: dict[str, SampleRun] = {}
    with FilesStore(root, create=True) as store:
        for number, step in enumerate(STEPS, start=1):
            step(store, runs)
            acknowledge(number)


class Nth:
    """Strikes at the n-th call, and counts."""

    def __init__(self, nth: int | None, strike: Callable[[], None]) -> None:
        self.nth, self.strike, self.count = nth, strike, 0

    def __call__(self, name: str) -> None:
        self.count += 1
        if self.nth is not None and self.count == self.nth:
            self.strike()


# --- killed: in a process of its own, because it forks once for every call


def drive(base: str) -> None:
    """Kill a child at each call in turn; print what was wrong afterwards, and how many calls there were."""
    log.SEGMENT_BYTES = SEGMENT
    expected = stages(Path(base) / "undisturbed")
    count = Nth(None, lambda: None)
    with intercepted(count):
        work(Path(base) / "counted", lambda number: None)
    wrong = {}
    for nth in range(1, count.count + 1):
        root = Path(base) / "killed"
        done = _killed(root, nth)
        problem = verify(root, done, expected)
        if problem:
            wrong[nth] = f"after step {done}: {problem}"
        shutil.rmtree(root, ignore_errors=True)
    print(json.dumps({"calls": count.count, "wrong": wrong}))


def _killed(root: Path, nth: int) -> int:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        acknowledge = os.write
        with intercepted(Nth(nth, lambda: os.kill(os.getpid(), signal.SIGKILL))):
            work(root, lambda number: acknowledge(write, b"."))
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as said:
        return len(said.read())


def test_killed_at_every_call(tmp_path: Path) -> None:
    script = f"from {__name__} import drive; drive({str(tmp_path)!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["calls"] > 100
    assert report["wrong"] == {}


# --- failing: the call reports an error instead of being done


@pytest.mark.parametrize(
    ("code", "error", "lasting"),
    [
        (errno.EIO, StoreFailed, False),
        (errno.EIO, StoreFailed, True),
        (errno.ENOSPC, StoreFull, False),
        (errno.ENOSPC, StoreFull, True),
        (errno.EROFS, StoreReadOnly, True),
    ],
    ids=["EIO once", "EIO", "ENOSPC once", "ENOSPC", "EROFS"],
)
def test_failing_at_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[OrchestraError], lasting: bool
) -> None:
    """One call fails, or all from there on do, until the process gives up. Nothing acknowledged is lost."""
    monkeypatch.setattr(log, "SEGMENT_BYTES", SEGMENT)
    expected = stages(tmp_path / "undisturbed")
    count = Nth(None, lambda: None)
    with intercepted(count):
        work(tmp_path / "counted", lambda number: None)
    for nth in range(1, count.count + 1):
        root = tmp_path / f"failed-{nth}"
        done = _failed(root, nth, code, error, lasting=lasting)
        assert verify(root, done, expected) is None, f"call {nth}"
        shutil.rmtree(root, ignore_errors=True)


def _failed(root: Path, nth: int, code: int, error: type[OrchestraError], *, lasting: bool) -> int:
    done = 0
    struck = 0

    def strike(name: str) -> None:
        nonlocal struck
        struck += 1
        if struck == nth or (lasting and struck > nth):
            raise OSError(code, os.strerror(code))

    def acknowledge(number: int) -> None:
        nonlocal done
        done = number

    with intercepted(strike), contextlib.suppress(error):
        work(root, acknowledge)
    return done


def test_work_goes_on_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the store still open, the step that failed is simply done again."""
    monkeypatch.setattr(log, "SEGMENT_BYTES", SEGMENT)
    for nth in range(1, 40):
        with FilesStore(tmp_path / f"store-{nth}", create=True) as store:
            run = SampleRun(store, "a")
            run.extend(3)
            before = facts_of_rows(store)
            commit = run.commit(parts={"objects": (sample_object("leaf"),)}, patch=b"x" * 2000)
            failing = Nth(nth, _no_space)
            with intercepted(failing), contextlib.suppress(StoreFull):
                store.commit([commit])
            if failing.count < nth:
                break
            assert facts_of_rows(store) == before
            run.accept(commit, store.commit([commit])[0])
            assert list(store.check()) == []
    else:
        pytest.fail("the commit never went through")
    assert nth > 5


def _no_space() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def facts_of_rows(store: Store) -> list[object]:
    """The rows and objects there are."""
    return [store.rows(RowQuery()), sorted(info.digest for info in store.objects()), store.last_no()]
