"""Stores by URL: ours, others', and nobody's."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from orchestra.errors import BadSetting, StoreMissing, StoreReadOnly, UnknownStore
from orchestra.ids import RunId
from orchestra.ports.store import RowQuery, RunQuery, Store
from orchestra.stores import registry
from orchestra.stores.memory import MemoryStore
from orchestra.stores.registry import GROUP, StoreNotMade, known_schemes, open_store
from orchestra.stores.wrappers import ReadOnlyStore
from orchestra.testing.contract.life import CALLS
from orchestra.testing.samples import SampleRun

WRITES = {
    "claim", "commit", "put_objects", "send", "withdraw", "annotate", "prune", "delete", "sweep", "compact",
    "set_meta",
}  # fmt: skip


def test_memory_is_always_new() -> None:
    with open_store("memory:") as first, open_store("memory:") as second:
        assert first is not second
        assert first.properties.scheme == "memory"


def test_files(tmp_path: Path) -> None:
    url = f"files:{tmp_path}/checkpoints"
    with open_store(url, create=True) as store:
        SampleRun(store, "a").append()
    with open_store(url) as store:
        assert store.properties.scheme == "files"
        assert store.last_no() == 1


@pytest.mark.parametrize("url", ["sqlite:{}/x.db", "{}/x.db", "SQLite:{}/x.db"])
def test_sqlite(tmp_path: Path, url: str) -> None:
    with open_store(url.format(tmp_path), create=True) as store:
        assert store.properties.scheme == "sqlite"
    assert (tmp_path / "x.db").is_file()


@pytest.mark.parametrize("url", ["files:{}/absent", "sqlite:{}/absent.db"])
def test_nothing_is_made_unless_asked_for(tmp_path: Path, url: str) -> None:
    for create in (False, True):
        with pytest.raises(StoreMissing):
            open_store(url.format(tmp_path), create=create, read_only=create)
    assert list(tmp_path.iterdir()) == []


NOBODYS = ["postgresql://ann:secret@host/db", "nonsense", "", ":", "nonsense:x", "a b:c"]
WRONG = ["memory:x", "memory:?a=b", "files:", "sqlite:", "files:x?a=b", "files:x?a", "files:x?", "files:\0"]


@pytest.mark.parametrize("url", NOBODYS)
def test_nobody_answers(url: str) -> None:
    with pytest.raises(UnknownStore) as caught:
        open_store(url)
    assert "memory:, sqlite:, files:" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", WRONG)
def test_what_cannot_be_honoured_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadSetting):
        open_store(url, create=True)
    assert list(tmp_path.iterdir()) == []


def test_an_option_given_twice() -> None:
    with pytest.raises(BadSetting, match="twice"):
        open_store("sqlite:x.db?synchronous=normal&synchronous=full")


def opened_by_another(url: str, *, create: bool) -> Store:
    assert url == "other://place?x=1"
    assert create
    return MemoryStore()


def not_a_store(url: str, *, create: bool) -> str:
    return url


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    def point(name: str, value: str) -> EntryPoint:
        return EntryPoint(name, value, GROUP)

    points = EntryPoints(
        [
            point("other", f"{__name__}:opened_by_another"),
            point("broken", "a_module_that_is_not_there:open"),
            point("odd", f"{__name__}:not_a_store"),
            point("memory", f"{__name__}:not_a_store"),
        ]
    )
    monkeypatch.setattr(registry, "_announced", lambda: points)


@pytest.mark.usefixtures("announced")
def test_others_announce_theirs() -> None:
    with open_store("other://place?x=1", create=True) as store:
        assert isinstance(store, MemoryStore)
    assert known_schemes() == ["memory", "sqlite", "files", "broken", "odd", "other"]


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize(("url", "reason"), [("broken:", "cannot be loaded"), ("odd:", "not a Store")])
def test_what_others_announce_can_be_wrong(url: str, reason: str) -> None:
    with pytest.raises(BadSetting, match=reason):
        open_store(url)


@pytest.mark.usefixtures("announced")
def test_ours_are_not_taken_over() -> None:
    with open_store("memory:") as store:
        assert isinstance(store, MemoryStore)


@pytest.fixture
def read_only() -> ReadOnlyStore:
    inner = MemoryStore()
    SampleRun(inner, "a").append()
    return ReadOnlyStore(inner)


@pytest.mark.parametrize("name", CALLS)
def test_a_store_for_reading_only(read_only: ReadOnlyStore, name: str) -> None:
    if name in WRITES:
        with pytest.raises(StoreReadOnly, match="reading only"):
            CALLS[name](read_only)
    else:
        CALLS[name](read_only)
    assert read_only.last_no() == 1
    assert [run.run for run in read_only.runs(RunQuery())] == [RunId("a")]
    assert len(read_only.rows(RowQuery())) == 1


def test_naming_a_store_loads_no_driver() -> None:
    script = (
        "import sys\n"
        "from orchestra.stores.registry import open_store\n"
        "open_store('memory:').close()\n"
        "heavy = {'apsw', 'sqlite3', 'importlib.metadata', 'urllib.parse', 'orchestra.stores.files.store'}\n"
        "print(*heavy & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=_path())
    assert (done.stdout, done.stderr) == ("\n", "")


def _path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize("url", ["sqlite:{}/file/runs.db", "files:{}/file/runs", "sqlite:/proc/none/runs.db"])
def test_a_store_that_cannot_be_made_says_what_is_in_the_way(tmp_path: Path, url: str) -> None:
    (tmp_path / "file").write_text("something else")
    with pytest.raises(StoreNotMade) as raised:
        open_store(url.format(tmp_path), create=True)
    assert "file is not a folder" in str(raised.value) or "the folder /proc/none cannot be made" in str(
        raised.value
    )
    assert "resume" not in str(raised.value)
    assert raised.value.exit_code == 2
