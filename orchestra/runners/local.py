"""Agents in this process: async functions in the loop, plain functions in a thread.

An async agent has a task of its own beside the one that waits for it, which costs some microseconds and is
what makes it possible to give it up. It must not block: what does belongs into a plain function, and what
may never end into a process.
"""

from collections.abc import Callable
from typing import Any

import attrs
from anyio import CapacityLimiter
from anyio.lowlevel import current_token

from orchestra.errors import AgentAbandoned
from orchestra.ports.agent import Assignment, Judgement, Link, Result
from orchestra.runners.context import BlockingContext, Context, ThreadLink
from orchestra.runners.failures import failed
from orchestra.runners.gate import Gate
from orchestra.runners.results import settled
from orchestra.runners.tasks import GivenUp, Outcome, Raised, in_task, in_thread


@attrs.frozen
class Code:
    """A Python agent, ready to be called with its context."""

    call: Callable[[Any], Any]
    is_async: bool


class LocalRunner:
    """Carries attempts through in this process."""

    def __init__(self, limiter: CapacityLimiter, grace: float) -> None:
        self._limiter = limiter
        self._grace = grace

    async def run(self, code: Code, assignment: Assignment, link: Link) -> Result | Judgement:
        """What the agent returned; raises as the port says."""
        gate = Gate(link, assignment.agent)
        try:
            outcome = await self._outcome(code, assignment, gate)
        except GivenUp as given_up:
            raise AgentAbandoned(agent=assignment.agent, seconds=self._grace, reason=str(given_up)) from None
        finally:
            gate.close()
        if isinstance(outcome, Raised):
            raise _blamed(assignment, outcome.error, gate)
        return settled(assignment, outcome.value)

    async def _outcome(self, code: Code, assignment: Assignment, gate: Gate) -> Outcome:
        if code.is_async:
            return await in_task(lambda: code.call(Context(assignment, gate)), self._grace)
        async with self._limiter:
            return await self._in_thread(code, assignment, gate)

    async def _in_thread(self, code: Code, assignment: Assignment, gate: Gate) -> Outcome:
        link = ThreadLink(gate, current_token())

        def stop() -> None:
            gate.cancel()
            link.interrupt()

        try:
            return await in_thread(lambda: code.call(BlockingContext(assignment, link)), self._grace, stop)
        except RuntimeError as error:  # no more threads to be had
            return Raised(error)


def _blamed(assignment: Assignment, error: BaseException, gate: Gate) -> BaseException:
    """What to raise: the agent's failure, unless the engine failed under it."""
    return error if error is gate.broken else failed(assignment.agent, error).with_traceback(None)
