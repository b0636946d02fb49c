"""Agents in this process: async functions in the loop, plain functions in a thread.

An async agent must not block: what does belongs into a plain function, and what may never end into a process.

Cancelling is asking. An agent that swallows the cancellation must not hold the run, so it is given up after a
grace time. A coroutine is then dropped: it is never resumed, which is as good as stopped. A thread cannot be
stopped by anybody; it is a daemon, so that it does not keep the process alive. That takes asyncio rather than
anyio: a task group waits for its tasks however long they take, which is the opposite of what is needed here.
"""

import asyncio
import ctypes
import os
import sys
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

import anyio
from anyio import CapacityLimiter
from anyio.lowlevel import current_token

from orchestra.agents.attempt import raise_failure, run_attempt, start_attempt
from orchestra.agents.context import BlockingContext, Context, ThreadLink
from orchestra.agents.failures import failure_of
from orchestra.agents.gate import Gate
from orchestra.agents.python.kind import PythonOptions
from orchestra.agents.python.loading import AgentLoader, Code, code_of
from orchestra.agents.reports import result_from
from orchestra.codec.definitions import read_options
from orchestra.errors import AgentAbandoned, AgentFailed, BadAgent
from orchestra.ids import AgentId
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Stop
from orchestra.ports.agent_kind import Workplace

T = TypeVar("T")
_CLOSING_TRIES: Final = 5
_ROOT: Final = str(Path(__file__).parents[3])


class _Outcome(NamedTuple):
    """What became of an agent's code: what it returned, or the error it ended with, of whatever kind."""

    value: Any = None
    error: BaseException | None = None


class _GivenUp(Exception):
    """It had to stop and did not; the text says what became of it."""


class PythonRunner:
    """Runs agents in `.py` files, each in this process or in one of its own."""

    def __init__(self, place: Workplace) -> None:
        self._folder, self._grace = place.folder, place.grace
        self._local = LocalRunner(place.threads, place.grace)
        self._loader = AgentLoader()

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        options = read_options(agent, PythonOptions)
        if options.isolation == "process":
            work = self._run_isolated(agent, options, assignment, link)
            return start_attempt(work, ended)
        code = self._loader.find(self._folder / agent.path, options.attribute)
        if code is not None:
            return self._local.start(code, assignment, link, ended)
        return start_attempt(self._load_and_run(agent, options.attribute, assignment, link), ended)

    def _run_isolated(
        self, agent: Agent, options: PythonOptions, assignment: Assignment, link: Link
    ) -> Coroutine[Any, Any, Result | Judgement]:
        """Run an agent in a fresh process, which can be killed; it talks JSON lines as any program does."""
        from orchestra.agents.command import program, runner  # late: the process itself needs neither

        given = program.environment((*options.environment, "PYTHONPATH"), os.environ)
        paths = [_ROOT, *filter(None, given.get("PYTHONPATH", "").split(os.pathsep))]
        given["PYTHONPATH"] = os.pathsep.join(str(Path(each).absolute()) for each in paths)
        # -P: the folder it works in must not be able to replace modules of ours.
        module = (sys.executable, "-P", "-m", "orchestra.agents.process.child")
        command = (*module, str(self._folder / agent.path), options.attribute, str(os.getpid()))
        launch = program.Launch(agent=agent.id, command=command, environment=given)
        return runner.run_program(launch, assignment, link, self._grace)

    async def _load_and_run(
        self, agent: Agent, attribute: str, assignment: Assignment, link: Link
    ) -> Result | Judgement:
        path = self._folder / agent.path
        outcome = await _run_in_thread(lambda: self._loader.load(path, attribute, agent=agent.id))
        if outcome.error is not None:
            raise failure_of(assignment.agent, outcome.error) from None
        return await self._local.run(outcome.value, assignment, link)


class FunctionRunner:
    """Runs functions that a program handed over."""

    def __init__(self, place: Workplace) -> None:
        self._functions = place.functions
        self._local = LocalRunner(place.threads, place.grace)
        self._codes: dict[AgentId, Code] = {}

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        code = self._codes.get(agent.id)
        if code is None:
            try:
                code = self._codes[agent.id] = self._code(agent)
            except BadAgent as error:
                return start_attempt(raise_failure(assignment.agent, error), ended)
        return self._local.start(code, assignment, link, ended)

    def _code(self, agent: Agent) -> Code:
        function = self._functions.get(agent.id)
        if function is None:
            known = ", ".join(sorted(self._functions)) or "none"
            reason = f"no function was given for it; given are: {known}"
            raise BadAgent(agent=agent.id, place="Python", reason=reason)
        return code_of(function, agent.id, getattr(function, "__qualname__", "Python"))


class LocalRunner:
    """Runs the code of Python agents in this process."""

    def __init__(self, limiter: CapacityLimiter, grace: float) -> None:
        self._limiter = limiter
        self._grace = grace

    def start(self, code: Code, assignment: Assignment, link: Link, ended: Ended) -> Stop:
        if not code.is_async:
            return start_attempt(self._threaded(code, assignment, link), ended)
        return _Leashed(code, assignment, Gate(link, assignment.agent), self._grace, ended).stop

    async def run(self, code: Code, assignment: Assignment, link: Link) -> Result | Judgement:
        """What the agent returned; raises as `run_attempt` does."""
        return await run_attempt(lambda ended: self.start(code, assignment, link, ended))

    async def _threaded(self, code: Code, assignment: Assignment, link: Link) -> Result | Judgement:
        gate = Gate(link, assignment.agent)
        thread = ThreadLink(gate, current_token())
        context = BlockingContext(assignment, thread)

        def stop() -> None:
            gate.cancel()
            thread.interrupt()

        try:
            async with self._limiter:
                outcome = await _run_in_thread(lambda: code.call(context), self._grace, stop)
        except (_GivenUp, RuntimeError) as error:  # or there are no more threads to be had
            outcome = _Outcome(error=error)
        finally:
            gate.close()
        judged = _judged(outcome, assignment, gate, self._grace)
        if isinstance(judged, BaseException):
            raise judged
        return judged


class _Leashed:
    """An attempt of an async agent in a task of its own, which is given up when it does not stop."""

    __slots__ = ("_begun", "_code", "_gate", "_grace", "_task", "_tell", "_timer", "assignment", "cut")

    def __init__(self, code: Code, assignment: Assignment, gate: Gate, grace: float, ended: Ended) -> None:
        self._code, self.assignment, self._gate, self._grace = code, assignment, gate, grace
        self._tell: Ended | None = ended
        self.cut = False  # whether the coroutine is resumed no more
        self._begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def _live(self) -> None:
        self._begun = True
        if self._is_stopped():  # before it began
            self._end(None)
            return
        try:
            outcome = _Outcome(await _steps(self._code.call(Context(self.assignment, self._gate)), self))
        except BaseException as error:  # SystemExit would take the whole loop down
            outcome = _Outcome(error=error)
        self._end(None if self._is_stopped() else outcome)

    def _is_stopped(self) -> bool:
        return self._timer is not None

    def stop(self) -> None:
        """Ask it to stop. Idempotent."""
        if self._timer is None and self._tell is not None:
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._insist)
            if self._begun:  # a task that is cancelled before never begins, and could not say so
                self._task.cancel()

    def _insist(self) -> None:
        """It went on: it is not resumed any more, and after as long a time not waited for either."""
        self.cut = True
        self._timer = asyncio.get_running_loop().call_later(self._grace, self._end, None)
        self._task.cancel()

    def _end(self, outcome: _Outcome | None) -> None:
        """Tell once what became of it; nothing, when it stopped as it was asked to."""
        tell, self._tell = self._tell, None  # it may hold on to whoever holds on to this
        if tell is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self.cut:
            outcome = _Outcome(error=_GivenUp("it went on in spite of the cancellation and was dropped"))
        self._gate.close()
        tell(None if outcome is None else _judged(outcome, self.assignment, self._gate, self._grace))


def agent_in(frame: FrameType | None) -> Assignment | None:
    """The assignment of the async agent whose code is run there, if it is one's."""
    while frame is not None:
        held = frame.f_locals.get("self") if frame.f_code is _Leashed._live.__code__ else None
        if isinstance(held, _Leashed):
            return held.assignment
        frame = frame.f_back
    return None


def _judged(
    outcome: _Outcome, assignment: Assignment, gate: Gate, grace: float
) -> Result | Judgement | BaseException:
    """What came of an attempt: a result, the agent's failure, or how the engine failed under it."""
    error = outcome.error
    if error is None:
        try:
            return result_from(assignment, outcome.value)
        except AgentFailed as unusable:
            return unusable
        except BaseException as trouble:  # what was returned is the agent's, and may raise whatever it likes
            return failure_of(assignment.agent, trouble).with_traceback(None)
    if type(error) is _GivenUp:  # asking an error for its class may run the agent's code
        return AgentAbandoned(agent=assignment.agent, seconds=grace, reason=str(error))
    is_ours = gate.broken is not None and error is gate.broken
    return error if is_ours else failure_of(assignment.agent, error).with_traceback(None)


@types.coroutine
def _steps(work: Coroutine[Any, Any, T], leash: _Leashed) -> Generator[Any, Any, T]:
    """`await work`, spelled out, with the chance to leave in the middle."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            waits_for = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            found: T = end.value
            return found
        value = error = None
        try:
            value = yield waits_for
        except BaseException as thrown:
            if leash.cut:
                _bury(work)
                raise
            error = thrown


def _bury(work: Coroutine[Any, Any, Any]) -> None:
    """Close a coroutine.

    One that refuses even this gets a reference that nobody gives back: destroying it, at the latest when
    the interpreter ends, would resume it once more, perhaps for ever.
    """
    for _ in range(_CLOSING_TRIES):
        try:
            work.close()
        except RuntimeError:  # it awaited something on its way out
            continue
        except BaseException:
            return
        return
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(work))


async def _run_in_thread(
    work: Callable[[], Any], grace: float = 0.0, stop: Callable[[], None] = lambda: None
) -> _Outcome:
    """What became of a function; when cancelled, it is asked to `stop`. Raises `_GivenUp` if it does not."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[_Outcome] = loop.create_future()

    def body() -> None:
        try:
            outcome = _Outcome(work())
        except BaseException as error:
            outcome = _Outcome(error=error)
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(ended.set_result, outcome)

    threading.Thread(target=copy_context().run, args=(body,), name="agent", daemon=True).start()
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        stop()
        with anyio.CancelScope(shield=True):
            await asyncio.wait((ended,), timeout=grace)
        if not ended.done():
            raise _GivenUp("its thread cannot be stopped and was left behind") from None
        raise
