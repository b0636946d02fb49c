"""What is measured of our engine alone: growth over a long run, the cost of waiting, the memory of a wide
phase.

`growth`: one run with one assignment for each item of a list, 32 at once. The agent, an async function
that returns at once, looks at the clocks when it is called; the calls of the first and of the last tenth
say what an assignment costs at the beginning and at the end of the run. Starting the run and making its
assignments come before the first call, ending it after the last: they are in the total only. A run of a
tenth of the assignments comes before, to see whether each costs the same in a short run.

`idle`: a run whose only agent asks a person, played with `wait=True`. From when it says that it waits,
nothing happens for some seconds; the processor time of the whole process over that time is the figure.
Then it is answered and must complete.

`wide`: a phase of many specialists that are all under way at the same moment: none returns before the last
has begun. The figure is the most memory the process ever had resident, interpreter and libraries included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio

from benchmarks.figures import Figures, peak_bytes, quiet_heap, resident_bytes
from orchestra.app.orchestra import Orchestra
from orchestra.engine.orders import Order
from orchestra.engine.settings import EngineSettings
from orchestra.errors import UnknownRun
from orchestra.ids import AgentId, PhaseId, run_id
from orchestra.model.workflow import Agent, Input, Phase, Policy, Specialist, Workflow

AGENT: Final = AgentId("one")
CONCURRENCY: Final = 32
PATIENCE_SECONDS: Final = 60.0


def growth(folder: Path, size: float) -> Figures:
    """A run of so many assignments, after one of a tenth of them."""
    for name in ("short", "long"):
        (folder / name).mkdir()
    return anyio.run(_growth, folder, int(size))


def idle(folder: Path, size: float) -> Figures:
    """A run that waits so many seconds."""
    return anyio.run(_idle, folder, size)


def wide(folder: Path, size: float) -> Figures:
    """A phase of so many specialists."""
    return anyio.run(_wide, folder, int(size))


OURS_ALONE: Final[dict[str, Callable[[Path, float], Figures]]] = {
    "growth": growth,
    "idle": idle,
    "wide": wide,
}
SIZES: Final = {"growth": 10_000.0, "idle": 5.0, "wide": 1000.0}
QUICK_SIZES: Final = {"growth": 2000.0, "idle": 2.0, "wide": 200.0}


async def _growth(folder: Path, n: int) -> Figures:
    part = max(2, n // 10)
    _, short = await _long_run(folder / "short", part)
    calls, metrics = await _long_run(folder / "long", n)
    metrics["short_cpu"] = short["each_cpu"]
    for place, name in enumerate(("", "_cpu")):
        metrics[f"first{name}"] = (calls[part][place] - calls[0][place]) / part
        metrics[f"last{name}"] = (calls[-1][place] - calls[-1 - part][place]) / part
    return Figures(name="growth", n=n, metrics=metrics, windows=_windows(calls, part))


async def _long_run(folder: Path, n: int) -> tuple[list[tuple[float, float]], dict[str, float]]:
    """What the clocks said at each call, and the cost of the whole."""
    calls: list[tuple[float, float]] = []

    async def one(ctx: Any) -> int:
        calls.append((time.perf_counter(), time.process_time()))
        return 1

    workflow = Workflow(
        name="growth",
        inputs=(Input(name="items", type="list", required=True),),
        agents=(Agent(id=AGENT, kind="function"),),
        policy=Policy(concurrency=CONCURRENCY),
        phases=(_phase(Specialist(id="each", agent=AGENT, task="Return 1.", foreach="inputs.items")),),
    )
    began, cpu = time.perf_counter(), time.process_time()
    async with Orchestra(_url(folder), functions={AGENT: one}, project=folder) as house:
        ending = await house.run(workflow, {"items": list(range(n))})
    _completed(ending.kind)
    whole, whole_cpu = time.perf_counter() - began, time.process_time() - cpu
    if len(calls) != n:
        raise AssertionError(f"there were {len(calls)} calls and not {n}")
    return calls, {"each": whole / n, "each_cpu": whole_cpu / n, "before_first": calls[0][0] - began}


def _windows(calls: list[tuple[float, float]], part: int) -> list[tuple[int, float]]:
    """Processor time for each assignment, for each tenth of the run."""
    marks = range(part, len(calls) + 1, part)
    return [(at, (calls[at - 1][1] - calls[at - part][1]) / max(1, part - 1)) for at in marks]


async def _idle(folder: Path, seconds: float) -> Figures:
    async def asks(ctx: Any) -> Any:
        return await ctx.ask("May it go on?", choices=("yes", "no"))

    workflow = Workflow(
        name="idle",
        agents=(Agent(id=AGENT, kind="function"),),
        phases=(_phase(Specialist(id="asks", agent=AGENT, task="Ask.")),),
    )
    endings: list[str] = []
    async with Orchestra(_url(folder), functions={AGENT: asks}, project=folder) as house:

        async def play() -> None:
            endings.append((await house.run(workflow, run="idle", wait=True)).kind)

        async with anyio.create_task_group() as group:
            group.start_soon(play)
            wait = await _waiting(house)
            quiet_heap()
            cpu, began = time.process_time(), time.perf_counter()
            await anyio.sleep(seconds)
            share = (time.process_time() - cpu) / (time.perf_counter() - began)
            await house.order("idle", Order(kind="answer", target=wait, value="yes"))
    _completed(*endings)
    return Figures(name="idle", n=int(seconds), metrics={"share": share})


async def _waiting(house: Orchestra) -> str:
    """The name of the question, once the run says that it waits."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            await anyio.sleep(0.2)
            try:
                state = (await house.manager.look(run_id("idle"))).state
            except UnknownRun:  # it has not begun yet
                continue
            if state.status == "waiting":
                return next(iter(state.waits))


async def _wide(folder: Path, n: int) -> Figures:
    begun, all_begun = 0, anyio.Event()

    async def one(ctx: Any) -> int:
        nonlocal begun
        begun += 1
        if begun == n:
            all_begun.set()
        await all_begun.wait()
        return 1

    specialists = (Specialist(id=f"s{number}", agent=AGENT, task="Return 1.") for number in range(n))
    workflow = Workflow(
        name="wide",
        agents=(Agent(id=AGENT, kind="function"),),
        policy=Policy(concurrency=n),
        phases=(_phase(*specialists),),
    )
    before, began, cpu = resident_bytes(), time.perf_counter(), time.process_time()
    settings = EngineSettings(process_concurrency=n)
    async with Orchestra(_url(folder), engine=settings, functions={AGENT: one}, project=folder) as house:
        ending = await house.run(workflow)
    _completed(ending.kind)
    metrics = {
        "memory": peak_bytes(),
        "memory_before": before,
        "each": (time.perf_counter() - began) / n,
        "each_cpu": (time.process_time() - cpu) / n,
    }
    return Figures(name="wide", n=n, metrics=metrics)


def _phase(*specialists: Specialist) -> Phase:
    return Phase(id=PhaseId("work"), specialists=specialists)


def _url(folder: Path) -> str:
    return f"sqlite:{folder / 'orchestra.db'}"


def _completed(*kinds: str) -> None:
    if kinds != ("completed",):
        raise AssertionError(f"the run ended as {', '.join(kinds) or 'nothing'}")
