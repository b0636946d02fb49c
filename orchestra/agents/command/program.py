"""Programs in a process group of their own: started, listened to within limits, and stopped for sure.

A group is stopped as a whole, because a shell script leaves its children behind when only the shell is
told. What a program may see of the environment is chosen, not inherited: secrets of the caller are nobody's
business.

A program in a group of its own does not notice when its parent is killed, unless it reads its standard input.
So it is noted in its workspace which one it is: its number, who started it, and when it began, because
numbers are used again. What outlived its parent is ended before another attempt takes its place.
"""

import os
import signal
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import anyio
import attrs
from anyio.abc import ByteReceiveStream, Process

from orchestra.errors import BadAgent
from orchestra.limits import AGENT_LINE_BYTES, AGENT_OUTPUT_BYTES, AGENT_STDERR_BYTES, LEFTOVER_SECONDS, MB
from orchestra.ports.agent import Assignment

_BASIC: Final = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")
_NOTE: Final = ".program"
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class TooMuch(Exception):
    """A program wrote more than it may; the text says what."""


@attrs.frozen(kw_only=True)
class Launch:
    """How a program is started."""

    agent: str
    command: tuple[str, ...]
    environment: Mapping[str, str]


def environment(names: Iterable[str], among: Mapping[str, str]) -> dict[str, str]:
    """The basic variables and those that were named."""
    wanted = {*_BASIC, *names}
    return {name: value for name, value in among.items() if name in wanted or name.startswith("LC_")}


def working_folder(assignment: Assignment) -> str:
    """Where a program works: in the project, as agents of this process do. Its workspace is made for it."""
    if assignment.workspace:
        Path(assignment.workspace).mkdir(parents=True, exist_ok=True)
    folders = (assignment.project, assignment.workspace)
    return next((each for each in folders if each and Path(each).is_dir()), ".")


def exit_words(code: int) -> tuple[str, dict[str, Any]]:
    """How a process ended: in words, and as data with the exit code as a shell tells it."""
    number = -code if code < 0 else code - 128
    name = next((each.name for each in signal.Signals if each == number), "")
    if code < 0:
        words = f"was killed by signal {number} ({name})"
        return words, {"exit_code": 128 + number, "signal": number}
    words = f"ended with exit code {code}" + (f", as after signal {number} ({name})" if name else "")
    return words, {"exit_code": code, "signal": number if name else None}


class Program:
    """A running program."""

    def __init__(self, process: Process) -> None:
        assert process.stdin, "BUG: a program has its three pipes"
        assert process.stdout, "BUG: a program has its three pipes"
        assert process.stderr, "BUG: a program has its three pipes"
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._tail = bytearray()
        self.stderr_ended = anyio.Event()
        self._say, self._said = anyio.create_memory_object_stream[bytes](inf)

    @classmethod
    async def start(cls, launch: Launch, folder: str) -> "Program":
        """Start it where it is to work; raises `BadAgent`."""
        try:
            process = await anyio.open_process(
                launch.command, cwd=folder, env=launch.environment, start_new_session=True
            )
        except (OSError, ValueError) as error:
            reason = f"it cannot be started: {getattr(error, 'strerror', None) or error}"
            raise BadAgent(agent=launch.agent, place=launch.command[0], reason=reason) from None
        return cls(process)

    @property
    def pid(self) -> int:
        """The number of its process, and of its group."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """The end of what it wrote to standard error."""
        return self._tail.decode(errors="replace").strip()

    # --- talking

    def say(self, line: bytes) -> None:
        """Have a line written to it, in order, without waiting."""
        with suppress(*_GONE):
            self._say.send_nowait(line)

    def hang_up(self) -> None:
        """Close its standard input once everything is written."""
        self._say.close()

    async def write(self) -> None:
        """Write what is said, until it is hung up or does not listen any more."""
        with suppress(*_GONE, OSError):
            async for line in self._said:
                await self._stdin.send(line)
        with suppress(*_GONE, OSError):
            await self._stdin.aclose()

    async def watch_stderr(self) -> None:
        """Keep the end of what it complains about; a flood is stopped."""
        total = 0
        while chunk := await _chunk(self._stderr):
            total += len(chunk)
            self._tail += chunk
            del self._tail[:-AGENT_STDERR_BYTES]
            if total > AGENT_OUTPUT_BYTES:
                self._tail += b"\n(it wrote too much here and was stopped)"
                self.signal(signal.SIGKILL)
        self.stderr_ended.set()

    async def lines(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Its lines with their numbers; raises `TooMuch`."""
        number, total, rest = 0, 0, bytearray()
        while chunk := await _chunk(self._stdout):
            total += len(chunk)
            if total > AGENT_OUTPUT_BYTES:
                raise TooMuch(f"it wrote more than {AGENT_OUTPUT_BYTES // MB} MB")
            *whole, last = chunk.split(b"\n")
            for line in whole:
                number += 1
                yield number, bytes(rest + line)
                rest.clear()
            rest += last
            if len(rest) > AGENT_LINE_BYTES:
                raise TooMuch(f"line {number + 1} is longer than {AGENT_LINE_BYTES // MB} MB")
        if rest:
            yield number + 1, bytes(rest)

    # --- stopping

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; none is left is fine."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def wait(self) -> int:
        """How it ended, once it has."""
        return await self._process.wait()

    async def close(self) -> None:
        """Leave nothing behind: no process of the group, no pipe."""
        self._say.close()
        self._said.close()
        self.signal(signal.SIGKILL)
        await self._process.wait()
        for stream in (self._stdin, self._stdout, self._stderr):
            with suppress(*_GONE, OSError):
                await stream.aclose()
        _close_pipes(self._process)


async def _chunk(stream: ByteReceiveStream) -> bytes:
    """What has come; nothing at the end."""
    try:
        return await stream.receive()
    except _GONE:
        return b""


def _close_pipes(process: Process) -> None:
    """Close our ends for good: somebody who left the group may hold the others open for ever.

    Neither anyio nor asyncio has a public way to do so.
    """
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        transport.close()


def absolute_command(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """A command whose paths are the workflow's: the program, and arguments that name a file there."""
    program, *arguments = command
    first = str(folder / program) if "/" in program else program
    files = [each for each in arguments if "/" in each and each[0] != "-" and (folder / each).is_file()]
    return (first, *(str(folder / each) if each in files else each for each in arguments))


# --- what outlived its parent


def note_program(workspace: str, pid: int) -> None:
    """Write down which program is at work in a workspace."""
    if workspace:
        with suppress(OSError):  # it may be gone already, or the disk full: then it cannot be looked up
            began, _ = _look_up(pid)
            (Path(workspace) / _NOTE).write_text(f"{pid} {os.getpid()} {began}", encoding="utf-8")


def forget_program(workspace: str) -> None:
    """It is over."""
    if workspace:
        with suppress(OSError):
            (Path(workspace) / _NOTE).unlink()


def end_leftover(workspace: str) -> int | None:
    """End the program that is still at work in a workspace, and all of its group; its number, if any.

    Whoever may start an attempt owns the run, so the process that started that program is dead, or gave it
    up here. If it lives, it plays a run of the same name in another store, and its program is left alone.
    """
    if not workspace:
        return None
    try:
        number, starter, began = (Path(workspace) / _NOTE).read_text(encoding="utf-8").split()
        pid = int(number)
        since, parent = _look_up(pid)
        if since != began or os.getpgid(pid) != pid or parent == int(starter) != os.getpid():
            return None
        os.killpg(pid, signal.SIGKILL)
    except (OSError, ValueError):
        return None
    until = monotonic() + LEFTOVER_SECONDS  # the kernel takes a moment to end it
    with suppress(ProcessLookupError):
        while _look_up(pid)[0] == began and monotonic() < until:
            sleep(0.002)
    return pid


def _look_up(pid: int) -> tuple[str, int]:
    """How long after the machine a living process began, and its parent; raises `ProcessLookupError`.

    The time of day at which it began would be another one after the clock was set.
    """
    import psutil  # late: only who starts programs needs it

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise ProcessLookupError(pid)
        return f"{process.create_time() - psutil.boot_time():.2f}", process.ppid()
    except psutil.Error:
        raise ProcessLookupError(pid) from None
