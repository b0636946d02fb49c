"""Programs in a process group of their own: started, listened to within limits, and stopped for sure.

A group is stopped as a whole, because a shell script leaves its children behind when only the shell is
told. What a program may see of the environment is chosen, not inherited: secrets of the caller are nobody's
business.
"""

import os
import signal
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
from anyio.abc import ByteReceiveStream, Process

from orchestra.errors import BadAgent
from orchestra.limits import AGENT_LINE_BYTES, AGENT_OUTPUT_BYTES, AGENT_STDERR_BYTES, MB
from orchestra.ports.agent import Assignment

_BASIC: Final = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class TooMuch(Exception):
    """A program wrote more than it may; the text says what."""


@attrs.frozen(kw_only=True)
class Launch:
    """How a program is started."""

    agent: str
    command: tuple[str, ...]
    folder: str  # where it works
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


def exit_words(code: int) -> str:
    """How a process ended, in words."""
    number = -code if code < 0 else code - 128
    name = _signal_name(number)
    if code < 0:
        return f"was killed by signal {number} ({name})"
    return f"ended with exit code {code}" + (f", as after signal {number} ({name})" if name else "")


def exit_details(code: int) -> dict[str, Any]:
    """How a process ended, as data: the exit code as a shell tells it, and the signal if it was one."""
    number = -code if code < 0 else code - 128
    return {
        "exit_code": 128 + number if code < 0 else code,
        "signal": number if code < 0 or _signal_name(number) else None,
    }


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


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
    async def start(cls, launch: Launch) -> "Program":
        """Start it; raises `BadAgent`."""
        try:
            process = await anyio.open_process(
                launch.command, cwd=launch.folder, env=launch.environment, start_new_session=True
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
    return (first, *(_absolute(each, folder) for each in arguments))


def _absolute(argument: str, folder: Path) -> str:
    place = folder / argument
    return str(place) if "/" in argument and not argument.startswith("-") and place.is_file() else argument
