"""Waiting: for a person, a key, a provider, at breakpoints, paused; live, and over the end of a process."""

import asyncio
from functools import partial
from typing import Any

import anyio
import pytest

from orchestra.engine.agents.attempts import Deadlines, Ring
from orchestra.engine.atlas import Ending
from orchestra.engine.orders import Order
from orchestra.engine.settings import EngineSettings
from orchestra.errors import BadOrder
from orchestra.model.workflow import Retry, Workflow
from tests.unit.engine.support import (
    Theatre,
    does,
    flow,
    kinds,
    nothing,
    phase,
    policy,
    result,
    returns,
    statuses,
)

pytestmark = pytest.mark.anyio


async def _asks(ctx: Any) -> Any:
    return await ctx.ask("Which way?", ["left", "right"])


async def _played_with(
    theatre: Theatre, workflow: Workflow, functions: dict[str, Any], *orders: Order, wait: bool = True
) -> Ending:
    """Play a run and order something each time it waits."""
    found: list[Ending] = []
    async with theatre.house(functions) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(workflow, run="run", wait=wait))

        group.start_soon(play)
        for order in orders:
            await theatre.until_waiting()
            await house.order("run", order)
    return found[0]


WORK = flow(phase("work", does("a"), does("b")))


async def test_a_question_is_answered_while_the_run_waits(theatre: Theatre) -> None:
    calls = 0

    async def agent(ctx: Any) -> Any:
        nonlocal calls
        calls += 1
        return await _asks(ctx)

    order = Order(kind="answer", value="left")
    ending = await _played_with(theatre, WORK, {"a": agent, "b": nothing}, order)
    assert (ending.kind, result(ending.state, "work/a"), calls) == ("completed", "left", 1)


async def test_a_question_outlives_its_process(theatre: Theatre) -> None:
    functions = {"a": _asks, "b": returns("b")}
    ending = await theatre.run(WORK, functions)
    assert ending.kind == "waiting"
    assert statuses(ending.state) == {"work/a": "running", "work/b": "completed"}
    assert (await theatre.resume(functions)).kind == "waiting"
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="answer", value="right"))
    ending = await theatre.resume(functions)
    assert (ending.kind, result(ending.state, "work/a")) == ("completed", "right")
    assert ending.state.metrics.recoveries == 0, "somebody who answers is no crash"
    assert kinds(theatre.events).count("wait_opened") == 1


def _wait(theatre: Theatre, question: str) -> str:
    """The name of an open question."""
    return next(name for name, wait in theatre.turns[-1].state.waits.items() if wait.text == question)


async def _asks_twice(ctx: Any) -> Any:
    return await asyncio.gather(ctx.ask("One?"), ctx.ask("Two?"))


async def test_of_two_questions_at_once_one_is_answered(theatre: Theatre) -> None:
    functions = {"a": _asks_twice, "b": nothing}
    ending = await theatre.run(WORK, functions)
    assert ending.kind == "waiting"
    for number, (question, kind) in enumerate((("One?", "waiting"), ("Two?", "completed"))):
        async with theatre.house(functions) as house:
            await house.order("run", Order(kind="answer", target=_wait(theatre, question), value=number))
        with anyio.fail_after(180):
            ending = await theatre.resume(functions)
        assert ending.kind == kind
    assert result(ending.state, "work/a") == [0, 1]


async def test_of_two_questions_at_once_one_is_answered_live(theatre: Theatre) -> None:
    async with theatre.house({"a": _asks_twice, "b": nothing}) as house, anyio.create_task_group() as group:
        group.start_soon(partial(house.run, WORK, run="run", wait=True))
        for question in ("Two?", "One?"):
            await theatre.until_waiting()
            order = Order(kind="answer", target=_wait(theatre, question), value=question)
            await house.order("run", order)
    state = theatre.turns[-1].state
    assert (state.status, result(state, "work/a")) == ("completed", ["One?", "Two?"])
    assert kinds(theatre.events).count("run_waiting") == 2


async def test_an_answer_that_is_no_choice_is_refused(theatre: Theatre) -> None:
    functions = {"a": _asks, "b": nothing}
    await theatre.run(WORK, functions)
    async with theatre.house(functions) as house:
        with pytest.raises(BadOrder, match="left, right"):
            await house.order("run", Order(kind="answer", value="up"))
        with pytest.raises(BadOrder, match="no open question"):
            await house.order("run", Order(kind="answer", target="other", value="left"))
    assert (await theatre.resume(functions)).kind == "waiting"


async def test_a_refused_order_is_refused_live_as_well(theatre: Theatre) -> None:
    refused: list[str] = []
    found: list[Ending] = []
    functions = {"a": _asks, "b": nothing}
    async with theatre.house(functions) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(WORK, run="run", wait=True))

        group.start_soon(play)
        await theatre.until_waiting()
        for order in (
            Order(kind="answer", value="up"),
            Order(kind="provide", target="NOTHING"),
            Order(kind="retry", target="nobody"),
            Order(kind="rollback", target="999"),
            Order(kind="rollback", target="x"),
        ):
            try:
                await house.order("run", order)
            except Exception as error:
                refused.append(type(error).__name__)
        await house.order("run", Order(kind="answer", value="left"))
    assert refused == ["BadOrder"] * 5
    assert found[0].kind == "completed"


async def test_a_question_too_long_to_store_is_refused_to_the_agent(theatre: Theatre) -> None:
    """And not to the run."""
    said: list[str] = []

    async def agent(ctx: Any) -> str:
        try:
            await ctx.ask("?" * 300_000)
        except Exception as error:
            said.append(str(error))
        return "went on"

    ending = await theatre.run(WORK, {"a": agent, "b": nothing})
    assert (ending.kind, result(ending.state, "work/a")) == ("completed", "went on")
    assert "200,000" in said[0]


async def test_an_agent_may_give_up_waiting(theatre: Theatre) -> None:
    """It is busy from then on: the run must not take it for waiting."""

    async def impatient(ctx: Any) -> str:
        try:
            await asyncio.wait_for(ctx.ask("Anybody?"), 0.01)
        except TimeoutError:
            await ctx.save("nobody", progress=0.5)
            await anyio.sleep(0.02)
        return "went on"

    functions = {"a": impatient, "b": returns(1)}
    ending = await theatre.run(WORK, functions, wait=True)
    assert (ending.kind, result(ending.state, "work/a")) == ("completed", "went on")


async def test_the_time_limit_stands_still_while_somebody_is_asked(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, stands_still, goes_on = list[float | None](), anyio.Event(), anyio.Event()

    class WatchedDeadlines(Deadlines):
        def set(self, ring: Ring, seconds: float) -> None:
            if limits:
                goes_on.set()
            limits.append(seconds)
            super().set(ring, seconds)

        def clear(self, ring: Ring) -> float | None:
            limits.append(None)
            stands_still.set()
            return super().clear(ring)

    async def asks_and_works(ctx: Any) -> None:
        await _asks(ctx)
        await goes_on.wait()

    monkeypatch.setattr("orchestra.engine.atlas.Deadlines", WatchedDeadlines)
    limit = Retry(attempts=1, timeout_us=600_000_000)
    workflow = flow(phase("work", does("a", retry=limit)), policy=policy("fail"))
    found: list[Ending] = []
    async with theatre.house({"a": asks_and_works}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(workflow, run="run", wait=True))

        group.start_soon(play)
        await theatre.until_waiting()
        await stands_still.wait()
        assert limits == [600.0, None], "nothing is due while it waits"
        await house.order("run", Order(kind="answer", value="left"))
    assert found[0].kind == "completed"
    whole, _, left = limits
    assert whole is not None
    assert left is not None
    assert 0 < left < whole, "what was left goes on"


async def test_who_waits_leaves_its_place_to_others(theatre: Theatre) -> None:
    """One place for all runs of the process, and the one who has it asks a person."""
    engine = EngineSettings(process_concurrency=1)
    found: dict[str, str] = {}
    functions = {"a": _asks, "b": nothing}
    async with theatre.house(functions, engine=engine) as house, anyio.create_task_group() as group:

        async def play(run: str, workflow: Workflow) -> None:
            found[run] = (await house.run(workflow, run=run, wait=run == "asking")).kind

        group.start_soon(play, "asking", flow(phase("work", does("a"))))
        await theatre.until_waiting("asking")
        with anyio.fail_after(180):
            await play("other", flow(phase("work", does("b"))))
        await house.order("asking", Order(kind="answer", value="left"))
    assert found == {"asking": "completed", "other": "completed"}
