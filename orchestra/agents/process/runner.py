"""`isolation: process`: a Python agent in a fresh process, which can be killed when it does not end.

The process talks the same JSON lines as any program, so everything that holds for programs holds for it. It
is started anew for every attempt: nothing that an attempt broke is there in the next.
"""

import os
import sys
from pathlib import Path

from orchestra.agents.command.program import Launch, environment, working_folder
from orchestra.agents.command.runner import run_program
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Judgement, Link, Result

_ROOT = str(Path(__file__).parents[3])


class ProcessRunner:
    """Carries attempts of Python agents through, each in a process of its own."""

    def __init__(self, folder: Path, grace: float) -> None:
        """`folder` is the workflow's."""
        self._folder = folder
        self._grace = grace

    async def run(self, agent: Agent, assignment: Assignment, link: Link) -> Result | Judgement:
        """What the agent returned; raises as the port says."""
        # -P: the folder it works in must not be able to replace modules of ours.
        command = (sys.executable, "-P", "-m", "orchestra.agents.process.child")
        launch = Launch(
            agent=agent.id,
            command=(*command, str(self._folder / agent.path), agent.attribute, str(os.getpid())),
            folder=working_folder(assignment),
            environment=_environment(agent),
        )
        return await run_program(launch, assignment, link, self._grace)


def _environment(agent: Agent) -> dict[str, str]:
    given = environment((*agent.environment, "PYTHONPATH"), os.environ)
    paths = [_ROOT, *given.get("PYTHONPATH", "").split(os.pathsep)]
    return {**given, "PYTHONPATH": os.pathsep.join(str(Path(each).absolute()) for each in paths if each)}
