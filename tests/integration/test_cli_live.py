"""The live display on a real terminal: it draws, does not disturb, and puts everything back."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.cli.project import PATIENCE, Project

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, project: Project, *arguments: str, columns: int = 80) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "orchestra", *arguments],
            cwd=project.folder,
            env=project.environment(TERM="xterm"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self.shown = ""

    def read_until(self, holds: Callable[[str], bool]) -> None:
        """Read until what was shown so far fits."""
        end = time.monotonic() + PATIENCE
        while not holds(self.shown):
            assert time.monotonic() < end, self.shown
            assert self._read(), self.shown

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._ours, text.encode())

    def finish(self, code: int) -> str:
        """Everything that was shown, once the command has ended."""
        while self._read():
            pass
        assert self.process.wait(PATIENCE) == code, self.shown
        return self.shown

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], PATIENCE)
        assert ready, self.shown
        try:
            part = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += part.decode(errors="replace")
        return bool(part)

    def close(self) -> None:
        """End it in any case."""
        os.close(self._ours)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for each in opened:
        each.close()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_run_is_drawn_while_it_plays(project: Project, terminals: list[Terminal], columns: int) -> None:
    project.workflow("quick", "gate", "quick")
    terminal = Terminal(project, "run", "flow.yaml", "--run-id", "r1", columns=columns)
    terminals.append(terminal)
    parts = ("r1", "p1", "p2", "p3", "gate", " 50%", "half of it", "Write it down")
    terminal.read_until(lambda shown: all(part in shown for part in (HIDE, *parts)))
    project.go()
    shown = terminal.finish(0)
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    after = shown[shown.rindex(SHOW) :]
    assert "completed" in after
    assert "orchestra log r1" in after


def test_ctrl_c_on_a_terminal(project: Project, terminals: list[Terminal]) -> None:
    project.workflow("quick", "gate")
    terminal = Terminal(project, "run", "flow.yaml", "--run-id", "r1")
    terminals.append(terminal)
    terminal.read_until(lambda shown: "half of it" in shown)
    terminal.process.send_signal(signal.SIGINT)
    shown = terminal.finish(130)
    assert "stopping: what is done is kept; Ctrl-C again stops at once" in shown
    assert "orchestra resume r1" in shown
    assert shown.rindex(SHOW) > shown.rindex(HIDE)


def test_the_cursor_comes_back_after_a_hard_stop(project: Project, terminals: list[Terminal]) -> None:
    project.workflow("deaf")
    terminal = Terminal(project, "run", "flow.yaml", "--run-id", "r1")
    terminals.append(terminal)
    terminal.read_until(lambda shown: "deaf" in shown and (project.folder / "began").exists())
    terminal.process.send_signal(signal.SIGTERM)
    shown = terminal.finish(130)
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    assert "orchestra resume r1" in shown


def test_what_agents_print_does_not_spoil_the_picture(project: Project, terminals: list[Terminal]) -> None:
    (project.folder / "loud.py").write_text(
        "async def agent(ctx):\n    print('said aloud')\n    await ctx.save(step='after speaking')\n"
    )
    project.workflow("loud", "gate")
    terminal = Terminal(project, "run", "flow.yaml", "--run-id", "r1")
    terminals.append(terminal)
    terminal.read_until(lambda shown: "half of it" in shown)
    project.go()
    assert "said aloud\r\n" in terminal.finish(0)


def test_answering_at_the_terminal(project: Project, terminals: list[Terminal]) -> None:
    project.workflow("asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    terminal = Terminal(project, "answer", "r1", "--resume")
    terminals.append(terminal)
    terminal.read_until(lambda shown: "[yes/no]" in shown)
    terminal.type("yes\n")
    assert "completed" in terminal.finish(0)


def test_rolling_back_is_asked_for(project: Project, terminals: list[Terminal]) -> None:
    project.workflow("quick", "asks")
    project.run("run", "flow.yaml", "--run-id", "r1", code=3)
    for answer, code in (("n", 2), ("y", 0)):
        terminal = Terminal(project, "rollback", "r1@phase:p1")
        terminals.append(terminal)
        terminal.read_until(lambda shown: "Go back?" in shown)
        assert "p1/quick" in terminal.shown
        terminal.type(f"{answer}\n")
        terminal.finish(code)


def test_watching_on_a_terminal(project: Project, terminals: list[Terminal]) -> None:
    process = project.at_the_gate()
    terminal = Terminal(project, "watch", "r1")
    terminals.append(terminal)
    terminal.read_until(lambda shown: "half of it" in shown)
    project.go()
    process.communicate(timeout=PATIENCE)
    assert "completed" in terminal.finish(0)


def test_what_belongs_to_a_question_is_shown_beside_it(project: Project, terminals: list[Terminal]) -> None:
    (project.folder / "orders.py").write_text(
        "async def agent(ctx):\n"
        "    return await ctx.ask('Order?', choices=['yes', 'no'], details={'price': 42})\n"
    )
    project.workflow("orders")
    project.run("run", "flow.yaml", "--run-id", "r1", "--quiet", code=3)
    terminal = Terminal(project, "answer", "r1")
    terminals.append(terminal)
    terminal.read_until(lambda shown: '"price": 42' in shown and "[yes/no]" in shown)
    terminal.type("yes\n")
    assert "answered 'Order?' with 'yes'" in terminal.finish(0)
