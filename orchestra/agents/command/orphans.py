"""Programs that outlived the process which started them: ended before another attempt takes their place.

A program in a process group of its own does not notice when its parent is killed, unless it reads its
standard input. So it is noted in its workspace which one it is: its number, who started it, and when it
began, because numbers are used again.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from orchestra.limits import LEFTOVER_SECONDS

_FILE: Final = ".program"


def note_program(workspace: str, pid: int) -> None:
    """Write down which program is at work in a workspace."""
    if not workspace:
        return
    with suppress(OSError):  # it may be gone already, or the disk full: then nothing can be looked up later
        (Path(workspace) / _FILE).write_text(f"{pid} {os.getpid()} {_began(pid)}", encoding="utf-8")


def forget_program(workspace: str) -> None:
    """It is over."""
    if not workspace:
        return
    with suppress(OSError):
        (Path(workspace) / _FILE).unlink()


def end_leftover(workspace: str) -> int | None:
    """End the program that is still at work in a workspace, and all of its group; its number, if any.

    Whoever may start an attempt owns the run, so the process that started that program is dead, or gave it
    up here. If it lives, it plays a run of the same name in another store, and its program is left alone.
    """
    if not workspace:
        return None
    try:
        number, starter, began = (Path(workspace) / _FILE).read_text(encoding="utf-8").split()
        pid = int(number)
        if _began(pid) != began or os.getpgid(pid) != pid:
            return None
        if _parent(pid) == int(starter) != os.getpid():
            return None
        os.killpg(pid, signal.SIGKILL)
    except (OSError, ValueError):
        return None
    _wait(pid, began)
    return pid


def _wait(pid: int, began: str) -> None:
    """Until the kernel has ended it, which takes a moment."""
    until = monotonic() + LEFTOVER_SECONDS
    with suppress(ProcessLookupError):
        while _began(pid) == began and monotonic() < until:
            sleep(0.002)


def _began(pid: int) -> str:
    """How long after the machine a living process began, as text; raises `ProcessLookupError` without one.

    The time of day at which it began would be another one after the clock was set.
    """
    import psutil  # late: only who starts programs needs it

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise ProcessLookupError(pid)
        return f"{process.create_time() - psutil.boot_time():.2f}"
    except psutil.Error:
        raise ProcessLookupError(pid) from None


def _parent(pid: int) -> int:
    """The process that a process belongs to; raises `ProcessLookupError` when there is none."""
    import psutil

    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        raise ProcessLookupError(pid) from None
