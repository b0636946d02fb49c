"""From a coroutine to an attempt that was started, and back.

The engine starts attempts and is told when they ended; it waits for none of them. Most runners are coroutines
all the same, and so are some who want one attempt carried through.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import anyio

from orchestra.agents.failures import failure_of
from orchestra.errors import AgentAbandoned
from orchestra.ids import AgentId
from orchestra.ports.agent import Ended, Judgement, Result, Stop


def start_attempt(work: Coroutine[Any, Any, Result | Judgement], ended: Ended) -> Stop:
    """Begin an attempt that is a coroutine. It bounds by itself how long it takes to stop."""
    stopped = False

    async def tell() -> None:
        try:
            outcome: Result | Judgement | BaseException | None = await work
        except asyncio.CancelledError as error:
            outcome = None if stopped else error
        except Exception as error:
            outcome = error
        ended(outcome)

    def unbegun(task: "asyncio.Task[None]") -> None:
        if task.cancelled():  # before it began
            work.close()
            ended(None)

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    task = asyncio.get_running_loop().create_task(tell())
    task.add_done_callback(unbegun)
    return stop


async def raise_failure(agent: AgentId, error: Exception) -> NoReturn:
    """An attempt that could not even begin."""
    raise failure_of(agent, error) from None


async def run_attempt(start: Callable[[Ended], Stop]) -> Result | Judgement:
    """What an attempt brought; raises how it failed.

    Cancellation is let through once the agent has stopped; `AgentAbandoned` is raised when it cannot be.
    """
    over: asyncio.Future[Result | Judgement | BaseException | None]
    over = asyncio.get_running_loop().create_future()

    def settle(outcome: Result | Judgement | BaseException | None) -> None:
        if not over.done():  # the loop is shut down, and nobody waits any more
            over.set_result(outcome)

    stop = start(settle)
    try:
        outcome = await asyncio.shield(over)
    except asyncio.CancelledError:
        stop()
        with anyio.CancelScope(shield=True):
            outcome = await over
        if isinstance(outcome, AgentAbandoned):
            raise outcome from None
        raise
    assert outcome is not None, "BUG: nobody asked it to stop"
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
