"""Errands: kept with the result they led to, given up with whoever asked, and bounded."""

import asyncio
from typing import Any

import attrs
import pytest

from orchestra.engine.names import caller_of, errand_name, local_of, specialist_name
from orchestra.ids import AgentId, TaskId
from orchestra.model.workflow import Phase, Policy, Workflow
from orchestra.ports.agent import Delegated, Errand
from tests.unit.engine.support import (
    Failing,
    Functions,
    Theatre,
    decisions,
    does,
    flow,
    phase,
    policy,
    result,
    statuses,
)

pytestmark = pytest.mark.anyio
HELPER = AgentId("helper")


def _flow(*phases: Phase, policy: Policy | None = None) -> Workflow:
    """A workflow in which everybody may give errands to the agent of a specialist that is skipped."""
    made = flow(*phases, phase("never", does("helper")), policy=policy)
    agents = [attrs.evolve(each, calls=() if each.id == HELPER else (HELPER,)) for each in made.agents]
    return attrs.evolve(made, agents=tuple(agents))


async def _give(ctx: Any, task: str = "help", call: str = "1", agent: AgentId = HELPER) -> Errand:
    outcome: Errand = await ctx._link.call(Delegated(call=call, agent=agent, task=task))
    return outcome


async def _asks(ctx: Any) -> Any:
    return (await _give(ctx)).output


def test_names_of_errands_say_whose_they_are() -> None:
    for caller in ("a", "a[3]", "a+1", "a:b.2", "evaluation"):
        for number in (1, 2):
            local = errand_name(caller, HELPER, number)
            for place, tail in (("p", ""), ("p.2", "~3")):
                name = TaskId(f"{place}/{local}{tail}")
                assert caller_of(name) == f"{place}/{caller}{tail}"
                assert specialist_name(local_of(name)) == specialist_name(caller)


async def test_a_rollback_keeps_errands_with_the_results_they_led_to(theatre: Theatre) -> None:
    work = phase("work", does("a"), does("b"), next=["end"])
    functions: Functions = {"a": _asks, "b": Failing(1), "helper": lambda ctx: "helped"}
    ending = await theatre.run(_flow(work, policy=policy("rollback", "fail")), functions)
    assert ending.kind == "completed", ending.state.failure
    assert ending.state.metrics.rollbacks == 1
    assert "work/a:helper" in ending.state.rollbacks[0].kept
    assert ending.state.tasks["work/a:helper"].attempts == 1
    assert result(ending.state, "work/a:helper") == "helped"


async def test_whoever_is_given_up_takes_the_errand_along(theatre: Theatre) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def asks(ctx: Any) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(_give(ctx))
            await begun.wait()
            raise RuntimeError("no more")

    async def helps(ctx: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    work = phase("work", does("a"), next=["end"])
    ending = await theatre.run(_flow(work, policy=policy("degrade")), {"a": asks, "helper": helps})
    assert ending.kind == "completed", ending.state.failure
    assert statuses(ending.state) == {"work/a": "skipped", "work/a:helper": "retired"}
    assert stopped.is_set()


async def test_an_errand_is_given_once_however_often_it_is_asked_for(theatre: Theatre) -> None:
    async def asks(ctx: Any) -> Any:
        same = [await _give(ctx) for _ in range(3)]
        other = await _give(ctx, call="2")
        return [each.output for each in (*same, other)]

    work = phase("work", does("a"), next=["end"])
    ending = await theatre.run(_flow(work), {"a": asks, "helper": lambda ctx: ctx.task})
    assert result(ending.state, "work/a") == ["help"] * 4
    assert list(statuses(ending.state)) == ["work/a", "work/a:helper", "work/a:helper.2"]
    assert len(decisions(ending.state, "errand")) == 2


async def test_there_is_an_end_to_errands(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestra.engine.rules.errands.ERRANDS", 2)

    async def asks(ctx: Any) -> Any:
        return [(await _give(ctx, call=str(number))).error for number in range(3)]

    work = phase("work", does("a"), next=["end"])
    ending = await theatre.run(_flow(work), {"a": asks, "helper": lambda ctx: "x"})
    assert result(ending.state, "work/a") == [
        "",
        "",
        "a gave helper 2 errands already, and may not give more",
    ]
    monkeypatch.setattr("orchestra.engine.rules.errands.ERRAND_DEPTH", 0)
    ending = await theatre.run(_flow(work), {"a": asks, "helper": lambda ctx: "x"}, run="deep")
    (told,) = set(result(ending.state, "work/a"))
    assert told == "0 assignments wait for one another already, and more may not"


async def test_who_is_no_tool_gets_no_errand(theatre: Theatre) -> None:
    async def asks(ctx: Any) -> Any:
        return (await _give(ctx, agent=AgentId("a"))).error

    work = phase("work", does("a"), next=["end"])
    ending = await theatre.run(_flow(work), {"a": asks, "helper": lambda ctx: "x"})
    assert result(ending.state, "work/a") == "a may not give errands to a"
    assert list(statuses(ending.state)) == ["work/a"]


async def test_others_begin_in_the_turn_in_which_an_errand_does(theatre: Theatre) -> None:
    met = asyncio.Event()

    async def asks(ctx: Any) -> Any:
        return (await _give(ctx)).output

    async def helps(ctx: Any) -> Any:
        await met.wait()  # for whom nothing else would wake up
        return "helped"

    async def first(ctx: Any) -> Any:
        return "first"

    async def then(ctx: Any) -> Any:
        met.set()

    functions = {"a": asks, "b": first, "c": then, "helper": helps}
    work = phase("work", does("a"), does("b"), does("c", needs=("b",)), next=["end"])
    ending = await theatre.run(_flow(work), functions)
    assert ending.kind == "completed", ending.state.failure
