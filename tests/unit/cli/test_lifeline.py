"""A process ends, also when a thread in it does not."""

import subprocess
import sys
import textwrap


def _ended(body: str) -> int:
    """The exit code of a process that plays something."""
    script = f"""
import sys, threading
from orchestra.cli import lifeline

lifeline.LEAVE_SECONDS = 0.05

async def main(line):
{textwrap.indent(textwrap.dedent(body), "    ")}
    return 3

raise SystemExit(lifeline.play(main))
"""
    return subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode


def test_a_process_ends_with_the_code_of_what_it_played() -> None:
    assert _ended("") == 3


def test_a_thread_that_never_ends_does_not_keep_the_process() -> None:
    assert _ended("threading.Thread(target=threading.Event().wait).start()") == 3


def test_a_thread_that_never_ends_does_not_keep_a_process_that_failed() -> None:
    stuck = "threading.Thread(target=threading.Event().wait).start()"
    assert _ended(f"{stuck}\nraise RuntimeError") == 1
