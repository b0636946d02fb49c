"""Signals before anything is played: the program ends, and what it was about to do is not begun."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.project import Project

# The program, with a signal that comes while a module is looked for, or when a function is called.
_SIGNALLED = """
import os, sys
moment, number = sys.argv[1], int(sys.argv[2])
del sys.argv[1:3]

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            try:
                os.kill(os.getpid(), number)
            except BaseException:  # as where an exception is printed and forgotten
                sys.stderr.write("swallowed")

def watch(frame, event, arg):
    if event == "call" and frame.f_code.co_name == moment:
        sys.setprofile(None)
        os.kill(os.getpid(), number)

sys.meta_path.insert(0, Finder())
sys.setprofile(watch)
from orchestra.cli import main
main()
"""


def _signalled(folder: Path, moment: str, number: int) -> "subprocess.CompletedProcess[str]":
    project = Project(folder)
    project.workflow("quick")
    return subprocess.run(
        [sys.executable, "-c", _SIGNALLED, moment, str(int(number)), "run", "flow.yaml"],
        cwd=folder,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("module", ["orchestra.cli.dispatch", "cyclopts", "anyio", "orchestra.app.orchestra"])
def test_while_it_is_loaded_it_ends_without_a_word(tmp_path: Path, module: str, number: int) -> None:
    done = _signalled(tmp_path, module, number)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("function", ["_prepare_streams", "load_workflow", "open_store"])
def test_before_anything_is_played_it_ends_in_a_word(tmp_path: Path, function: str, number: int) -> None:
    done = _signalled(tmp_path, function, number)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr in ("", "interrupted\n")


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """As after `nohup`, or in the background of a script."""
    project = Project(tmp_path)
    project.workflow("quick")
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + _SIGNALLED
    done = subprocess.run(
        [sys.executable, "-c", code, "cyclopts", str(int(signal.SIGINT)), "run", "flow.yaml"],
        cwd=tmp_path,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
