"""A files store whose bytes are not those that were written: damage is named, not cut away, not served."""

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestra.errors import Damaged, OrchestraError, StoreFull
from orchestra.ids import Instant, RunId
from orchestra.ports.store import Annotation, RowQuery, RunQuery, Store
from orchestra.stores.files import disk, log
from orchestra.stores.files.store import FilesStore
from orchestra.testing.contract.base import FAR, sweep_all
from orchestra.testing.samples import NOON, SampleRun, sample_object

A, B = RunId("a"), RunId("b")
FLIPS = 1000


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of two runs, several segments, everything that a store can hold."""
    monkeypatch.setattr(log, "SEGMENT_BYTES", 2500)
    with FilesStore(tmp_path / "store", create=True) as store:
        for name in "abc":
            run = SampleRun(store, name)
            run.append(parts={"objects": (sample_object(f"leaf of {name}", 300),)})
            run.extend(8)
            store.send(run.run, b"pause", NOON)
            store.annotate(Annotation(run=run.run, seq=2, kind="note", body=b"n"))
            run.append()
            run.release()
        store.prune(A, [1])
        store.set_meta("key", b"value")
        store.delete(RunId("c"))
    return tmp_path / "store"


READS: dict[str, Callable[[Store], object]] = {
    "runs": lambda store: [run for run in store.runs(RunQuery()) if not _damaged(store, run.run)],
    "rows of a": lambda store: store.rows(RowQuery(run=A)),
    "rows of b": lambda store: store.rows(RowQuery(run=B)),
    "row 0 of a": lambda store: store.rows(RowQuery(run=A, last=0)),
    "all rows": lambda store: store.rows(RowQuery(after_no=0)),
    "objects": lambda store: sorted(store.get_objects([info.digest for info in store.objects()]).items()),
    "commands": lambda store: [store.commands(A), store.commands(B)],
    "annotations": lambda store: [store.annotations(A), store.annotations(B)],
    "meta": lambda store: store.meta("key"),
}


def _damaged(store: Store, run: RunId) -> bool:
    try:
        store.run(run)
    except Damaged:
        return True
    return False


def answers(store: Store) -> dict[str, object]:
    """What each way of reading gives: its answer, or the error."""
    given: dict[str, object] = {}
    for name, read in READS.items():
        try:
            given[name] = read(store)
        except OrchestraError as error:
            given[name] = error
    return given


def test_flipped_bits_are_named_and_never_served(root: Path) -> None:
    with FilesStore(root) as store:
        truth = answers(store)
    files = [p for p in sorted(root.rglob("*")) if p.is_file() and p.name not in ("lock", "ballast")]
    chance = random.Random(7)
    for _ in range(FLIPS):
        path = chance.choice(files)
        whole = path.read_bytes()
        flipped = bytearray(whole)
        bit = chance.randrange(len(whole) * 8)
        flipped[bit // 8] ^= 1 << bit % 8
        _rewrite(path, bytes(flipped))
        _examine(root, truth, f"{path.relative_to(root)} bit {bit}")
        assert path.read_bytes() == flipped, "damage was changed"
        _rewrite(path, whole)
    with FilesStore(root) as store:
        assert list(store.check()) == []
        assert answers(store) == truth


def _rewrite(path: Path, data: bytes) -> None:
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _examine(root: Path, truth: dict[str, object], what: str) -> None:
    try:
        store = FilesStore(root)
    except OrchestraError:
        return
    with store:
        assert list(store.check()), f"{what} went unnoticed"
        for name, answer in answers(store).items():
            if name == "runs" and isinstance(answer, list):
                assert all(run in truth["runs"] for run in answer), what  # type: ignore[operator]
            else:
                assert isinstance(answer, OrchestraError) or answer == truth[name], f"{what}: {name}"


def test_other_runs_go_on_beside_a_damaged_one(root: Path) -> None:
    with FilesStore(root) as store:
        last = store.last_no()
    _damage(root / "runs" / "a" / "log-000001", 5)
    with FilesStore(root) as store:
        assert {run.run for run in store.runs(RunQuery())} == {A, B}
        assert SampleRun(store, "b", new=False).append().no > last
        assert [row.seq for row in store.rows(RowQuery(run=A, last=1))] == [0, 1]
        for refused in (
            lambda: store.rows(RowQuery(run=A)),
            lambda: store.rows(RowQuery(after_no=0)),
            lambda: store.claim(A, "owner"),
            lambda: store.send(A, b"pause", NOON),
            lambda: store.prune(A, [0]),
            lambda: store.sweep([], since=0, older_than=FAR, spared=lambda rows: ()),
        ):
            with pytest.raises(Damaged, match=r"'a'|runs/a"):
                refused()
        assert [problem.where for problem in store.check()] == ["a"]
        store.delete(A)
        assert list(store.check()) == []
        assert len(store.rows(RowQuery(after_no=0))) == 11


def test_a_damaged_row_is_read_without_its_contents(root: Path) -> None:
    path = root / "runs" / "b" / "log-000000"
    _damage(path, path.read_bytes().index(b"patch of b@1"))
    with FilesStore(root) as store:
        assert len(store.rows(RowQuery(run=B, content=False))) == 10
        assert len(store.rows(RowQuery(run=B, first=2))) == 8
        with pytest.raises(Damaged, match="b@1 "):
            store.rows(RowQuery(run=B))
        with pytest.raises(Damaged):
            store.prune(B, [1])
        assert [(problem.what, problem.where) for problem in store.check()] == [("row", "b@1")]


def test_a_damaged_number_stops_new_commits_only(root: Path) -> None:
    _damage(root / "last_no", 22)
    with FilesStore(root) as store:
        assert len(store.rows(RowQuery(after_no=0))) == 20
        run = SampleRun(store, "b", new=False)
        with pytest.raises(Damaged, match="last_no"):
            run.append()
        assert [problem.where for problem in store.check()] == [str(root / "last_no")]


@pytest.mark.parametrize("kept", ["nothing", "half", "all but the mark"])
def test_an_unfinished_end_is_cut_off(root: Path, kept: str) -> None:
    path = max((root / "runs" / "b").iterdir())
    whole = path.read_bytes()
    with FilesStore(root) as store:
        before = store.rows(RowQuery(run=B))
        SampleRun(store, "b", new=False).append()
    longer = max((root / "runs" / "b").iterdir()).read_bytes()
    assert longer.startswith(whole)
    half = (len(whole) + len(longer)) // 2
    size = {"nothing": len(whole) + 3, "half": half, "all but the mark": len(longer) - 1}[kept]
    path.write_bytes(longer[:size])
    with FilesStore(root) as store:
        assert store.rows(RowQuery(run=B)) == before
        assert list(store.check()) == []
        SampleRun(store, "b", new=False).append()


def test_an_unfinished_middle_is_damage(root: Path) -> None:
    path = root / "runs" / "b" / "log-000000"
    path.write_bytes(path.read_bytes()[:-10])
    with FilesStore(root) as store:
        assert [problem.where for problem in store.check()] == ["b"]
    assert path.stat().st_size > 0


def test_a_missing_segment_is_damage(root: Path) -> None:
    (root / "runs" / "b" / "log-000001").unlink()
    with FilesStore(root) as store:
        assert [problem.where for problem in store.check()] == ["b"]
        with pytest.raises(Damaged):
            store.rows(RowQuery(run=B))


def test_a_missing_object_is_missing(root: Path) -> None:
    digest, _ = sample_object("leaf of a", 300)
    with FilesStore(root) as store:
        (root / "objects" / digest.hex()[:2] / digest.hex()[2:]).unlink()
        assert store.get_objects([digest]) == {}


def test_a_log_of_another_run_is_damage(root: Path) -> None:
    (root / "runs" / "b").rename(root / "runs" / "d")
    with FilesStore(root) as store:
        assert [problem.where for problem in store.check()] == ["d"]
        with pytest.raises(Damaged):
            store.run(RunId("d"))


def test_hostile_run_ids_touch_nothing(root: Path) -> None:
    before = sorted(root.parent.rglob("*"))
    with FilesStore(root) as store:
        for name in ("../x", "a\0b", "", "/etc", "a/b", ".", "..", "x" * 300):
            for attempt in (
                lambda run: store.claim(run, "owner", new=True),
                lambda run: store.send(run, b"pause", NOON),
                lambda run: store.delete(run),
                lambda run: store.annotate(Annotation(run=run, seq=0, kind="note", body=b"n")),
            ):
                with pytest.raises(OrchestraError):
                    attempt(RunId(name))
            assert store.run(RunId(name)) is None
            assert store.rows(RowQuery(run=RunId(name))) == []
            assert store.prune(RunId(name), [0]) == 0
    assert sorted(root.parent.rglob("*")) == before


def test_pruning_works_on_a_full_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be written while the ballast is there, and it is given up for pruning alone."""
    ballast = root / "ballast"
    real: Any = disk.write_all

    def full(descriptor: int, data: bytes) -> None:
        if ballast.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor, data)

    with FilesStore(root) as store:
        monkeypatch.setattr(disk, "write_all", full)
        with pytest.raises(StoreFull):
            store.put_objects([sample_object("new")])
        assert ballast.exists()
        assert store.prune(B, range(9)) == 9
        assert sweep_all(store, [sample_object("leaf of c", 300)[0]]) == 1
        store.delete(A)
        assert ballast.exists(), "the room was not set aside again"
        assert list(store.check()) == []
    monkeypatch.undo()
    with FilesStore(root) as store:
        assert [row.pruned for row in store.rows(RowQuery(run=B))] == [True] * 9 + [False]


def _damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(bytes(data))


def test_ages_come_from_the_clock_that_was_given(tmp_path: Path) -> None:
    with FilesStore(tmp_path / "store", create=True, now=lambda: Instant(NOON)) as store:
        store.put_objects([sample_object("leaf")])
        assert [info.at for info in store.objects()] == [NOON]
