"""A process ends, also when a thread in it does not."""

import subprocess
import sys
import textwrap


def _ended(body: str) -> int:
    """The exit code of a process that plays something."""
    script = f"""
import sys, threading
from orchestra.cli.play import lifeline

lifeline.LEAVE_SECONDS = 0.05

async def main(line):
{textwrap.indent(textwrap.dedent(body), "    ")}
    return 3

raise SystemExit(lifeline.play(main))
"""
    return subprocess.run([sys.executable, "-c", script], timeout=300, check=False).returncode


def test_the_earliest_end_counts_and_the_latest_code() -> None:
    """All runs have ended while they were being stopped: their code is the one, and nothing is said."""
    stopping = "line.end_within(0.05, 130, lambda: print('late'))"
    forever = "import time\ntime.sleep(1000)"
    assert _ended(f"{stopping}\n{forever}") == 130
    assert _ended(f"{stopping}\nlifeline.LEAVE_SECONDS = 1000\nline.leave(4)\n{forever}") == 4
    assert _ended(f"line.end_within(1000, 130)\nline.end_within(0.05, 5)\n{forever}") == 5


def test_one_thread_waits_for_all_ends() -> None:
    body = """
        line.end_within(1000, 130)
        line.end_within(900, 130)
        line.leave(3)
        assert [each.name for each in threading.enumerate()].count("lifeline") == 1
    """
    assert _ended(body) == 3


def test_a_process_ends_with_the_code_of_what_it_played() -> None:
    assert _ended("") == 3


def test_a_thread_that_never_ends_does_not_keep_the_process() -> None:
    assert _ended("threading.Thread(target=threading.Event().wait).start()") == 3


def test_a_thread_that_never_ends_does_not_keep_a_process_that_failed() -> None:
    stuck = "threading.Thread(target=threading.Event().wait).start()"
    assert _ended(f"{stuck}\nraise RuntimeError") == 1
