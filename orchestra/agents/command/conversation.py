"""The conversation with a program: its reports in, answers out, until its last line and its end.

It goes on while the program lives, also while it is being stopped, so that an agent can save what it has
when it is told to end. Whatever the program does wrong ends in one `AgentFailed` that names the line.
"""

import signal
from contextlib import aclosing
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from orchestra.agents.command.outputs import content_of
from orchestra.agents.command.program import Program, TooMuch, exit_details, exit_words
from orchestra.agents.failures import misbehaviour
from orchestra.agents.gate import Gate
from orchestra.agents.reports import REPORTS, SENT, kind_of, make
from orchestra.agents.results import expected_result, result_from, wrong_result
from orchestra.agents.wire import BadLine, assignment_message, line_of, message_of, shown_line
from orchestra.errors import AgentFailed, OrchestraError
from orchestra.limits import AGENT_CALLS
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
            await self._finish_stderr()
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
            self._fail(self._bad_line(str(bad)))
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
            self._gate.on_save(self._ask_progress)
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
                self._fail(self._gate.broken or self._unanswered(kind, error))
                return
            said = {"type": "error", "id": number, "error": type(error).__name__, "message": str(error)}
            answer = line_of(said, lenient=True)
        if number is not None:
            self._program.say(answer)

    async def _reported(self, kind: str, fields: dict[str, Any]) -> Any:
        cls = REPORTS[kind]
        if kind == "wrote":
            fields = await content_of(fields, self._assignment.workspace)
        report = make(cls, **fields)
        if cls in SENT:
            return self._gate.send(report)
        return await self._gate.call(report)

    def _ask_progress(self) -> None:
        self._program.say(line_of({"type": "save"}))

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

    async def _finish_stderr(self) -> None:
        with anyio.move_on_after(_DRAIN_SECONDS):
            await self._program.stderr_ended.wait()

    def _fail(self, failure: BaseException) -> None:
        if self._failure is None:
            self._failure = failure
        self._reading.cancel()

    # --- what came of it

    def _settled(self, code: int) -> Result | Judgement:
        if self._failure is not None:
            raise self._failure
        if self._last is not None and self._last["type"] == "failed":
            raise self._declared(self._last)
        if code != 0 and not self._patience_ended:
            words = exit_words(code)
            raise self._failed("ProgramFailed", f"the program {words}{self._complaint()}", code)
        if self._last is None:
            raise self._failed("NoResult", f"the program ended without a result{self._last_words()}", code)
        return self._result(self._last)

    def _result(self, message: dict[str, Any]) -> Result | Judgement:
        kind = message.pop("type")
        wanted = expected_result(self._assignment.role)
        if kind != wanted:
            raise wrong_result(self._assignment, f"it is a {kind}; a {wanted} was expected")
        try:
            made = make(Result if kind == "result" else Judgement, **message)
        except ValueError as error:
            raise wrong_result(self._assignment, str(error)) from None
        return result_from(self._assignment, made)

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

    def _failed(self, error: str, words: str, code: int | None = None) -> AgentFailed:
        details = self._with_stderr(exit_details(code) if code is not None else None)
        return misbehaviour(self._assignment.agent, error, words, details=details)

    def _bad_line(self, why: str) -> AgentFailed:
        assert self._line is not None, "BUG: a bad line was read before it was found bad"
        number, line = self._line
        words = (
            f"line {number} of its output is no message of the protocol: {why}: {shown_line(line)!r}. "
            'A program says {"type": "result", "output": …} in its last line; other output belongs to stderr'
        )
        return self._failed("GarbageLine", words)

    def _unanswered(self, kind: str, error: Exception) -> AgentFailed:
        return self._failed(type(error).__name__, f"what it {kind} without an id was refused: {error}")

    def _last_words(self) -> str:
        if self._line is None:
            return "; it printed nothing"
        number, line = self._line
        return f"; its last line was line {number}: {shown_line(line)!r}"

    def _complaint(self) -> str:
        said = self._program.stderr
        return f": {said.splitlines()[-1]}" if said else ""

    def _with_stderr(self, details: Any) -> Any:
        said = self._program.stderr
        if not said:
            return details
        known = details if isinstance(details, dict) else {} if details is None else {"details": details}
        return {**known, "stderr": said}
