"""A process that plays a run and is killed in its second phase: `python -m …crashing FOLDER RUN`."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from orchestra.app.orchestra import Orchestra
from orchestra.ids import AgentId, PhaseId
from orchestra.model.workflow import Agent, Phase, Specialist, Transition, Workflow


async def quick(ctx: Any) -> int:
    """Is done at once."""
    return 1


async def deadly(ctx: Any) -> int:
    """Kills its process as soon as the journal and the spans of the first phase are on disk."""
    folder = Path(sys.argv[1], "outputs", sys.argv[2])
    written = (folder / "events.jsonl", folder / "telemetry" / "otlp.jsonl")
    while not all(each.exists() for each in written):  # noqa: ASYNC110 - files tell nobody
        await anyio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
    return 2


def workflow() -> Workflow:
    """Two phases; the second has two assignments."""
    agents = tuple(Agent(id=AgentId(each), kind="function") for each in ("quick", "deadly"))
    first = Phase(
        id=PhaseId("first"),
        specialists=(Specialist(id="one", agent=AgentId("quick"), task="t"),),
        next=(Transition(to=PhaseId("second")),),
    )
    pair = tuple(
        Specialist(id=name, agent=AgentId(agent), task="t")
        for name, agent in (("two", "quick"), ("three", "deadly"))
    )
    return Workflow(
        name="crashing", agents=agents, phases=(first, Phase(id=PhaseId("second"), specialists=pair))
    )


async def main(folder: Path, run: str) -> None:
    """Play it until it dies."""
    functions = {"quick": quick, "deadly": deadly}
    async with Orchestra(
        f"sqlite:{folder}/store.db", functions=functions, project=folder, telemetry=True, events=True
    ) as house:
        await house.run(workflow(), run=run)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
