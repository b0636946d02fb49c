"""`isolation: process`: a Python agent in a fresh process, which can be killed when it does not end.

The process talks the same JSON lines as any program, so everything that holds for programs holds for it. It
is started anew for every attempt: nothing that an attempt broke is there in the next.
"""

import os
import sys
from pathlib import Path

from orchestra.agents.command.program import Launch, environment, working_folder
from orchestra.agents.command.runner import run_program
from orchestra.agents.python.kind import PythonOptions
from orchestra.codec.definitions import read_options
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Judgement, Link, Result

_ROOT = str(Path(__file__).parents[3])


async def run_process(
    agent: Agent, assignment: Assignment, link: Link, *, folder: Path, grace: float
) -> Result | Judgement:
    """What the agent returned; raises as the port says. `folder` is the workflow's."""
    options = read_options(agent, PythonOptions)
    # -P: the folder it works in must not be able to replace modules of ours.
    command = (sys.executable, "-P", "-m", "orchestra.agents.process.child")
    launch = Launch(
        agent=agent.id,
        command=(*command, str(folder / agent.path), options.attribute, str(os.getpid())),
        folder=working_folder(assignment),
        environment=_environment(options.environment),
    )
    return await run_program(launch, assignment, link, grace)


def _environment(names: tuple[str, ...]) -> dict[str, str]:
    given = environment((*names, "PYTHONPATH"), os.environ)
    paths = [_ROOT, *given.get("PYTHONPATH", "").split(os.pathsep)]
    return {**given, "PYTHONPATH": os.pathsep.join(str(Path(each).absolute()) for each in paths if each)}
