"""Single flipped bits over the database and its log: noticed, or without effect; never wrong data."""

import random
import subprocess
from pathlib import Path

import attrs
import pytest

from orchestra import limits
from orchestra.errors import DamageError, StoreError
from orchestra.ids import Instant, RunId
from orchestra.ports.store import Annotation, Store
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.contract.base import Look, look
from orchestra.testing.samples import SampleRun, sample_object

COMPANIONS = ("", "-wal", "-anchor")


@attrs.frozen
class Sight:
    """All that a reader can see of a store."""

    look: Look
    meta: bytes | None


def sight(store: Store) -> Sight:
    return Sight(look(store), store.meta("key"))


def filled(path: Path) -> SqliteStore:
    """A store with a bit of everything: several runs, small and large objects, pruned rows, freed pages."""
    store = SqliteStore(path, create=True)
    store.set_meta("key", b"address key 1")
    for name in ("first", "second", "third", "doomed"):
        run = SampleRun(store, name)
        objects = tuple(sample_object(f"{name} {size}", size) for size in (40, 900, 5000, 20_000))
        run.append(parts={"objects": objects})
        for number in range(12):
            run.append(patch=f"{name} {number} ".encode() * 90, agents=("structure", f"agent{number}"))
        run.append(phase=None, status="waiting", triggers=(), agents=(), marked=True)
        run.release()
        store.send(run.run, f"command for {name}".encode(), Instant(7))
        store.annotate(Annotation(run=run.run, seq=3, kind="pin", body=b"kept"))
    store.prune(RunId("second"), range(2, 8))
    store.delete(RunId("doomed"))
    store.annotate(Annotation(run=RunId("first"), seq=1, kind="note", body=b"the last write of all"))
    return store


def copied(path: Path, to: Path) -> dict[str, bytes]:
    """The files of a store that may be open. Copied by a process of its own: here, its locks would go."""
    to.mkdir()
    names = [path.name + suffix for suffix in COMPANIONS if path.with_name(path.name + suffix).exists()]
    subprocess.run(["cp", *(str(path.with_name(name)) for name in names), str(to)], check=True)
    return {name: (to / name).read_bytes() for name in names}


def judge(path: Path, expected: Sight) -> str | None:
    """What is wrong with the store at `path`; None when all is equal, or the difference was noticed."""
    try:
        with SqliteStore(path, create=False) as store:
            noticed = bool(list(store.check()))
            return None if sight(store) == expected or noticed else "other data, and nobody noticed"
    except (DamageError, StoreError):
        return None


def flip_all(
    files: dict[str, bytes], flips: list[tuple[str, int]], expected: Sight, place: Path
) -> list[str]:
    wrong = []
    for number, (name, bit) in enumerate(flips):
        folder = place / str(number)
        folder.mkdir()
        for other, data in files.items():
            (folder / other).write_bytes(flipped(data, bit) if other == name else data)
        verdict = judge(folder / "store.db", expected)
        if verdict is not None:
            wrong.append(f"{name} byte {bit // 8} bit {bit % 8}: {verdict}")
        for left in folder.iterdir():
            left.unlink()
    return wrong


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def chosen(files: dict[str, bytes], name: str, count: int, chance: random.Random) -> list[tuple[str, int]]:
    return [(name, chance.randrange(len(files[name]) * 8)) for _ in range(count)]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BUSY_SECONDS", 0.2)


@pytest.mark.parametrize("seed", range(2))
def test_flips_in_the_database_are_noticed(tmp_path: Path, seed: int) -> None:
    flip_database(tmp_path, seed, 300)


def flip_database(tmp_path: Path, seed: int, flips: int) -> None:
    path = tmp_path / "store.db"
    with filled(path) as store:
        expected = sight(store)
    files = copied(path, tmp_path / "copy")
    assert path.name + "-wal" not in files
    wrong = flip_all(files, chosen(files, "store.db", flips, random.Random(seed)), expected, tmp_path)
    assert not wrong


def test_flips_in_the_header_of_the_database_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with filled(path) as store:
        expected = sight(store)
    files = copied(path, tmp_path / "copy")
    assert not flip_all(files, [("store.db", bit) for bit in range(0, 112 * 8, 3)], expected, tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_flips_in_the_log_are_noticed(tmp_path: Path, seed: int) -> None:
    flip_log(tmp_path, seed, 200)


def flip_log(tmp_path: Path, seed: int, flips: int) -> None:
    path = tmp_path / "store.db"
    with filled(path) as store:
        expected = sight(store)
        files = copied(path, tmp_path / "copy")
    assert files["store.db-wal"]
    wrong = flip_all(files, chosen(files, "store.db-wal", flips, random.Random(seed)), expected, tmp_path)
    assert not wrong


def test_flips_at_both_ends_of_the_log_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with filled(path) as store:
        expected = sight(store)
        files = copied(path, tmp_path / "copy")
    size = len(files["store.db-wal"])
    ends = [*range(60), *range(size - 4120, size - 4060), *range(size - 20, size)]
    assert not flip_all(files, [("store.db-wal", byte * 8 + byte % 8) for byte in ends], expected, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_many_flips_are_noticed(tmp_path: Path, seed: int) -> None:
    flip_database(tmp_path, 1000 + seed, 500)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_many_flips_in_the_log_are_noticed(tmp_path: Path, seed: int) -> None:
    flip_log(tmp_path, 1000 + seed, 500)
