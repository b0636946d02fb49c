"""The audit: what is noted, and that nothing is read without a trace."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestra.app.compose import open_manager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.errors import BadSetting
from orchestra.ids import Instant, RunId
from orchestra.ports.activity import activity
from orchestra.ports.store import Properties, RowQuery, RunQuery, Store
from orchestra.stores.audit.log import AuditFailed, AuditLog
from orchestra.stores.audit.store import AuditedStore, AuditLedger
from orchestra.stores.memory import MemoryStore
from orchestra.stores.registry import add_audit, audit_file, open_store
from orchestra.testing.samples import SampleRun, sample_object

ROOT = Path(__file__).parents[4]
A, B = RunId("a"), RunId("b")
FAR = Instant(1 << 60)


# --- what is noted


def _lines(url: str) -> list[dict[str, Any]]:
    file = audit_file(url)
    assert file is not None
    found = [json.loads(line) for line in Path(file).read_text(encoding="ascii").splitlines()]
    assert AuditLog(file).check().broken is None
    return found


def _told(url: str) -> list[tuple[Any, ...]]:
    names = ("what", "act", "run", "first", "last", "count", "content")
    return [tuple(line[name] for name in names) for line in _lines(url)]


@pytest.fixture(params=["sqlite:{}/store.db", "files:{}/store"], ids=["sqlite", "files"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with two runs of six snapshots."""
    made: str = request.param.format(tmp_path)
    with open_store(made, create=True) as store:
        for name in "ab":
            run = SampleRun(store, name)
            run.extend(6)
            store.release(run.claim)
        store.put_objects([sample_object("leaf")])
    return made


def test_off_leaves_no_file(url: str, tmp_path: Path) -> None:
    with open_store(url, read_only=True) as store:
        assert not isinstance(store, AuditedStore)
        store.rows(RowQuery())
    assert not list(tmp_path.rglob("*audit*"))


def test_what_is_read_is_one_line_for_each_run_and_verb(url: str) -> None:
    with open_store(url, read_only=True, audited=True) as store:
        with activity("log"):
            for seq in (2, 4, 4):
                store.rows(RowQuery(run=A, first=seq, last=seq))
            store.rows(RowQuery(run=A, content=False))  # content counts, not what was listed beside it
        with activity("snapshots"):
            store.rows(RowQuery(content=False))
    assert _told(url) == [
        ("log", "read", "a", 2, 4, 2, True),
        ("snapshots", "read", "a", 0, 5, 6, False),
        ("snapshots", "read", "b", 0, 5, 6, False),
    ]
    [line, *_] = _lines(url)
    assert (line["uid"], line["pid"]) == (os.getuid(), os.getpid())
    assert line["user"]
    assert line["at"].endswith("Z")


def test_objects_count_for_the_run_that_was_read_last(url: str) -> None:
    digest = sample_object("leaf")[0]
    with open_store(url, read_only=True, audited=True) as store, activity("show"):
        store.get_objects([digest])
        store.rows(RowQuery(run=A, content=False))
        store.rows(RowQuery(run=B, content=False))
        store.get_objects([digest])
        thread = threading.Thread(target=store.get_objects, args=([digest],))  # knows neither run nor verb
        thread.start()
        thread.join()
    found = [(line["what"], line["run"], line["content"], line["objects"]) for line in _lines(url)]
    assert found[:3] == [("show", None, True, 1), ("show", "a", False, 0), ("show", "b", True, 1)]
    assert [(run, content, objects) for _, run, content, objects in found[3:]] == [(None, True, 1)]


def test_a_digest_that_is_looked_up_is_noted_with_columns_only(url: str) -> None:
    with open_store(url, read_only=True, audited=True) as store:
        [row] = store.rows(RowQuery(run=A, first=3, last=3, content=False))
        with activity("show"):
            assert store.find(row.digest, row.digest, 1)
    assert _told(url)[1:] == [("show", "read", "a", 3, 3, 1, False)]


def test_lists_of_runs_and_commits_are_not_noted(url: str) -> None:
    with open_store(url, audited=True) as store:
        store.runs(RunQuery())
        store.run(A)
        store.rows(RowQuery(run=RunId("absent")))
        SampleRun(store, "c").extend(3)
        store.commands(A)
        store.stats()
    assert _lines(url) == []


def test_removals_are_noted_at_once(url: str) -> None:
    with open_store(url, audited=True) as store:
        with activity("prune"):
            assert store.prune(A, [1, 3]) == 2
            assert store.prune(A, [1, 3]) == 0
            assert _told(url) == [("prune", "pruned", "a", 1, 3, 2, True)]
        with activity("delete"):
            assert store.delete(B)
        dead = [sample_object("leaf")[0]]
        with activity("prune"):
            store.sweep(dead, since=store.last_no(), older_than=FAR, spared=lambda rows: ())
    assert _told(url)[1:] == [
        ("delete", "deleted", "b", 0, 5, 6, True),
        ("prune", "swept", None, None, None, 0, True),
    ]


def test_once_begun_it_goes_on_whoever_opens_the_store(url: str, tmp_path: Path) -> None:
    open_store(url, audited=True).close()
    code = (
        "import sys; from orchestra.ports.store import RowQuery; from orchestra.recording import open_store\n"
    )
    code += "store = open_store(sys.argv[1])\nassert store.rows(RowQuery(run='a'))\n"
    script = tmp_path / "nightly.py"
    script.write_text(code, encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT), "ORCHESTRA_CHECKPOINT_AUDIT": "false"}
    subprocess.run([sys.executable, str(script), url], env=environment, check=True)  # and never closes it
    assert _told(url) == [("python nightly.py", "read", "a", 0, 5, 6, True)]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="it needs symbolic links")
def test_another_name_for_the_store_leads_to_the_same_audit(tmp_path: Path) -> None:
    real, link = tmp_path / "store.db", tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    open_store(f"sqlite:{real}", create=True, audited=True).close()
    link.symlink_to(real)
    assert audit_file(f"sqlite:{link}") == audit_file(f"sqlite:{real}") == f"{real}-audit.jsonl"


def test_the_files_are_as_open_as_the_store(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    open_store(f"sqlite:{file}", create=True).close()
    file.chmod(0o640)
    open_store(f"sqlite:{file}", audited=True).close()
    assert [path.stat().st_mode & 0o777 for path in tmp_path.glob("*-audit.*")] == [0o640, 0o640]


def test_a_manager_in_python_is_audited_by_its_settings(tmp_path: Path) -> None:
    settings = CheckpointSettings(audit=True)
    url = f"sqlite:{tmp_path}/store.db"
    store = open_manager(url, settings=settings).archive.store
    assert isinstance(store, AuditedStore)
    store.close()
    with open_store(f"sqlite:{tmp_path}/other.db", create=True) as own:
        wrapped = open_manager(own, settings=settings).archive.store
        assert isinstance(wrapped, AuditedStore)
        assert open_manager(wrapped, settings=settings).archive.store is wrapped
    assert (tmp_path / "other.db-audit.jsonl").exists()


def test_memory_keeps_none_and_a_store_without_a_place_is_refused() -> None:
    with open_store("memory:", audited=True) as store:
        assert isinstance(store, MemoryStore)

    class Elsewhere(MemoryStore):
        properties = Properties(scheme="elsewhere", durable=True, many_processes=True)

    with pytest.raises(BadSetting, match=r"checkpoint\.audit"):
        add_audit(Elsewhere())
    assert audit_file("memory:") is None


def test_what_a_store_can_do_beyond_the_port_stays_possible(tmp_path: Path) -> None:
    with open_store(f"sqlite:{tmp_path}/store.db", create=True, audited=True) as store:
        assert callable(getattr(store, "accept_loss", None))
        assert getattr(store, "nonsense", None) is None
        assert getattr(store, "_nonsense", None) is None


# --- when it cannot be written


def _blocked(url: str) -> None:
    """In place of the log is a folder: not even root writes to that."""
    file = audit_file(url)
    assert file is not None
    Path(file).mkdir()


def _full(url: str) -> None:
    """The log leads to a disk that is full."""
    file = audit_file(url)
    assert file is not None
    Path(file).unlink(missing_ok=True)
    Path(file).symlink_to("/dev/full")


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="it needs a full device")


def test_nothing_is_opened_without_a_place_to_note_it(url: str) -> None:
    _blocked(url)
    for audited in (True, False):
        with pytest.raises(AuditFailed, match="let this user write to the file"):
            open_store(url, read_only=True, audited=audited)


@full
def test_a_full_disk_is_said_when_the_store_is_closed_and_only_once(url: str) -> None:
    _full(url)
    store = open_store(url, read_only=True, audited=True)
    assert store.rows(RowQuery(run=A))
    with pytest.raises(AuditFailed, match="No space left"):
        store.close()
    store.close()


@full
def test_a_full_disk_can_be_pruned_and_that_is_noted_later(url: str, tmp_path: Path) -> None:
    _full(url)
    with open_store(url, audited=True) as store:
        assert store.prune(A, [1]) == 1
        assert store.rows(RowQuery(run=A, content=False))
        file = audit_file(url)
        assert file is not None
        Path(file).unlink()  # there is room again
    assert _told(url)[0][1:3] == ("pruned", "a")


# --- processes that live long


def _quick(url: str, idle: float, latest: float) -> tuple[Store, Store]:
    inner = open_store(url, read_only=True)
    file = audit_file(url)
    assert file is not None
    log = AuditLog(file)
    log.make()
    return inner, AuditedStore(inner, AuditLedger(log, idle=idle, latest=latest))


def _until(found: Callable[[], bool]) -> None:
    late = time.monotonic() + 180
    while not found():
        assert time.monotonic() < late
        time.sleep(0.01)


def test_what_was_read_is_noted_when_nothing_more_is_read(url: str) -> None:
    _, store = _quick(url, 0.05, 10)
    with store:
        for expected in (1, 2):
            store.rows(RowQuery(run=A))
            _until(lambda expected=expected: len(_lines(url)) == expected)  # type: ignore[misc]


def test_what_is_read_without_a_rest_is_noted_all_the_same(url: str) -> None:
    _, store = _quick(url, 5, 0.2)
    with store:

        def noted() -> bool:
            store.rows(RowQuery(run=A))
            return bool(_lines(url))

        _until(noted)


@full
def test_when_a_line_was_not_written_the_next_reading_fails_until_it_is(url: str) -> None:
    _, store = _quick(url, 0.02, 0.1)
    file = audit_file(url)
    assert file is not None
    Path(file).unlink()
    _full(url)
    with store:
        store.rows(RowQuery(run=A))

        def refused() -> bool:
            try:
                store.rows(RowQuery(run=A))
            except AuditFailed:
                return True
            return False

        _until(refused)
        with pytest.raises(AuditFailed):
            store.get_objects([])
        with pytest.raises(AuditFailed):
            store.find(b"", b"\xff", 1)
        Path(file).unlink()
        assert store.rows(RowQuery(run=A))
    assert {told[2] for told in _told(url)} == {"a"}
