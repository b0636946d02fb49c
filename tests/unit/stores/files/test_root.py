"""Opening a files store: what is taken for one, what is not, and that nothing is made over something."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestra.errors import (
    Damaged,
    NotAStore,
    OrchestraError,
    StoreBusy,
    StoreMissing,
    StoreTooNew,
)
from orchestra.stores.files.store import FilesStore
from orchestra.testing.samples import SampleRun

FORKING = """
import os, sys
from orchestra.errors import OrchestraError
from orchestra.stores.files.store import FilesStore
store = FilesStore(sys.argv[1])
if os.fork() == 0:
    try:
        store.last_no()
    except OrchestraError as error:
        print(type(error).__name__, "forked" * ("forked" in str(error)), flush=True)
    store.close()
    os._exit(0)
os.wait()
try:
    FilesStore(sys.argv[1])
except OrchestraError as error:
    print(type(error).__name__)
print(store.last_no())
"""

Tree = dict[str, bytes | None]


def tree(path: Path) -> Tree:
    """Everything below a path: bytes of files, None for folders."""
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(p): None if p.is_dir() else p.read_bytes() for p in found if p.exists()}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    with FilesStore(root, create=True) as store:
        SampleRun(store, "a").extend(3)
    return root


def _file(path: Path) -> None:
    path.write_bytes(b"notes")


def _folder_of_others(path: Path) -> None:
    path.mkdir()
    (path / "notes").write_bytes(b"notes")


def _folder_like_ours(path: Path) -> None:
    (path / "runs" / "a").mkdir(parents=True)


def _file_named_like_ours(path: Path) -> None:
    path.mkdir()
    (path / "objects").write_bytes(b"")


def _foreign_format(path: Path) -> None:
    path.mkdir()
    (path / "format").write_bytes(b"something else, version 1\n")


def _empty_format(path: Path) -> None:
    path.mkdir()
    (path / "format").write_bytes(b"")


def _newer(path: Path) -> None:
    path.mkdir()
    (path / "format").write_bytes(b"orchestra files store, version 2\n")


def _never_was(path: Path) -> None:
    path.mkdir()
    (path / "format").write_bytes(b"orchestra files store, version 0\n")


def _dangling_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (_file, NotAStore),
        (_folder_of_others, NotAStore),
        (_folder_like_ours, NotAStore),
        (_file_named_like_ours, NotAStore),
        (_foreign_format, NotAStore),
        (_empty_format, NotAStore),
        (_newer, StoreTooNew),
        (_never_was, Damaged),
        (_dangling_link, NotAStore),
    ],
)
def test_what_is_no_store_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None], error: type[OrchestraError], create: bool
) -> None:
    root = tmp_path / "store"
    make(root)
    before = tree(tmp_path)
    with pytest.raises(error) as caught:
        FilesStore(root, create=create)
    assert str(root) in str(caught.value)
    assert tree(tmp_path) == before


def test_nothing_is_made_unless_asked_for(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        FilesStore(tmp_path / "store")
    with pytest.raises(StoreMissing):
        FilesStore(tmp_path)  # there, but empty
    assert list(tmp_path.iterdir()) == []


def test_it_is_made_with_its_parents_or_in_an_empty_folder(tmp_path: Path) -> None:
    for root in (tmp_path / "a" / "b" / "store", tmp_path / "empty"):
        if root.name == "empty":
            root.mkdir()
        FilesStore(root, create=True).close()
        FilesStore(root).close()


def test_what_was_made_half_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "lock").write_bytes(b"")
    (tmp_path / "format.tmp").write_bytes(b"orch")
    with pytest.raises(StoreMissing):
        FilesStore(tmp_path)
    with FilesStore(tmp_path, create=True) as store:
        SampleRun(store, "a").append()
    assert not (tmp_path / "format.tmp").exists()


def test_one_at_a_time(made: Path) -> None:
    with FilesStore(made):
        for create in (False, True):
            with pytest.raises(StoreBusy, match="one process at a time"):
                FilesStore(made, create=create)
    FilesStore(made).close()


def test_a_failed_opening_lets_others_in(made: Path) -> None:
    (made / "runs").rename(made / "runs-elsewhere")
    with pytest.raises(Damaged, match="runs"):
        FilesStore(made)
    (made / "runs-elsewhere").rename(made / "runs")
    FilesStore(made).close()


def test_a_forked_child_is_told(made: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(made)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["StoreClosed forked", "StoreBusy", "3"]


def test_leftovers_of_a_crash_are_removed(made: Path) -> None:
    leftovers = ["meta/x.tmp", "runs/a/log-000000.tmp", "objects/ab/cd.tmp", "last_no.tmp"]
    for name in leftovers:
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_bytes(b"half")
    (made / "trash" / "gone").mkdir()
    (made / "trash" / "gone" / "log-000000").write_bytes(b"")
    (made / "runs" / "never-begun").mkdir()
    with FilesStore(made) as store:
        assert list(store.check()) == []
    assert not any((made / name).exists() for name in [*leftovers, "trash/gone", "runs/never-begun"])


def test_strangers_are_named(made: Path) -> None:
    strange = ["runs/no run", "objects/notes", "objects/ab/short", "meta/notes"]
    for name in strange:
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_bytes(b"?")
    with FilesStore(made) as store:
        assert sorted(problem.where for problem in store.check()) == sorted(
            str(made / name) + ("/" if name == "objects/notes" else "") for name in strange
        )
        assert store.last_no() == 3
