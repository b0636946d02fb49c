"""Files that are written whole or not at all."""

import os
from pathlib import Path

import pytest

from orchestra.atomic import new_file
from orchestra.errors import (
    BadName,
    DamageError,
    OrchestraError,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    UnknownRun,
)
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.interchange.transfer import export_run, import_run
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import FRAMER, R1, rows_of, set_object

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]


def test_a_file_that_is_there_is_kept(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "x.orchestra"
    path.write_text("mine")
    archive = Archive(store, FRAMER)
    with pytest.raises(BadName, match="nothing is yet"):
        export_run(archive, R1, path)
    assert path.read_text() == "mine"
    export_run(archive, R1, path, force=True)
    assert import_run(MemoryStore(), path).run == R1


def test_a_failed_export_leaves_nothing(store: MemoryStore, tmp_path: Path) -> None:
    set_object(store, rows_of(store, "r1")[80].seal, None)
    with pytest.raises(DamageError):
        export_run(Archive(store, FRAMER), R1, tmp_path / "x.orchestra")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnknownRun):
        export_run(Archive(store, FRAMER), RunId("nobody"), tmp_path / "x.orchestra")
    assert list(tmp_path.iterdir()) == []


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x"

    def fail() -> None:
        with new_file(path) as file:
            file.write(b"half")
            assert not path.exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(path.parent.iterdir()) == []
    with new_file(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_came_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(BadName), new_file(path):
        path.write_text("theirs")
    assert path.read_text() == "theirs"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (28, StoreFull),
        (122, StoreFull),
        (13, StoreReadOnly),
        (30, StoreReadOnly),
        (5, StoreFailed),
        (36, BadName),
    ],
)
def test_what_the_system_says_is_told(tmp_path: Path, number: int, kind: type[OrchestraError]) -> None:
    with pytest.raises(kind), new_file(tmp_path / "x"):
        raise OSError(number, os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_places_that_can_hold_no_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "x", tmp_path):
        with pytest.raises(BadName), new_file(path, force=True) as file:
            file.write(b"x")
