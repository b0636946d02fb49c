"""`command:` agents: any program that talks JSON lines. One attempt is one program, from start to end.

`run_program` is what they share with processes of ours.
"""

import asyncio
import logging
import os
import signal
from typing import Final

import anyio
from anyio import to_thread

from orchestra.agents.attempt import start_attempt
from orchestra.agents.command.conversation import Conversation
from orchestra.agents.command.kind import CommandOptions
from orchestra.agents.command.program import (
    Launch,
    Program,
    absolute_command,
    end_leftover,
    environment,
    forget_program,
    note_program,
    working_folder,
)
from orchestra.agents.failures import failure_of
from orchestra.agents.gate import Gate
from orchestra.codec.definitions import read_options
from orchestra.errors import AgentAbandoned, BadAgent
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Stop
from orchestra.ports.agent_kind import Workplace

_LOG: Final = logging.getLogger("orchestra.agents")
_FORCED_SECONDS: Final = 10.0


class CommandRunner:
    """Runs programs."""

    def __init__(self, place: Workplace) -> None:
        self._folder, self._grace = place.folder, place.grace

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        return start_attempt(self._run(agent, assignment, link), ended)

    async def _run(self, agent: Agent, assignment: Assignment, link: Link) -> Result | Judgement:
        options = read_options(agent, CommandOptions)
        launch = Launch(
            agent=agent.id,
            command=absolute_command(options.command, self._folder),
            environment=environment(options.environment, os.environ),
        )
        return await run_program(launch, assignment, link, self._grace)


async def run_program(launch: Launch, assignment: Assignment, link: Link, grace: float) -> Result | Judgement:
    """What a program said in the end. Cancelled, it is told to end, and killed if it does not."""
    # Two programs never work on one assignment, also when whoever started the first one was killed.
    leftover = await to_thread.run_sync(end_leftover, assignment.workspace)
    if leftover is not None:
        told = "%s: the program of an earlier attempt, process %d, was still at work and was ended"
        _LOG.warning(told, assignment.task, leftover)
    try:
        program = await Program.start(launch, working_folder(assignment))
    except BadAgent as error:
        raise failure_of(assignment.agent, error) from None
    gate = Gate(link, assignment.agent)

    async def attempt() -> Result | Judgement:
        try:
            await to_thread.run_sync(note_program, assignment.workspace, program.pid)
            return await Conversation(program, assignment, gate, grace).result()
        finally:
            gate.close()
            await program.close()
            forget_program(assignment.workspace)

    # In a task of its own, which goes on while the program is being stopped.
    ended = asyncio.gather(attempt(), return_exceptions=True)
    try:
        [outcome] = await asyncio.shield(ended)
    except asyncio.CancelledError:
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, _FORCED_SECONDS)):
            program.signal(number)
            with anyio.CancelScope(shield=True):
                await asyncio.wait((ended,), timeout=seconds)
            if ended.done():
                raise
        ended.cancel()
        reason = "it was killed and did not die"
        raise AgentAbandoned(agent=assignment.agent, seconds=grace, reason=reason) from None
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
