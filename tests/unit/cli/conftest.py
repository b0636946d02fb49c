"""Fixtures: the commands called in this process, on a store that was recorded once."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from orchestra.cli.dispatch import run_command_line
from tests.unit.cli.recording import record, url_of


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out, parse_constant=_no_constant)

    @property
    def lines(self) -> list[str]:
        """What was printed, line by line."""
        return self.out.splitlines()


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


Cli = Callable[..., Outcome]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recorded store; nobody writes to it."""
    folder = tmp_path_factory.mktemp("recorded")
    anyio.run(record, url_of(folder))
    return folder


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, UTC, and nothing of the person's own settings."""
    for name in (
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "ORCHESTRA_STORE",
        "ORCHESTRA_TRACE",
        "ORCHESTRA_ADDRESS_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def bare(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Calls a command, on no store in particular."""

    def call(*arguments: str) -> Outcome:
        code = run_command_line(arguments)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return call


@pytest.fixture
def cli(bare: Cli, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls a command that only reads, on the recorded store."""
    monkeypatch.setenv("ORCHESTRA_STORE", url_of(recorded))
    return bare


@pytest.fixture
def own(bare: Cli, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls a command on a copy of the recorded store that the test may change."""
    folder = tmp_path / "own"
    shutil.copytree(recorded, folder)
    monkeypatch.setenv("ORCHESTRA_STORE", url_of(folder))
    return bare
