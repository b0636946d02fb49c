"""Agents in this process: async functions in the loop, plain functions in a thread.

An async agent has a task of its own, and nobody waits for it in another: that is what makes it possible to
give it up. It must not block: what does belongs into a plain function, and what may never end into a process.
"""

from collections.abc import Coroutine
from types import FrameType
from typing import Any

from anyio import CapacityLimiter
from anyio.lowlevel import current_token

from orchestra.agents.attempt import raise_failure, run_attempt, start_attempt
from orchestra.agents.context import BlockingContext, Context, ThreadLink
from orchestra.agents.failures import failure_of
from orchestra.agents.gate import Gate
from orchestra.agents.python.kind import PythonOptions
from orchestra.agents.python.loading import AgentLoader, Code, code_of
from orchestra.agents.python.tasks import LIFE, GivenUp, Leashed, Outcome, Raised, Returned, run_in_thread
from orchestra.agents.results import result_from
from orchestra.codec.definitions import read_options
from orchestra.errors import AgentAbandoned, AgentFailed, BadAgent
from orchestra.ids import AgentId
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Stop
from orchestra.ports.agent_kind import Workplace


class PythonRunner:
    """Runs agents in `.py` files, each in this process or in one of its own."""

    def __init__(self, place: Workplace) -> None:
        self._folder, self._grace = place.folder, place.grace
        self._local = LocalRunner(place.threads, place.grace)
        self._loader = AgentLoader()

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        """Begin an attempt, as the port says."""
        options = read_options(agent, PythonOptions)
        if options.isolation == "process":
            from orchestra.agents.process.runner import run_process  # late: such a process needs none itself

            work = run_process(agent, assignment, link, folder=self._folder, grace=self._grace)
            return start_attempt(work, ended)
        code = self._loader.find(self._folder / agent.path, options.attribute)
        if code is not None:
            return self._local.start(code, assignment, link, ended)
        return start_attempt(self._load_and_run(agent, options.attribute, assignment, link), ended)

    async def _load_and_run(
        self, agent: Agent, attribute: str, assignment: Assignment, link: Link
    ) -> Result | Judgement:
        path = self._folder / agent.path
        outcome = await run_in_thread(lambda: self._loader.load(path, attribute, agent=agent.id))
        if isinstance(outcome, Raised):
            raise failure_of(assignment.agent, outcome.error) from None
        return await self._local.run(outcome.value, assignment, link)


class FunctionRunner:
    """Runs functions that a program handed over."""

    def __init__(self, place: Workplace) -> None:
        self._functions = place.functions
        self._local = LocalRunner(place.threads, place.grace)
        self._codes: dict[AgentId, Code] = {}

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        """Begin an attempt, as the port says."""
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
        """Begin an attempt, as the port says."""
        if not code.is_async:
            return start_attempt(self._threaded(code, assignment, link), ended)
        return _Coroutine(code, assignment, Gate(link, assignment.agent), self._grace, ended).stop

    async def run(self, code: Code, assignment: Assignment, link: Link) -> Result | Judgement:
        """What the agent returned; raises as `run_attempt` does."""
        return await run_attempt(lambda ended: self.start(code, assignment, link, ended))

    async def _threaded(self, code: Code, assignment: Assignment, link: Link) -> Result | Judgement:
        gate = Gate(link, assignment.agent)
        outcome: Outcome | GivenUp
        try:
            async with self._limiter:
                outcome = await self._in_thread(code, assignment, gate)
        except GivenUp as given_up:
            outcome = given_up
        finally:
            gate.close()
        judged = _judged(outcome, assignment, gate, self._grace)
        if isinstance(judged, BaseException):
            raise judged
        return judged

    async def _in_thread(self, code: Code, assignment: Assignment, gate: Gate) -> Outcome:
        link = ThreadLink(gate, current_token())

        def stop() -> None:
            gate.cancel()
            link.interrupt()

        try:
            return await run_in_thread(
                lambda: code.call(BlockingContext(assignment, link)), self._grace, stop
            )
        except RuntimeError as error:  # no more threads to be had
            return Raised(error)


class _Coroutine(Leashed):
    """An attempt of an async agent."""

    __slots__ = ("_code", "_gate", "_tell", "assignment")

    def __init__(self, code: Code, assignment: Assignment, gate: Gate, grace: float, ended: Ended) -> None:
        self._code, self.assignment, self._gate = code, assignment, gate
        self._tell: Ended | None = ended
        super().__init__(grace)

    def work(self) -> Coroutine[Any, Any, Any]:
        made: Coroutine[Any, Any, Any] = self._code.call(Context(self.assignment, self._gate))
        return made

    def finish(self, outcome: Outcome | GivenUp | None) -> None:
        gate, tell = self._gate, self._tell
        gate.close()
        self._tell = None  # it may hold on to whoever holds on to this
        assert tell is not None, "BUG: it ends once"
        tell(None if outcome is None else _judged(outcome, self.assignment, gate, self._grace))


def agent_in(frame: FrameType | None) -> Assignment | None:
    """The assignment of the async agent whose code is run there, if it is one's."""
    while frame is not None:
        held = frame.f_locals.get("self") if frame.f_code is LIFE else None
        if isinstance(held, _Coroutine):
            return held.assignment
        frame = frame.f_back
    return None


def _judged(
    outcome: Outcome | GivenUp, assignment: Assignment, gate: Gate, grace: float
) -> Result | Judgement | BaseException:
    """What came of an attempt: a result, the agent's failure, or how the engine failed under it."""
    if isinstance(outcome, Returned):
        try:
            return result_from(assignment, outcome.value)
        except AgentFailed as unusable:
            return unusable
        except BaseException as trouble:  # what was returned is the agent's, and may raise whatever it likes
            return failure_of(assignment.agent, trouble).with_traceback(None)
    if isinstance(outcome, GivenUp):
        return AgentAbandoned(agent=assignment.agent, seconds=grace, reason=str(outcome))
    error = outcome.error
    return error if error is gate.broken else failure_of(assignment.agent, error).with_traceback(None)
