"""Programs that outlive the process which started them: none is at work beside the next attempt. FAULTS 3."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from orchestra.agents.command.program import end_leftover, forget_program, note_program
from tests.unit.cli.project import Project

FLOW = """
name: tiny
agents:
  slow: {command: [bash, ./slow.sh]}
phases:
  work:
    specialists:
      slow: {task: Take your time}
"""
SLOW = """
read -r assignment
if [ -e pids ]; then
  case "$(cut -d' ' -f3 "/proc/$(head -n 1 pids)/stat" 2>/dev/null)" in ""|Z) ;; *) touch together ;; esac
fi
sleep 600 & echo $$ >> pids; echo $! >> pids
if [ -e go ]; then kill $!; echo '{"type": "result", "output": 1}'; exit; fi
touch began
wait
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()
    pids = tmp_path / "pids"
    for pid in pids.read_text().split() if pids.exists() else ():
        if _is_at_work(int(pid)):
            os.kill(int(pid), signal.SIGKILL)


def _is_at_work(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_it_is_ended_before_the_next_attempt(project: Project) -> None:
    (project.folder / "flow.yaml").write_text(FLOW)
    (project.folder / "slow.sh").write_text(SLOW)
    process = project.start("run", "flow.yaml", "--run-id", "r1")
    project.wait_for("began", process)
    process.kill()
    process.communicate()
    left = [int(pid) for pid in (project.folder / "pids").read_text().split()]
    assert [_is_at_work(pid) for pid in left] == [True, True], "it does not read its standard input"
    project.go()
    done = project.run("resume", "r1")
    assert f"process {left[0]}, was still at work and was ended" in done.stderr
    assert not (project.folder / "together").exists()
    assert [_is_at_work(pid) for pid in left] == [False, False]


def test_only_what_was_noted_is_ended(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        note_program(str(tmp_path), other.pid)
        noted = next(tmp_path.iterdir())
        pid, us, began = noted.read_text().split()
        for text in (
            "",
            "x y z",
            f"{pid} {us} {float(began) - 1:.2f}",
            f"{pid}",
            f"999999999 {us} 1.00",
            f"{us} {us} 1.00",
        ):
            noted.write_text(text)
            assert end_leftover(str(tmp_path)) is None
        assert other.poll() is None
        noted.write_text(f"{pid} {us} {began}")
        assert end_leftover(str(tmp_path)) == other.pid
        assert other.wait(30) == -signal.SIGKILL
    finally:
        other.kill()
        other.communicate()
    forget_program(str(tmp_path))
    forget_program(str(tmp_path))
    assert end_leftover(str(tmp_path)) is None


LIVING = """
import subprocess, sys
from orchestra.agents.command.program import note_program
started = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
note_program(sys.argv[1], started.pid)
print(started.pid, flush=True)
input()
"""


def test_the_program_of_a_process_that_lives_is_left_alone(tmp_path: Path) -> None:
    """It plays a run of the same name, which is in another store."""
    starter = subprocess.Popen(
        [sys.executable, "-c", LIVING, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    try:
        assert end_leftover(str(tmp_path)) is None
        assert _is_at_work(pid)
        starter.kill()
        starter.communicate()
        assert end_leftover(str(tmp_path)) == pid
        assert not _is_at_work(pid)
    finally:
        starter.kill()
        starter.communicate()
        if _is_at_work(pid):
            os.kill(pid, signal.SIGKILL)


def test_it_is_known_after_the_clock_was_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        note_program(str(tmp_path), left.pid)
        boot = psutil.boot_time()
        monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + 7)
        assert end_leftover(str(tmp_path)) == left.pid
    finally:
        left.kill()
        left.wait()


def test_without_a_workspace_nothing_is_noted_and_nothing_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".program").write_text("somebody else's")
    note_program("", os.getpid())
    assert end_leftover("") is None
    forget_program("")
    assert (tmp_path / ".program").read_text() == "somebody else's"
