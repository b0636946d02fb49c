"""`orchestra store …` and stores that are not what they should be."""

import os
import sqlite3
from pathlib import Path

import pytest

from orchestra.cli.store import store_url
from orchestra.stores.registry import open_store
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import AUDIT, REVIEW


def _file() -> Path:
    return Path(store_url(None).removeprefix("sqlite:"))


def test_info(cli: Cli) -> None:
    outcome = cli("store", "info")
    assert "sqlite, durable" in outcome.lines[0]
    assert outcome.lines[1].split() == ["runs", "3"]
    found = cli("store", "info", "--json").json
    assert (found["scheme"], found["runs"], found["rows"], found["pruned"]) == ("sqlite", 3, 17, 0)
    assert found["durable"] is True


def test_check_of_a_whole_store(cli: Cli) -> None:
    outcome = cli("store", "check")
    assert (outcome.code, outcome.out.startswith("✔ ")) == (0, True)
    assert cli("store", "check", "--json").json["problems"] == []


def test_compact(own: Cli) -> None:
    assert " → " in own("store", "compact").out
    assert set(own("store", "compact", "--json").json) == {"place", "bytes_before", "bytes_after"}


def test_accepting_a_loss_where_there_is_none(own: Cli) -> None:
    assert own("store", "accept-loss", "--json").json["commits_given_up"] == 0
    with open_store("files:other", create=True):
        pass
    outcome = own("store", "accept-loss", "--store", "files:other")
    assert outcome.code == 2
    assert "no record of what it may have lost" in outcome.err


def test_a_store_that_lost_commits(own: Cli) -> None:
    before = _file().read_bytes()
    assert own("export", AUDIT, "audit.orchestra").code == 0
    assert own("delete", AUDIT, "--yes").code == 0
    assert own("import", "audit.orchestra").code == 0  # acknowledged, under new numbers
    _file().write_bytes(before)
    outcome = own("runs")
    assert outcome.code == 4
    assert "accept the loss with `orchestra store accept-loss`" in outcome.err
    assert own("store", "check").code == 4
    assert own("verify").code == 4
    assert own("store", "accept-loss", "--json").json["commits_given_up"] == 4
    assert own("runs").code == 0
    assert own("verify").code == 0


@pytest.mark.parametrize(
    "command", [("runs",), ("show", REVIEW), ("verify",), ("store", "info"), ("pin", REVIEW)]
)
@pytest.mark.parametrize("place", ["missing", "folder", "text", "empty", "other database", "newer"])
def test_what_is_no_store_of_ours(own: Cli, command: tuple[str, ...], place: str) -> None:
    path = Path("it.db")
    said = _make(path, place)
    before = path.read_bytes() if path.is_file() else None
    outcome = own(*command, "--store", f"sqlite:{path}")
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.out == ""
    assert (path.read_bytes() if path.is_file() else None) == before
    assert {path.name for path in Path().iterdir()} <= {"it.db"}


def _make(path: Path, place: str) -> str:
    """Put something in the place of a store; returns what the error says."""
    match place:
        case "missing":
            return "There is no store at it.db"
        case "folder":
            path.mkdir()
            return "a directory is there"
        case "text":
            path.write_text("hello " * 1000)
            return "it is not an SQLite database"
        case "empty":
            path.touch()
            return "the file is empty"
        case "other database":
            _other_database(path)
            return "of another program"
        case _:
            _newer_store(path)
            return "use a newer version of orchestra"


def _other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table t (x)")
    connection.close()


def _newer_store(path: Path) -> None:
    made = Path("made")
    with open_store(f"sqlite:{made}", create=True):
        pass
    data = bytearray(made.read_bytes())
    data[63] = 99  # the format number, as SQLite's user version
    path.write_bytes(data)
    for left in Path().glob("made*"):
        left.unlink()


@pytest.mark.parametrize("url", ["nonsense", "redis:x", "sqlite:", "sqlite:x.db?colour=red", "memory:x"])
def test_store_urls_that_nobody_answers_to(bare: Cli, url: str) -> None:
    outcome = bare("runs", "--store", url)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")


def test_an_address_key_that_is_wrong(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRA_ADDRESS_KEY", os.urandom(32).hex())
    outcome = cli("show", REVIEW)
    assert outcome.code == 2
    assert "without an address key" in outcome.err
