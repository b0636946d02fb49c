"""Runners by kind of agent: the one part of this package that the rest of the program asks for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from anyio import CapacityLimiter

from orchestra.agents.attempt import run_attempt, start_attempt
from orchestra.agents.command.runner import CommandRunner, check_command
from orchestra.agents.failures import failure_of
from orchestra.agents.process.runner import ProcessRunner
from orchestra.agents.python.loading import AgentLoader, code_of
from orchestra.agents.python.runner import Code, LocalRunner
from orchestra.agents.python.tasks import Raised, in_thread
from orchestra.errors import BadAgent
from orchestra.ids import AgentId
from orchestra.limits import AGENT_GRACE_SECONDS, AGENT_THREADS
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Stop

_NO_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {}


class Runners:
    """Carries attempts of all kinds of agents through; a `Runner`."""

    def __init__(
        self,
        folder: Path,
        functions: Mapping[str, Callable[..., Any]] = _NO_FUNCTIONS,
        *,
        threads: int = AGENT_THREADS,
        grace: float = AGENT_GRACE_SECONDS,
    ) -> None:
        """`folder` is the workflow's, `functions` are agents of kind "function" by id."""
        self._folder = folder.absolute()
        self._functions = dict(functions)
        self._loader = AgentLoader()
        self._local = LocalRunner(CapacityLimiter(threads), grace)
        self._processes = ProcessRunner(self._folder, grace)
        self._commands = CommandRunner(self._folder, grace)
        self._codes: dict[AgentId, Code] = {}

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        """Begin an attempt, as the port says."""
        code = self._quickly(agent) if _is_local(agent) else None
        if code is not None:
            return self._local.start(code, assignment, link, ended)
        return start_attempt(self._carried(agent, assignment, link), ended)

    async def run(self, agent: Agent, assignment: Assignment, link: Link, /) -> Result | Judgement:
        """What the agent returned; raises as `awaited` says."""
        return await run_attempt(lambda ended: self.start(agent, assignment, link, ended))

    async def _carried(self, agent: Agent, assignment: Assignment, link: Link) -> Result | Judgement:
        if agent.kind == "command":
            return await self._commands.run(agent, assignment, link)
        if not _is_local(agent):
            return await self._processes.run(agent, assignment, link)
        try:
            code = await self._slowly(agent)
        except BadAgent as error:
            raise failure_of(assignment.agent, error) from None
        return await self._local.run(code, assignment, link)

    async def check(self, agent: Agent) -> None:
        """Load the agent, so that a mistake in it is known before the run begins; raises `BadAgent`."""
        if agent.kind == "command":
            check_command(agent, self._folder)
        else:
            await self._slowly(agent)

    def _quickly(self, agent: Agent) -> Code | None:
        if agent.kind == "function":
            return self._codes.get(agent.id)
        return self._loader.known(self._folder / agent.path, agent.attribute)

    async def _slowly(self, agent: Agent) -> Code:
        if agent.kind == "function":
            code = self._codes[agent.id] = self._function(agent)
            return code
        path = self._folder / agent.path
        outcome = await in_thread(lambda: self._loader.load(path, agent.attribute, agent=agent.id))
        if isinstance(outcome, Raised):
            raise outcome.error
        loaded: Code = outcome.value
        return loaded

    def _function(self, agent: Agent) -> Code:
        if agent.isolation == "process":
            reason = "a function that was handed over cannot move to another process; put it into a file"
            raise BadAgent(agent=agent.id, place="Python", reason=reason)
        function = self._functions.get(agent.id)
        if function is None:
            known = ", ".join(sorted(self._functions)) or "none"
            reason = f"no function was given for it; given are: {known}"
            raise BadAgent(agent=agent.id, place="Python", reason=reason)
        return code_of(function, agent.id, getattr(function, "__qualname__", "Python"))


def _is_local(agent: Agent) -> bool:
    """Whether an agent's code runs in this process."""
    return agent.kind == "function" or (agent.kind == "python" and agent.isolation != "process")
