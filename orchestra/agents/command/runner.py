"""`command:` agents: any program that talks JSON lines. One attempt is one program, from start to end.

`run_program` is what they share with processes of ours.
"""

import logging
import os
import shutil
import signal
from pathlib import Path
from typing import Final

from anyio import to_thread

from orchestra.agents.command.conversation import Conversation
from orchestra.agents.command.orphans import end_leftover, forget_program, note_program
from orchestra.agents.command.program import Launch, Program, absolute_command, environment, working_folder
from orchestra.agents.failures import failure_of
from orchestra.agents.gate import Gate
from orchestra.agents.python.tasks import GivenUp, Raised, on_its_own
from orchestra.errors import AgentAbandoned, BadAgent
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Judgement, Link, Result

_LOG: Final = logging.getLogger("orchestra.agents.__init__")


class CommandRunner:
    """Carries attempts of programs through."""

    def __init__(self, folder: Path, grace: float) -> None:
        """`folder` is the workflow's: a command that is a path is looked up from there."""
        self._folder = folder
        self._grace = grace

    async def run(self, agent: Agent, assignment: Assignment, link: Link) -> Result | Judgement:
        """What the program said; raises as the port says."""
        launch = Launch(
            agent=agent.id,
            command=absolute_command(agent.command, self._folder),
            folder=working_folder(assignment),
            environment=environment(agent.environment, os.environ),
        )
        return await run_program(launch, assignment, link, self._grace)


def check_command(agent: Agent, folder: Path) -> None:
    """Look whether the program is there; raises `BadAgent`."""
    if not agent.command:
        raise BadAgent(agent=agent.id, place="command", reason="it names no program")
    program = absolute_command(agent.command, folder)[0]
    if shutil.which(program) is None:
        reason = "there is no such program, or it may not be executed"
        raise BadAgent(agent=agent.id, place=program, reason=reason)


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
        outcome = await on_its_own(
            attempt, lambda: program.signal(signal.SIGTERM), grace, lambda: program.signal(signal.SIGKILL)
        )
    except GivenUp as given_up:
        raise AgentAbandoned(agent=assignment.agent, seconds=grace, reason=str(given_up)) from None
    if isinstance(outcome, Raised):
        raise outcome.error
    result: Result | Judgement = outcome.value
    return result
