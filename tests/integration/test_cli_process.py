"""The command line as a process of its own: exit codes, streams, pipes and signals."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from tests.unit.cli.recording import AUDIT, REVIEW, record, url_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("store")
    anyio.run(record, url_of(made))
    return made


def _environment(folder: Path, extra: Mapping[str, str]) -> dict[str, str]:
    unwanted = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "ORCHESTRA_TRACE"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "PYTHONPATH": str(ROOT), "ORCHESTRA_STORE": url_of(folder), **extra}


def _run(folder: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "orchestra", *arguments]
    return subprocess.run(
        command, env=_environment(folder, extra), cwd=folder, capture_output=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("runs",), 0),
        (("show", REVIEW), 0),
        (("bisect", REVIEW, "status == 'cancelled'"), 1),
        (("nonsense",), 2),
        (("show", "nobody"), 2),
        (("runs", "--store", "sqlite:gone.db"), 2),
        (("import", "gone"), 2),
        (("delete", REVIEW), 2),
        (("verify",), 0),
    ],
)
def test_exit_codes(folder: Path, arguments: tuple[str, ...], code: int) -> None:
    done = _run(folder, *arguments)
    assert done.returncode == code
    assert bool(done.stderr) is (code == 2)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("snapshots", REVIEW),
        ("show", f"{REVIEW}@6"),
        ("show", f"{REVIEW}@6", "--full"),
        ("diff", f"{REVIEW}@2", REVIEW),
        ("blame", REVIEW, "status"),
        ("bisect", REVIEW, "status == 'completed'"),
        ("verify",),
        ("store", "info"),
        ("store", "check"),
        ("prune", "--dry-run"),
        ("note", REVIEW),
    ],
)
def test_json_is_one_document_in_utf_8_whatever_the_locale(folder: Path, arguments: tuple[str, ...]) -> None:
    done = _run(folder, *arguments, "--json", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout.decode("utf-8"))
    assert done.stderr == b""


def test_text_without_unicode(folder: Path) -> None:
    done = _run(folder, "snapshots", REVIEW, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"+ completed" in done.stdout


def test_a_pipe_gets_no_colour_unless_asked_for(folder: Path) -> None:
    assert b"\x1b" not in _run(folder, "runs").stdout
    assert b"\x1b[" in _run(folder, "runs", FORCE_COLOR="1").stdout
    assert b"\x1b" not in _run(folder, "runs", FORCE_COLOR="1", NO_COLOR="1").stdout


def _in_terminal(folder: Path, *arguments: str, **extra: str) -> str:
    """What a command prints to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestra", *arguments],
        env=_environment(folder, {"TERM": "xterm", **extra}),
        cwd=folder,
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    )
    os.close(theirs)
    parts = []
    while part := _read(ours):
        parts.append(part)
    os.close(ours)
    assert process.wait() == 0
    return b"".join(parts).decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


def test_a_terminal_gets_colour_and_hints(folder: Path) -> None:
    shown = _in_terminal(folder, "runs")
    assert "\x1b[1m" in shown
    assert f"orchestra snapshots {AUDIT}" in shown
    plain = _in_terminal(folder, "runs", NO_COLOR="1")
    assert "\x1b" not in plain
    assert f"→ orchestra snapshots {AUDIT}" in plain
    assert "\x1b" not in _in_terminal(folder, "runs", TERM="dumb")


def test_a_value_on_a_terminal_is_a_tree(folder: Path) -> None:
    shown = _in_terminal(folder, "show", REVIEW, "tasks", NO_COLOR="1", COLUMNS="100")
    assert "structure" in shown
    assert "{" not in shown.splitlines()[0]


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestra", "show", REVIEW, "--full"],
        env=_environment(folder, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.stdout.close()
    _, err = process.communicate()
    assert err == b""
    assert process.returncode == 141


def test_head_in_a_shell(folder: Path) -> None:
    command = f"{sys.executable} -m orchestra snapshots {REVIEW} | head -1"
    done = subprocess.run(
        command, shell=True, env=_environment(folder, {}), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(REVIEW)
    assert done.stderr == ""


_WAITING = """
import sys
from orchestra.cli.render import run_list
def wait(given):
    print("waiting", flush=True)
    sys.stdin.read()
run_list.open_if_any = wait
from orchestra.cli import main
sys.argv = ["orchestra", "runs"]
main()
"""


def test_ctrl_c(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _WAITING],
        env=_environment(folder, {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"waiting\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == b"interrupted\n"


def test_reading_makes_no_store(tmp_path: Path) -> None:
    for arguments in (("runs",), ("show", "x"), ("verify",), ("store", "info"), ("snapshots", "x")):
        command = [sys.executable, "-m", "orchestra", *arguments]
        environment = {**_environment(tmp_path, {}), "ORCHESTRA_STORE": ""}
        subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=False)
    assert list(tmp_path.iterdir()) == []
