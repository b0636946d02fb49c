"""A run of 21 assignments: parallel agents, a foreach, an evaluation that asks for another round, a loop.

Its agents note every start in a file, which survives whatever becomes of their process.
"""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from orchestra.agents.context import Context
from orchestra.app.orchestra import Orchestra
from orchestra.engine.atlas import Ending
from orchestra.ids import AgentId, Digest, PhaseId, RunId, run_id
from orchestra.model.workflow import (
    Agent,
    ContextName,
    Criterion,
    Evaluate,
    Phase,
    Policy,
    Retry,
    Specialist,
    Transition,
    Workflow,
)
from orchestra.ports.agent import Judgement, Result
from orchestra.ports.store import Store
from tests.outcome import outcome_digest

RUN: Final[RunId] = run_id("undertaking")
ASSIGNMENTS: Final = 21
AGENTS: Final = ("lister", "reader", "counter", "judge", "polisher", "noter", "writer")
WORKFLOW: Final = Workflow(
    name="undertaking",
    context=(
        ContextName(name="names"),
        ContextName(name="found", reducer="append"),
        ContextName(name="total", reducer="sum"),
        ContextName(name="notes", reducer="merge"),
    ),
    agents=tuple(Agent(id=AgentId(name), kind="function") for name in AGENTS),
    policy=Policy(retry=Retry(backoff_us=1000)),
    phases=(
        Phase(
            id=PhaseId("gather"),
            specialists=(
                Specialist(id="list", agent=AgentId("lister"), into="names"),
                Specialist(
                    id="read",
                    agent=AgentId("reader"),
                    needs=("list",),
                    foreach="context.names",
                    task="read {{ item }}",
                    into="found",
                ),
                Specialist(id="count", agent=AgentId("counter"), into="total"),
            ),
            evaluate=Evaluate(
                agent=AgentId("judge"),
                rubric=(Criterion(name="depth", weight=2.0), Criterion(name="width")),
                rounds=1,
            ),
            next=(Transition(to=PhaseId("polish")),),
        ),
        Phase(
            id=PhaseId("polish"),
            specialists=(
                Specialist(id="step", agent=AgentId("polisher"), task="polish {{ visit }}", into="found"),
                Specialist(id="note", agent=AgentId("noter"), into="notes"),
            ),
            next=(
                Transition(to=PhaseId("polish"), when="visits.polish < 3"),
                Transition(to=PhaseId("write")),
            ),
        ),
        Phase(
            id=PhaseId("write"),
            specialists=(
                Specialist(id="report", agent=AgentId("writer"), task="write", outputs=("report.md",)),
            ),
        ),
    ),
)


class Cast:
    """The agents, with the file in which they note their starts."""

    def __init__(self, folder: Path) -> None:
        self.starts = folder / "starts"

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {name: getattr(self, name) for name in AGENTS}

    def _started(self, ctx: Context) -> None:
        descriptor = os.open(self.starts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(descriptor, f"{ctx.task_id}\n".encode())
        os.close(descriptor)

    async def lister(self, ctx: Context) -> Any:
        self._started(ctx)
        return ["a", "b", "c", "d"]

    async def reader(self, ctx: Context) -> Any:
        self._started(ctx)
        return f"{ctx.item}{ctx.index}{'!' * len(ctx.feedback)}"

    async def counter(self, ctx: Context) -> Any:
        self._started(ctx)
        done = ctx.private or 0
        while done < 3:
            done += 1
            await ctx.save(done, progress=done / 3)
        return Result(output=done, confidence=0.9)

    async def judge(self, ctx: Context) -> Any:
        self._started(ctx)
        for line in ctx.rubric:
            if line.score is None:
                await ctx.score(line.name, 0.2 if ctx.round == 1 else 0.9)
        return Judgement(feedback="deeper")

    async def polisher(self, ctx: Context) -> Any:
        self._started(ctx)
        return await ctx.effect("polish", lambda key: f"polished {ctx.visit}", repeatable=True)

    async def noter(self, ctx: Context) -> Any:
        self._started(ctx)
        await ctx.decide(f"note {ctx.visit}", rationale="it is worth it")
        return {f"visit {ctx.visit}": len(ctx.context["found"])}

    async def writer(self, ctx: Context) -> Any:
        self._started(ctx)
        await ctx.write("report.md", f"# Report\n{ctx.context['found']}")
        return "written"


def starts(folder: Path) -> Counter[str]:
    """How often each assignment was started."""
    noted = folder / "starts"
    return Counter(noted.read_text().splitlines()) if noted.exists() else Counter()


async def play(store: Store, folder: Path, cast: Cast | None = None) -> Ending:
    """Begin the run, or take it up where it stopped, and play it to its end."""
    functions = (cast or Cast(folder)).functions()
    async with Orchestra(store, functions=functions, project=folder) as house:
        found = store.run(RUN)
        if found is None:
            return await house.run(WORKFLOW, run=RUN)
        if found.status == "completed":
            return Ending(run=RUN, kind="completed", state=(await house.manager.look(RUN)).state)
        return await house.resume(RUN)


def digest_of(ending: Ending) -> Digest:
    """The outcome of a run that was completed."""
    assert ending.kind == "completed", ending.state.failure
    return outcome_digest(ending.state)
