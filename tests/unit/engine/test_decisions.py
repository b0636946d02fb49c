"""Decisions of agents: each is on the record once, also when its agent begins again."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orchestra.model.workflow import Policy
from tests.unit.engine.support import QUICK, Theatre, does, flow, phase, policy

pytestmark = pytest.mark.anyio

LARGE = "x" * 100_000


def _made(state: Any) -> list[tuple[str, str]]:
    return [(each.description, each.rationale) for each in state.decisions if each.agent == "a"]


def _failing(*attempts: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """An agent that does something else in each attempt, and fails in all but the last."""

    async def agent(ctx: Any) -> None:
        await attempts[ctx.attempt - 1](ctx)
        if ctx.attempt < len(attempts):
            raise RuntimeError("not yet")

    return agent


async def _left(ctx: Any) -> None:
    await ctx.decide("Go left", rationale="it is shorter", details={"map": LARGE})


async def _left_twice(ctx: Any) -> None:
    await _left(ctx)
    await _left(ctx)


async def _left_for_another_reason(ctx: Any) -> None:
    await ctx.decide("Go left", rationale="the bridge is closed", details={"map": LARGE})


async def _left_on_another_map(ctx: Any) -> None:
    await ctx.decide("Go left", rationale="it is shorter", details={"map": LARGE + "y"})


@pytest.mark.parametrize(
    ("attempts", "count"),
    [
        ((_left, _left), 1),
        ((_left, _left, _left), 1),
        ((_left_twice, _left_twice), 2),
        ((_left, _left_twice), 2),
        ((_left_twice, _left), 2),
        ((_left, _left_for_another_reason), 2),
        ((_left, _left_on_another_map), 2),
    ],
)
async def test_an_agent_that_begins_again_decides_once(
    theatre: Theatre, attempts: tuple[Any, ...], count: int
) -> None:
    ending = await theatre.run(flow(phase("job", does("a"))), {"a": _failing(*attempts)})
    assert (ending.kind, len(_made(ending.state))) == ("completed", count)


async def test_a_resumed_agent_decides_once(theatre: Theatre) -> None:
    async def asks(ctx: Any) -> None:
        await _left(ctx)
        await ctx.ask("Really?")

    workflow = flow(phase("job", does("a")))
    assert (await theatre.run(workflow, {"a": asks})).kind == "waiting"
    await theatre.resume({"a": asks})
    ending = await theatre.resume({"a": asks})
    assert (ending.kind, _made(ending.state)) == ("waiting", [("Go left", "it is shorter")])


async def test_another_visit_and_another_generation_decide_anew(theatre: Theatre) -> None:
    work = phase("job", does("a"), next=[("job", "visit < 2"), "end"])
    ending = await theatre.run(flow(work, policy=Policy(retry=QUICK)), {"a": _left})
    assert (ending.kind, len(_made(ending.state))) == ("completed", 2)

    async def again(ctx: Any) -> None:
        await ctx.save(step="begun")
        await _left(ctx)
        if ctx.effect_key.endswith("/0"):
            raise RuntimeError("broken")

    job = flow(phase("job", does("a")), policy=policy("rollback", "fail"))
    ending = await theatre.run(job, {"a": again}, run="back")
    assert (ending.kind, len(_made(ending.state))) == ("completed", 1)  # the first was undone
    made = [event.decision.effect_key for event in theatre.events if event.kind == "decision_made"]
    assert [key for key in made if key is not None and key.startswith("back")] == [
        "back/job/1/a/0",
        "back/job/1/a/1",
    ]


async def test_a_fork_does_not_tell_its_origins_decision_again(theatre: Theatre) -> None:
    async def asks(ctx: Any) -> None:
        await _left(ctx)
        await ctx.ask("Really?")

    await theatre.run(flow(phase("job", does("a"))), {"a": asks})
    async with theatre.house({"a": _left}) as house:
        fork = await house.fork("run")
        ending = await house.resume(fork)
    assert (ending.kind, len(_made(ending.state))) == ("completed", 1)
