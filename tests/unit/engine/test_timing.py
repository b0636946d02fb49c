"""Time limits, snapshots that are taken by the clock, and stopping in order."""

import itertools
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.codec.values import thaw
from orchestra.engine import atlas
from orchestra.engine.agents.attempts import Deadlines, Ring
from orchestra.engine.atlas import Ending
from orchestra.engine.settings import EngineSettings
from orchestra.model.state import State
from orchestra.model.workflow import Policy, Retry
from tests.outcome import outcome_digest
from tests.unit.engine.support import (
    Theatre,
    does,
    flow,
    kinds,
    nothing,
    phase,
    policy,
    result,
    statuses,
    triggers,
)

pytestmark = pytest.mark.anyio


class FirstRings(Deadlines):
    """What is set first is due at once, what is set later never: no test of it waits for time to pass."""

    def __init__(self) -> None:
        super().__init__()
        self._rang = False

    def set(self, ring: Ring, seconds: float) -> None:
        super().set(ring, 1e6 if self._rang else 0.0)
        self._rang = True


async def test_an_attempt_that_takes_too_long_is_stopped_and_tried_again(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestra.engine.atlas.Deadlines", FirstRings)

    async def slow(ctx: Any) -> str:
        if ctx.attempt == 1:
            await anyio.sleep_forever()
        return "quick"

    limit = Retry(attempts=2, backoff_us=0, timeout_us=30_000)
    workflow = flow(phase("work", does("slow", retry=limit)), policy=policy("restart", "fail"))
    ending = await theatre.run(workflow, {"slow": slow})
    assert result(ending.state, "work/slow") == "quick"
    failure = next(event.failure for event in theatre.events if event.kind == "task_failed")
    assert (failure.error, failure.message) == ("Timeout", "attempt 1 at work/slow took longer than 0.03 s")


async def test_a_phase_that_takes_too_long_fails_the_run(theatre: Theatre) -> None:
    async def endless(ctx: Any) -> None:
        await anyio.sleep_forever()

    workflow = flow(phase("work", does("endless"), does("quick"), timeout_us=1_000_000))
    ending = await theatre.run(workflow, {"endless": endless, "quick": nothing})
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert ending.state.failure.error == "PhaseTimeout"
    assert statuses(ending.state)["work/quick"] == "completed"


async def test_time_in_which_nobody_plays_does_not_count(theatre: Theatre) -> None:
    """A run that is taken up after its phase's time limit gets the time it needs."""

    async def endless(ctx: Any) -> None:
        if ctx.attempt == 1:
            await anyio.sleep_forever()

    workflow = flow(phase("work", does("endless"), timeout_us=1_000_000))
    assert (await theatre.run(workflow, {"endless": endless})).kind == "failed"
    assert (await theatre.resume({"endless": endless})).kind == "completed"


async def _held(theatre: Theatre, agent: Any, engine: EngineSettings, until: str) -> Ending:
    """Play an agent that goes on until a snapshot with a trigger was taken."""
    go_on = anyio.Event()
    found: list[Ending] = []

    async def held(ctx: Any) -> Any:
        await agent(ctx)
        await go_on.wait()
        return "done"

    async with theatre.house({"held": held}, engine=engine) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(flow(phase("work", does("held"))), run="run"))

        group.start_soon(play)
        await theatre.until(lambda turn: until in turn.header.triggers)
        go_on.set()
    return found[0]


async def test_agents_are_asked_for_their_progress_now_and_then(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        ctx.on_save(lambda: {"at": 42})

    ending = await _held(theatre, agent, EngineSettings(every_us=40_000), "periodic")
    private = ending.state.agents["held"].private
    assert private is not None
    assert thaw(private) == {"at": 42}


async def test_every_agent_at_work_is_asked_each_time(theatre: Theatre) -> None:
    """CHECKLIST 000.6: not only one of them, and not only once."""
    go_on, at_work = anyio.Event(), list[str]()

    async def held(ctx: Any) -> None:
        asked = itertools.count(1)
        ctx.on_save(lambda: [ctx.name, next(asked)])
        await ctx.save()
        at_work.append(ctx.name)
        await go_on.wait()

    workflow = flow(phase("work", does("a", "held"), does("b", "held")))
    async with (
        theatre.house({"held": held}, engine=EngineSettings(every_us=40_000)) as house,
        anyio.create_task_group() as group,
    ):
        group.start_soon(lambda: house.run(workflow, run="run"))
        await theatre.until(lambda turn: len(at_work) == 2)
        before = len(theatre.turns)

        def periodic() -> list[State]:
            return [turn.state for turn in theatre.turns[before:] if "periodic" in turn.header.triggers]

        await theatre.until(lambda turn: len(periodic()) >= 2)
        go_on.set()
    first, second = ([_private(state, name) for name in "ab"] for state in periodic()[:2])
    assert [name for name, _ in first] == ["a", "b"]
    assert second == [[name, times + 1] for name, times in first]


def _private(state: State, agent: str) -> Any:
    private = state.agents[agent].private
    assert private is not None, f"{agent} was not asked"
    return thaw(private)


@pytest.mark.parametrize("answer", [object(), {"x": object()}])
async def test_progress_that_cannot_be_stored_costs_no_run(theatre: Theatre, answer: Any) -> None:
    async def agent(ctx: Any) -> None:
        ctx.on_save(lambda: answer)

    ending = await _held(theatre, agent, EngineSettings(every_us=40_000), "periodic")
    assert ending.kind == "completed"


async def test_no_interval_means_no_periodic_snapshots(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        for number in range(20):
            await ctx.save(number)

    async with theatre.house({"a": agent}, engine=EngineSettings(every_us=0)) as house:
        ending = await house.run(flow(phase("work", does("a"))), run="run")
    assert ending.kind == "completed"
    assert "snapshot_requested" not in kinds(theatre.events)


async def test_a_machine_short_of_memory_is_a_reason_for_a_snapshot(theatre: Theatre) -> None:
    ending = await _held(theatre, nothing, EngineSettings(memory_share=0.000001), "memory_pressure_high")
    assert ending.kind == "completed"
    assert sum("memory_pressure_high" in each for each in triggers(theatre.store)) == 1


async def test_every_so_many_assignments_are_a_trigger(theatre: Theatre) -> None:
    """CHECKLIST 004.2 and 004.10: the interval counts what was completed."""
    workflow = flow(phase("work", does("a", foreach="[1, 2, 3, 4, 5, 6, 7]")), policy=Policy(concurrency=1))
    await theatre.run(workflow, {"a": nothing}, settings=CheckpointSettings(interval=3))
    found = [turn.state.completed_tasks for turn in theatre.turns if "interval" in turn.header.triggers]
    assert found == [3, 6]


async def test_draining_keeps_what_is_done_and_stays_resumable(theatre: Theatre) -> None:
    """FAULTS 4: the last finished step is stored, and the next process goes on."""
    started = anyio.Event()
    cleaned: list[str] = []

    async def endless(ctx: Any) -> str:
        if ctx.attempt == 1:
            await ctx.save({"half": True})
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                cleaned.append("up")
        return f"went on from {ctx.private}"

    workflow = flow(phase("work", does("quick"), does("endless")))
    functions = {"quick": nothing, "endless": endless}
    found: list[Ending] = []
    async with theatre.house(functions) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(workflow, run="run"))

        group.start_soon(play)
        await started.wait()
        house.drain()
        house.drain()
    assert (found[0].kind, found[0].state.status, cleaned) == ("interrupted", "paused", ["up"])
    assert statuses(found[0].state)["work/quick"] == "completed"
    assert "shutdown" in triggers(theatre.store)[-1]
    ending = await theatre.resume(functions)
    assert (ending.kind, result(ending.state, "work/endless")) == ("completed", "went on from {'half': True}")
    assert ending.state.metrics.recoveries == 0


async def test_what_is_launched_while_draining_does_not_hold_it_up(theatre: Theatre) -> None:
    started: list[str] = []

    async def agent(ctx: Any) -> None:
        started.append(ctx.name)
        await anyio.sleep_forever()

    async with theatre.house({"a": agent}) as house:
        house.drain()
        with anyio.fail_after(180):
            ending = await house.run(flow(phase("work", does("a"))), run="run")
    assert (ending.kind, started) == ("interrupted", [])


# Time that was played.


async def saves(ctx: Any) -> None:
    await ctx.save({"at": 1}, progress=0.5)


async def test_time_is_on_the_record_before_a_phase_ends(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed then has lost none of it."""
    monkeypatch.setattr(atlas, "ELAPSED_SECONDS", 0.0)
    await theatre.run(flow(phase("work", does("saves"))), {"saves": saves})
    (saved,) = [turn for turn in theatre.turns if "milestone_reached" in kinds(turn.events)]
    assert "phase_completed" not in kinds(saved.events)
    assert saved.state.metrics.elapsed_us > 0


async def test_time_is_recorded_beside_what_is_recorded_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often that is, there is not one more snapshot, and the same comes of it."""

    async def played(name: str, seconds: float) -> tuple[list[tuple[str, ...]], bytes]:
        theatre = Theatre(tmp_path / name)
        monkeypatch.setattr(atlas, "ELAPSED_SECONDS", seconds)
        ending = await theatre.run(flow(phase("work", does("saves"))), {"saves": saves})
        return triggers(theatre.store), outcome_digest(ending.state)

    assert await played("always", 0.0) == await played("seldom", 1000.0)
