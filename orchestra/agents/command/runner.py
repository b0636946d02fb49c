"""`command:` agents: any program that talks JSON lines. One attempt is one program, from start to end.

`run_program` is what they share with processes of ours.
"""

import logging
import os
import signal
from typing import Final

from anyio import to_thread

from orchestra.agents.attempt import start_attempt
from orchestra.agents.command.conversation import Conversation
from orchestra.agents.command.kind import CommandOptions
from orchestra.agents.command.orphans import end_leftover, forget_program, note_program
from orchestra.agents.command.program import Launch, Program, absolute_command, environment, working_folder
from orchestra.agents.failures import failure_of
from orchestra.agents.gate import Gate
from orchestra.agents.python.tasks import GivenUp, Raised, run_stoppable
from orchestra.codec.definitions import read_options
from orchestra.errors import AgentAbandoned, BadAgent
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Stop
from orchestra.ports.agent_kind import Workplace

_LOG: Final = logging.getLogger("orchestra.agents")


class CommandRunner:
    """Runs programs."""

    def __init__(self, place: Workplace) -> None:
        self._folder, self._grace = place.folder, place.grace

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        """Begin an attempt, as the port says."""
        return start_attempt(self._run(agent, assignment, link), ended)

    async def _run(self, agent: Agent, assignment: Assignment, link: Link) -> Result | Judgement:
        options = read_options(agent, CommandOptions)
        launch = Launch(
            agent=agent.id,
            command=absolute_command(options.command, self._folder),
            folder=working_folder(assignment),
            environment=environment(options.environment, os.environ),
        )
        return await run_program(launch, assignment, link, self._grace)


def _end_leftover(assignment: Assignment) -> None:
    """Two programs never work on one assignment, also when whoever started the first one was killed."""
    pid = end_leftover(assignment.workspace)
    if pid is not None:
        told = "%s: the program of an earlier attempt, process %d, was still at work and was ended"
        _LOG.warning(told, assignment.task, pid)


async def run_program(launch: Launch, assignment: Assignment, link: Link, grace: float) -> Result | Judgement:
    """What a program said in the end. Cancelled, it is told to end, and killed if it does not."""
    await to_thread.run_sync(_end_leftover, assignment)
    try:
        program = await Program.start(launch)
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

    try:
        outcome = await run_stoppable(
            attempt, lambda: program.signal(signal.SIGTERM), grace, lambda: program.signal(signal.SIGKILL)
        )
    except GivenUp as given_up:
        raise AgentAbandoned(agent=assignment.agent, seconds=grace, reason=str(given_up)) from None
    if isinstance(outcome, Raised):
        raise outcome.error
    result: Result | Judgement = outcome.value
    return result
