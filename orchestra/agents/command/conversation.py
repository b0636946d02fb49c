"""The conversation with a program: its reports in, answers out, until its last line and its end.

It goes on while the program lives, also while it is being stopped, so that an agent can save what it has
when it is told to end. Whatever the program does wrong ends in one `AgentFailed` that names the line.
"""

import base64
import binascii
import os
import signal
import stat
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from orchestra.agents.command.program import Program, TooMuch, exit_words
from orchestra.agents.failures import misbehaviour
from orchestra.agents.gate import Gate
from orchestra.agents.reports import REPORTS, SENT, kind_of, make, wrong_result
from orchestra.agents.wire import BadLine, assignment_message, line_of, message_of, shown_line
from orchestra.errors import AgentFailed, OrchestraError
from orchestra.limits import AGENT_CALLS, MB, VALUE_BYTES
from orchestra.ports.agent import Assignment, Judgement, Result

_DRAIN_SECONDS: Final = 1.0
_SENT: Final = frozenset(kind_of(cls) for cls in SENT)
_LAST: Final = ("result", "judgement", "failed")


class Conversation:
    """One attempt's."""

    def __init__(self, program: Program, assignment: Assignment, gate: Gate, grace: float) -> None:
        self._program = program
        self._assignment = assignment
        self._gate = gate
        self._grace = grace
        self._calls = anyio.Semaphore(AGENT_CALLS)
        self._reading = anyio.CancelScope()
        self._last: dict[str, Any] | None = None  # the last message, once it is there
        self._line: tuple[int, bytes] | None = None  # the newest line, for people
        self._failure: BaseException | None = None
        self._patience_ended = False

    async def result(self) -> Result | Judgement:
        """What the program says in the end; raises `AgentFailed`, or what kept the engine from listening."""
        self._program.say(line_of(assignment_message(self._assignment)))
        async with anyio.create_task_group() as group:
            group.start_soon(self._program.write)
            group.start_soon(self._program.watch_stderr)
            group.start_soon(self._watch_end)
            with self._reading:
                await self._listen(group)
            if self._failure is not None or self._patience_ended:
                self._program.signal(signal.SIGKILL)
            code = await self._program.wait()
            with anyio.move_on_after(_DRAIN_SECONDS):
                await self._program.stderr_ended.wait()
            group.cancel_scope.cancel()
        return self._settled(code)

    # --- listening

    async def _listen(self, group: TaskGroup) -> None:
        try:
            async with aclosing(self._program.lines()) as lines:
                async for number, line in lines:
                    if line.strip():
                        self._line = number, line
                        await self._take(message_of(line), group)
        except BadLine as bad:
            assert self._line is not None, "BUG: a bad line was read before it was found bad"
            number, line = self._line
            words = (
                f"line {number} of its output is no message of the protocol: {bad}: {shown_line(line)!r}. "
                'A program says {"type": "result", "output": …} in its last line; '
                "other output belongs to stderr"
            )
            self._fail(self._failed("GarbageLine", words))
        except TooMuch as much:
            self._fail(self._failed("TooMuchOutput", f"{much}, which is its limit; it was stopped"))

    async def _take(self, message: dict[str, Any], group: TaskGroup) -> None:
        kind = message.pop("type")
        if self._last is not None:
            raise BadLine(f"it came after the {self._last['type']}")
        if kind in _LAST:
            self._last = {"type": kind, **message}
            self._program.hang_up()
            group.start_soon(self._lose_patience)
        elif kind == "on_save":
            self._gate.on_save(lambda: self._program.say(line_of({"type": "save"})))
        elif kind in _SENT:
            await self._answer(kind, message)
        elif kind in REPORTS:
            await self._calls.acquire()
            group.start_soon(self._call, kind, message)
            await anyio.lowlevel.checkpoint()  # it is handed in before the next line is read
        else:
            raise BadLine(f"there is no message of type {kind!r}")

    async def _call(self, kind: str, message: dict[str, Any]) -> None:
        try:
            await self._answer(kind, message)
        finally:
            self._calls.release()

    async def _answer(self, kind: str, message: dict[str, Any]) -> None:
        number = message.pop("id", None)
        try:
            value = await self._reported(kind, message)
            answer = line_of({"type": "answer", "id": number, "value": value}) if number is not None else b""
        except (ValueError, OSError, OrchestraError) as error:
            if self._gate.broken is not None or number is None:
                words = f"what it {kind} without an id was refused: {error}"
                self._fail(self._gate.broken or self._failed(type(error).__name__, words))
                return
            said = {"type": "error", "id": number, "error": type(error).__name__, "message": str(error)}
            answer = line_of(said, lenient=True)
        if number is not None:
            self._program.say(answer)

    async def _reported(self, kind: str, fields: dict[str, Any]) -> Any:
        cls = REPORTS[kind]
        if kind == "wrote":
            fields = await _content_of(fields, self._assignment.workspace)
        report = make(cls, **fields)
        if cls in SENT:
            return self._gate.send(report)
        return await self._gate.call(report)

    # --- ending

    async def _watch_end(self) -> None:
        """When the program has ended, what it left behind must not keep its output open."""
        await self._program.wait()
        self._program.signal(signal.SIGKILL)
        await anyio.sleep(_DRAIN_SECONDS)
        self._reading.cancel()

    async def _lose_patience(self) -> None:
        """After its last line a program has the grace time to end by itself."""
        await anyio.sleep(self._grace)
        self._patience_ended = True
        self._reading.cancel()

    def _fail(self, failure: BaseException) -> None:
        if self._failure is None:
            self._failure = failure
        self._reading.cancel()

    # --- what came of it

    def _settled(self, code: int) -> Result | Judgement:
        words, details = exit_words(code)
        if self._failure is not None:
            raise self._failure
        if self._last is not None and self._last["type"] == "failed":
            raise self._declared(self._last)
        if code != 0 and not self._patience_ended:
            said = self._program.stderr
            complaint = f": {said.splitlines()[-1]}" if said else ""
            raise self._failed("ProgramFailed", f"the program {words}{complaint}", details)
        if self._last is None:
            last = "it printed nothing"
            if self._line is not None:
                last = f"its last line was line {self._line[0]}: {shown_line(self._line[1])!r}"
            raise self._failed("NoResult", f"the program ended without a result; {last}", details)
        return self._result(self._last)

    def _result(self, message: dict[str, Any]) -> Result | Judgement:
        kind = message.pop("type")
        wanted = "judgement" if self._assignment.role == "apollo" else "result"
        if kind != wanted:
            raise wrong_result(self._assignment, f"it is a {kind}; a {wanted} was expected")
        made: type[Result | Judgement] = Result if kind == "result" else Judgement
        try:
            return make(made, **message)
        except ValueError as error:
            raise wrong_result(self._assignment, str(error)) from None

    def _declared(self, message: dict[str, Any]) -> AgentFailed:
        """A failure in the program's own words."""
        recoverable = message.get("recoverable", True)
        return AgentFailed(
            agent=self._assignment.agent,
            error=str(message.get("error") or "Failed"),
            message=str(message.get("message", "the program gave no reason")),
            stack=str(message.get("stack", "")),
            recoverable=recoverable if isinstance(recoverable, bool) else True,
            details=self._with_stderr(message.get("details")),
        )

    def _failed(self, error: str, words: str, details: dict[str, Any] | None = None) -> AgentFailed:
        return misbehaviour(self._assignment.agent, error, words, details=self._with_stderr(details))

    def _with_stderr(self, details: Any) -> Any:
        said = self._program.stderr
        if not said:
            return details
        known = details if isinstance(details, dict) else {} if details is None else {"details": details}
        return {**known, "stderr": said}


# --- outputs on their way from a program: as text, as base64, or as a file that lies in its workspace


async def _content_of(fields: dict[str, Any], workspace: str) -> dict[str, Any]:
    """The fields of `wrote` with the content in them as bytes or text; raises `ValueError`.

    Without content the output is the file of that path in the workspace, or the one that `file` names.
    """
    rest = {name: value for name, value in fields.items() if name not in ("content_base64", "file")}
    given = [name for name in ("content", "content_base64", "file") if name in fields]
    if len(given) > 1:
        raise ValueError(f"wrote has one of {' and '.join(given)}, not both")
    match given:
        case ["content"]:
            return rest
        case ["content_base64"]:
            return {**rest, "content": _decoded(fields["content_base64"])}
        case _:
            name = fields.get("file", fields.get("path"))
            return {**rest, "content": await to_thread.run_sync(_read, name, workspace)}


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ValueError(f"content_base64 of wrote is no base64 ({error})") from None


def _read(name: Any, workspace: str) -> bytes:
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError("wrote needs 'path'")
    root = Path(workspace).resolve()
    place = (root / name).resolve()
    if not place.is_relative_to(root):
        raise ValueError(f"{name!r} is not in the workspace {workspace}")
    try:
        with open(_opened(place, name), "rb") as file:
            content = file.read(VALUE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{name!r} in the workspace cannot be read: {error.strerror}") from None
    if len(content) > VALUE_BYTES:
        size = place.stat().st_size
        raise ValueError(f"{name!r} takes {size} bytes and the limit is {VALUE_BYTES // MB} MB")
    return content


def _opened(place: Path, name: str) -> int:
    """A regular file, open; to open a pipe would mean to wait for whoever writes to it, perhaps for ever."""
    opened = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise ValueError(f"{name!r} in the workspace is no regular file")
    return opened
