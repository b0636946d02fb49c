"""A link that takes reports as an engine would, and short ways to run an agent."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio

from orchestra.agents.command.kind import CommandOptions
from orchestra.agents.python.kind import PythonOptions
from orchestra.agents.runners import Runners
from orchestra.codec.definitions import options_value
from orchestra.ids import AgentId, EffectKey, PhaseId, RunId, TaskId
from orchestra.model.workflow import Agent
from orchestra.ports.agent import (
    Asked,
    Assignment,
    EffectBegun,
    EffectEnded,
    Judgement,
    ProgressCallback,
    Report,
    Required,
    Result,
    Wrote,
)

GRACE = 180.0
"""More than whoever stops takes on the busiest machine."""


class Recorder:
    """Keeps every report, in order, and answers from what it was told beforehand."""

    def __init__(
        self,
        answers: Mapping[str, Any] | None = None,
        effects: Mapping[str, Mapping[str, Any]] | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.reports: list[Report] = []
        self.progress: list[ProgressCallback] = []
        self.answers = dict(answers or {})
        self.effects = dict(effects or {})
        self.error = error
        self.taken = anyio.Event()
        """Set when a report has come in."""

    def send(self, report: Report, /) -> None:
        self._take(report)

    async def call(self, report: Report, /) -> Any:
        self._take(report)
        await anyio.lowlevel.checkpoint()
        match report:
            case Asked():
                return await self._answer(report.question)
            case Required():
                return await self._answer(report.name)
            case EffectBegun():
                return self.effects.get(report.name)
            case EffectEnded():
                self.effects[report.name] = {"status": report.status, "outcome": report.outcome}
            case Wrote():
                return f"outputs/{report.path}"
            case _:
                pass
        return None

    def on_save(self, ask: ProgressCallback, /) -> None:
        self.progress.append(ask)

    def kinds(self) -> list[str]:
        return [report.kind for report in self.reports]

    def _take(self, report: Report) -> None:
        if self.error:
            raise self.error
        self.reports.append(report)
        self.taken.set()

    async def _answer(self, name: str) -> Any:
        if name not in self.answers:
            await anyio.sleep_forever()
        return self.answers[name]


def assignment(**changes: Any) -> Assignment:
    """An assignment with everything in it that the test does not care about."""
    usual: dict[str, Any] = {
        "run": RunId("demo_1"),
        "phase": PhaseId("work"),
        "visit": 1,
        "round": 0,
        "task": TaskId("work/1/one"),
        "name": "one",
        "agent": AgentId("one"),
        "role": "mercury",
        "attempt": 1,
        "effect_key": EffectKey("demo_1/job/1/one/0"),
        "description": "Do it",
        "inputs": {},
        "context": {},
        "needs": {},
        "settings": {},
        "workspace": "",
        "project": "",
    }
    return Assignment(**{**usual, **changes})


def function_agent() -> Agent:
    return Agent(id=AgentId("one"), kind="function")


async def run_function(
    function: Callable[..., Any], link: Recorder | None = None, **changes: Any
) -> Result | Judgement:
    """Run a function as an agent of the same process."""
    runners = Runners(Path(), {"one": function}, threads=4, grace=GRACE)
    return await runners.run(function_agent(), assignment(**changes), link or Recorder())


def command_agent(*command: str, environment: tuple[str, ...] = ()) -> Agent:
    options = options_value(CommandOptions(command=command, environment=environment))
    return Agent(id=AgentId("one"), kind="command", options=options)


def process_agent(environment: tuple[str, ...] = ()) -> Agent:
    """The agent in `one.py`, in a process of its own."""
    options = options_value(PythonOptions(isolation="process", environment=environment))
    return Agent(id=AgentId("one"), kind="python", path="one.py", options=options)


async def run_bash(
    script: str, link: Recorder | None = None, *, grace: float = GRACE, **changes: Any
) -> Result | Judgement:
    """Run a script as a program that is an agent."""
    return await run_command(command_agent("bash", "-c", script), link, grace=grace, **changes)


async def run_command(
    agent: Agent, link: Recorder | None = None, *, folder: Path = Path(), grace: float = GRACE, **changes: Any
) -> Result | Judgement:
    runners = Runners(folder, threads=2, grace=grace)
    return await runners.run(agent, assignment(**changes), link or Recorder())
