"""One runner over all kinds of agents: what the engine is given."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter

from orchestra.agents.attempt import raise_failure, run_attempt, start_attempt
from orchestra.agents.registry import KINDS
from orchestra.errors import BadAgentKind
from orchestra.limits import AGENT_GRACE_SECONDS, AGENT_THREADS
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Runner, Stop
from orchestra.ports.agent_kind import AgentKinds, AnswerBook, Workplace


class Runners:
    """Runs attempts of agents of every kind, with a runner for each kind that is used; a `Runner`."""

    def __init__(
        self,
        folder: Path,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        *,
        threads: int = AGENT_THREADS,
        grace: float = AGENT_GRACE_SECONDS,
        kinds: AgentKinds = KINDS,
        answers: AnswerBook | None = None,
    ) -> None:
        """`folder` is the workflow's, `functions` are agents of kind "function" by id."""
        limiter = CapacityLimiter(threads)
        self._place = Workplace(
            folder=folder.absolute(),
            threads=limiter,
            functions=dict(functions or {}),
            grace=grace,
            answers=answers,
        )
        self._kinds = kinds
        self._runners: dict[str, Runner] = {}

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        runner = self._runners.get(agent.kind)
        if runner is None:
            try:
                runner = self._runners[agent.kind] = self._kinds.by_name(agent.kind).make_runner(self._place)
            except BadAgentKind as error:
                return start_attempt(raise_failure(assignment.agent, error), ended)
        return runner.start(agent, assignment, link, ended)

    async def run(self, agent: Agent, assignment: Assignment, link: Link, /) -> Result | Judgement:
        """What the agent returned; raises as `run_attempt` does."""
        return await run_attempt(lambda ended: self.start(agent, assignment, link, ended))
