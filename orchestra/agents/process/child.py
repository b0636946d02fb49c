"""The other end of `isolation: process`: runs one attempt of a Python agent and tells about it in JSON lines.

    python -P -m orchestra.agents.process.child FILE ATTRIBUTE PARENT

Standard input and output are for the protocol alone: what the agent prints goes to standard error. The
process ends with its parent: the kernel is asked to see to it where it can, and the end of standard input
is noticed everywhere.
"""

import asyncio
import ctypes
import faulthandler
import io
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio

from orchestra.agents.failures import failure_of, misbehaviour
from orchestra.agents.python.loading import AgentLoader
from orchestra.agents.python.runner import LocalRunner
from orchestra.agents.wire import assignment_of, line_of, message_of, report_message, result_message
from orchestra.errors import AgentError, BadAgent, ValueRefused
from orchestra.ids import AgentId
from orchestra.limits import AGENT_GRACE_SECONDS, AGENT_INLINE_BYTES, AGENT_LINE_BYTES, MB
from orchestra.ports.agent import Assignment, ProgressCallback, Report, Wrote

_PR_SET_PDEATHSIG: Final = 1
_STOPPED: Final = 128 + signal.SIGTERM


class Pipes:
    """The two ends of the protocol, moved to where the agent does not find them by accident."""

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self.lines = os.fdopen(self._in, "rb")
        self._writing = threading.Lock()

    def write(self, line: bytes) -> None:
        """Write a whole line."""
        with self._writing:
            left = memoryview(line)
            while left:
                left = left[os.write(self._out, left) :]


class ParentLink:
    """The link to the runner in the parent process. Used on the loop's thread."""

    def __init__(self, pipes: Pipes, assignment: Assignment) -> None:
        self._pipes = pipes
        self._assignment = assignment
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asks: list[ProgressCallback] = []
        self._count = 0

    def send(self, report: Report) -> None:
        self._pipes.write(_line(report_message(report), self._assignment.agent))

    async def call(self, report: Report) -> Any:
        self._count += 1
        number = self._count
        message = {**report_message(report), "id": number}
        place = _packed(report, message, self._assignment, number) if isinstance(report, Wrote) else None
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._pipes.write(_line(message, self._assignment.agent))
            return await answer
        finally:
            self._waiting.pop(number, None)
            if place is not None:
                place.unlink(missing_ok=True)

    def on_save(self, ask: ProgressCallback) -> None:
        if not self._asks:
            self._pipes.write(line_of({"type": "on_save"}))
        self._asks.append(ask)

    def take(self, line: bytes) -> None:
        """Something that the parent said."""
        message = message_of(line)
        if message["type"] == "save":
            for ask in self._asks:
                saved = ask()
                if saved is not None:
                    self.send(saved)
            return
        waiting = self._waiting.get(message["id"])
        if waiting is None or waiting.done():
            return
        if message["type"] == "answer":
            waiting.set_result(message["value"])
        else:
            waiting.set_exception(misbehaviour(self._assignment.agent, message["error"], message["message"]))


def _packed(report: Wrote, message: dict[str, Any], assignment: Assignment, number: int) -> Path | None:
    """Put the content of an output into its message; much of it into a file beside the message."""
    if len(report.content) <= AGENT_INLINE_BYTES or not Path(assignment.workspace).is_dir():
        message["content"] = report.content
        return None
    place = Path(assignment.workspace) / f".output-{os.getpid()}-{number}"
    place.write_bytes(report.content)
    message["file"] = place.name
    return place


def _line(message: dict[str, Any], agent: AgentId) -> bytes:
    line = line_of(message)
    if len(line) > AGENT_LINE_BYTES:
        words = (
            f"what is {message['type']} takes {len(line)} bytes and {AGENT_LINE_BYTES // MB} MB is the limit "
            "for agents in a process. Write it to a file"
        )
        raise misbehaviour(agent, "TooMuchOutput", words)
    return line


async def _last_line(file: str, attribute: str, assignment: Assignment, link: ParentLink) -> bytes:
    """What came of the attempt."""
    failure: AgentError
    try:
        code = AgentLoader().load(Path(file), attribute, agent=assignment.agent)
        runner = LocalRunner(anyio.CapacityLimiter(1), AGENT_GRACE_SECONDS)
        result = await runner.run(code, assignment, link)
    except BadAgent as error:
        failure = failure_of(assignment.agent, error)
    except AgentError as error:
        failure = error
    else:
        try:
            return _line(result_message(result), assignment.agent)
        except (AgentError, ValueRefused) as error:
            failure = failure_of(assignment.agent, error)
    return line_of({"type": "failed", **failure.data}, lenient=True)


async def _main(pipes: Pipes, file: str, attribute: str) -> None:
    assignment = assignment_of(message_of(pipes.lines.readline()))
    link = ParentLink(pipes, assignment)
    loop = asyncio.get_running_loop()
    done = threading.Event()
    listen = threading.Thread(target=_listen, args=(pipes, loop, link, done), daemon=True)
    with anyio.CancelScope() as scope:
        loop.add_signal_handler(signal.SIGTERM, scope.cancel)
        listen.start()
        last = await _last_line(file, attribute, assignment, link)
        done.set()
        pipes.write(last)
        return
    sys.stderr.flush()
    os._exit(_STOPPED)


def _listen(pipes: Pipes, loop: asyncio.AbstractEventLoop, link: ParentLink, done: threading.Event) -> None:
    for line in pipes.lines:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(link.take, line)
    if not done.is_set():
        _die()


def _die() -> None:
    """The parent is gone: nobody wants to know the result, and the group must not outlive it."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def run_child() -> None:
    """Run one attempt."""
    file, attribute, parent = sys.argv[1:]
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        _die()
    faulthandler.enable()
    pipes = Pipes()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what it printed before it crashed may say why
    anyio.run(_main, pipes, file, attribute)


if __name__ == "__main__":
    run_child()
