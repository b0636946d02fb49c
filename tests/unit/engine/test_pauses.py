"""Waiting for a key, for a provider, at a breakpoint, paused; and being cancelled."""

import os
from typing import Any

import anyio
import attrs
import pytest

from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.engine.orders import Order
from orchestra.errors import BadOrder
from tests.unit.engine.support import (
    Theatre,
    does,
    flow,
    kinds,
    nothing,
    path,
    phase,
    result,
    statuses,
    triggers,
)

pytestmark = pytest.mark.anyio
WORK = flow(phase("work", does("a"), does("b")))


# Keys.


async def test_a_key_is_waited_for_and_never_stored(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THE_SERVICE_KEY", raising=False)
    got: list[str] = []

    async def agent(ctx: Any) -> str:
        got.append(await ctx.require("THE_SERVICE_KEY", "to call the service"))
        return f"used {got[-1]}"

    functions = {"a": agent, "b": nothing}
    ending = await theatre.run(WORK, functions)
    assert ending.kind == "waiting"
    (wait,) = ending.state.waits.values()
    assert (wait.kind, wait.text) == ("dependency", "THE_SERVICE_KEY")
    assert wait.details is not None
    assert thaw(wait.details) == {"reason": "to call the service"}
    assert any("dependency_request" in each for each in triggers(theatre.store))
    monkeypatch.setenv("THE_SERVICE_KEY", "canary-7f3a9")
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="provide", target="THE_SERVICE_KEY"))
        ending = await house.resume("run")
    assert (ending.kind, got) == ("completed", ["canary-7f3a9"])
    assert result(ending.state, "work/a") == "used [redacted]"


async def test_a_key_that_was_said_to_be_there_and_is_not_is_waited_for_on(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THE_SERVICE_KEY", raising=False)

    async def agent(ctx: Any) -> str:
        return str(await ctx.require("THE_SERVICE_KEY"))

    found: list[Ending] = []
    async with theatre.house({"a": agent, "b": nothing}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(WORK, run="run", wait=True))

        group.start_soon(play)
        await theatre.until_waiting()
        unseen = f"process {os.getpid()} plays run and does not see THE_SERVICE_KEY: set it there, or stop"
        async with theatre.house() as elsewhere:
            for each in (house, elsewhere):
                with pytest.raises(BadOrder, match=unseen):
                    await each.order("run", Order(kind="provide", target="THE_SERVICE_KEY"))
                state = theatre.turns[-1].state
                assert [state.status, *(wait.status for wait in state.waits.values())] == ["waiting", "open"]
        monkeypatch.setenv("THE_SERVICE_KEY", "canary-7f3a9")
        await house.order("run", Order(kind="provide", target="THE_SERVICE_KEY"))
    assert found[0].kind == "completed"


# Providers that say wait.


async def test_a_rate_limit_is_waited_out(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> str:
        await ctx.limited(0.05, "too many tokens")
        return "later"

    ending = await theatre.run(WORK, {"a": agent, "b": nothing})
    assert (ending.kind, result(ending.state, "work/a")) == ("completed", "later")
    (wait,) = ending.state.waits.values()
    assert wait.until is not None
    assert wait.closed_at is not None
    assert wait.closed_at >= wait.until
    assert any("rate_limited" in each for each in triggers(theatre.store))


async def test_what_was_spent_is_known_when_a_provider_says_wait(theatre: Theatre) -> None:
    """CHECKLIST 000.10: in the snapshot itself, and not only some time after it."""

    async def agent(ctx: Any) -> None:
        ctx.spent(tokens_in=90_000, tokens_out=10_000)
        await ctx.limited(0.001, "too many tokens")
        ctx.spent(tokens_out=500)

    ending = await theatre.run(WORK, {"a": agent, "b": nothing})
    (turn,) = [turn for turn in theatre.turns if "rate_limited" in turn.header.triggers]
    assert (turn.state.agents["a"].tokens, turn.state.metrics.tokens) == (100_000, 100_000)
    assert ending.state.agents["a"].tokens == 100_500


async def test_a_rate_limit_holds_over_the_end_of_the_process(theatre: Theatre) -> None:
    """The agent is not started again before its time."""
    calls: list[int] = []

    async def agent(ctx: Any) -> str:
        calls.append(ctx.attempt)
        if ctx.attempt == 1:
            limited.set()
            await ctx.limited(0.4, "slow down")
        return "later"

    limited = anyio.Event()
    async with theatre.house({"a": agent, "b": nothing}) as house, anyio.create_task_group() as group:
        group.start_soon(lambda: house.run(WORK, run="run"))
        await limited.wait()
        await theatre.until(lambda turn: bool(turn.state.waits))
        house.drain()
    ending = await theatre.resume({"a": agent, "b": nothing})
    assert (ending.kind, calls) == ("completed", [1, 2])
    (wait,) = ending.state.waits.values()
    again = [event.at for event in theatre.events if event.kind == "agent_launched"][-1]
    assert wait.until is not None
    assert again >= wait.until


# Breakpoints and pauses.


async def test_a_run_waits_at_a_breakpoint_until_it_is_let_go(theatre: Theatre) -> None:
    workflow = flow(
        phase("one", does("a"), next=["two"]),
        phase("two", does("a", breakpoint=True), breakpoint=True, next=["three"]),
        phase("three", does("a")),
    )
    ending = await theatre.run(workflow, {"a": nothing})
    assert (ending.kind, path(ending.state)) == ("waiting", ["one", "two"])
    assert "debug_breakpoint" in triggers(theatre.store)[-1]
    assert "two/a" not in ending.state.tasks
    ending = await theatre.resume({"a": nothing})
    assert (ending.kind, "two/a" in ending.state.tasks) == ("waiting", False), "before the specialist too"
    ending = await theatre.resume({"a": nothing})
    assert (ending.kind, path(ending.state)) == ("completed", ["one", "two", "three"])


async def test_a_breakpoint_of_one_run_holds_until_it_is_over(theatre: Theatre) -> None:
    """In every process that takes the run up, with a changed definition, and in a fork; not in other runs."""
    names = ("one", "two", "three", "four")
    ways = zip(names, (*names[1:], None), strict=True)
    workflow = flow(*(phase(name, does("a"), next=[way] if way else []) for name, way in ways))
    ending = await theatre.run(workflow, {"a": nothing}, break_at=["two", "four"])
    assert (ending.kind, path(ending.state)) == ("waiting", ["one", "two"])
    assert ending.state.workflow.break_at == ("four", "two")
    changed = attrs.evolve(workflow, description="in other words")
    ending = await theatre.resume({"a": nothing}, workflow=changed, accept_changes=True)
    assert (ending.kind, path(ending.state)) == ("waiting", list(names)), "before the second one too"
    async with theatre.house({"a": nothing}) as house:
        fork = await house.fork("run", 0, new="fork")
        assert path((await house.resume(fork)).state) == ["one", "two"]
        other = await house.run(workflow, run="other")
        assert (other.kind, other.state.workflow.break_at) == ("completed", ())
    assert (await theatre.resume({"a": nothing})).kind == "completed"


async def test_a_breakpoint_lets_siblings_work(theatre: Theatre) -> None:
    workflow = flow(phase("one", does("a", breakpoint=True), does("b")))
    ending = await theatre.run(workflow, {"a": nothing, "b": nothing})
    assert statuses(ending.state) == {"one/b": "completed"}
    assert (await theatre.resume({"a": nothing, "b": nothing})).kind == "completed"


async def test_a_pause_begins_nothing_new_and_keeps_what_is_under_way(theatre: Theatre) -> None:
    go_on = anyio.Event()

    async def slow(ctx: Any) -> str:
        started.set()
        await go_on.wait()
        return "finished"

    started = anyio.Event()
    workflow = flow(phase("one", does("slow"), next=["two"]), phase("two", does("b")))
    found: list[Ending] = []
    async with theatre.house({"slow": slow, "b": nothing}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(workflow, run="run"))

        group.start_soon(play)
        await started.wait()
        await house.order("run", Order(kind="pause", reason="User requested pause"))
        go_on.set()
    assert found[0].kind == "paused"
    assert statuses(found[0].state) == {"one/slow": "completed"}
    assert any("paused" in each for each in triggers(theatre.store))
    assert kinds(theatre.turns[-1].events)[-2:] == ["task_completed", "spent"], (
        "what it took to finish counts"
    )
    ending = await theatre.resume({"slow": slow, "b": nothing})
    assert (ending.kind, path(ending.state)) == ("completed", ["one", "two"])


async def test_a_paused_run_that_is_rolled_back_stays_paused(theatre: Theatre) -> None:
    """Until somebody lets it go on."""

    async def asks(ctx: Any) -> Any:
        return await ctx.ask("Which?")

    workflow = flow(phase("one", does("b"), next=["two"]), phase("two", does("a")))
    found: list[Ending] = []
    async with theatre.house({"a": asks, "b": nothing}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(workflow, run="run", wait=True))

        group.start_soon(play)
        await theatre.until_waiting()
        await house.order("run", Order(kind="pause"))
        await house.order("run", Order(kind="rollback", target="0"))
        state = theatre.turns[-1].state
        assert (state.status, state.cursor.phase, state.generation) == ("paused", "one", 1)
        await house.order("run", Order(kind="resume"))
        await theatre.until_waiting()
        await house.order("run", Order(kind="answer", value="this"))
    assert (found[0].kind, result(found[0].state, "two/a")) == ("completed", "this")


async def test_cancelling_stops_what_is_under_way_for_good(theatre: Theatre) -> None:
    stopped = anyio.Event()

    async def endless(ctx: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    started = anyio.Event()
    found: list[Ending] = []
    async with theatre.house({"a": endless, "b": nothing}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(WORK, run="run"))

        group.start_soon(play)
        await started.wait()
        await house.order("run", Order(kind="cancel", reason="enough"))
    assert found[0].kind == "cancelled"
    assert stopped.is_set()
    with pytest.raises(Exception, match="cancelled"):
        await theatre.resume({"a": endless, "b": nothing})


@pytest.mark.parametrize("kinds", [("rollback", "cancel"), ("cancel", "rollback"), ("rollback", "pause")])
async def test_a_rollback_in_the_same_turn_undoes_no_other_order(theatre: Theatre, kinds: Any) -> None:
    """A cancel is final, so the rollback is refused; a run that is paused stays so wherever it stands."""
    said: dict[str, str] = {}
    found: list[Ending] = []

    async def endless(ctx: Any) -> None:
        await anyio.sleep_forever()

    async with theatre.house({"a": endless, "b": nothing}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            with anyio.fail_after(180):
                found.append(await house.run(WORK, run="run"))

        async def wants(kind: Any) -> None:
            try:
                await house.order("run", Order(kind=kind, target="0" if kind == "rollback" else ""))
                said[kind] = "done"
            except BadOrder as error:
                said[kind] = str(error)

        group.start_soon(play)
        await theatre.until(lambda turn: turn.state.tasks["work/b"].status == "completed")
        for kind in kinds:  # nothing runs between the two, so one turn takes both
            group.start_soon(wants, kind)
    rolled_back = "rolled_back" in [event.kind for event in theatre.events]
    if "cancel" in kinds:
        assert (found[0].kind, rolled_back, said.pop("cancel")) == ("cancelled", False, "done")
        assert "the run is cancelled" in said["rollback"]
    else:
        assert (found[0].kind, rolled_back) == ("paused", True)
        assert said == {"rollback": "done", "pause": "done"}


async def test_an_order_for_a_run_that_is_over_is_answered(theatre: Theatre) -> None:
    """Also when it comes in the moment in which the run ends: nobody waits for ever."""
    found: list[str] = []
    started, go_on = anyio.Event(), anyio.Event()

    async def agent(ctx: Any) -> None:
        started.set()
        await go_on.wait()

    async with theatre.house({"a": agent, "b": nothing}) as house, anyio.create_task_group() as group:

        async def order() -> None:
            await started.wait()
            go_on.set()
            while not found:
                try:
                    with anyio.fail_after(180):
                        await house.order("run", Order(kind="snapshot"))
                except Exception as error:
                    found.append(type(error).__name__)

        group.start_soon(order)
        await house.run(WORK, run="run")
    assert found in (["BadOrder"], ["NotResumable"])
