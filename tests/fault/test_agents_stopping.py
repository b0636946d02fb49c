"""Agents that hang, swallow their cancellation or raise on their way out: the run goes on."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.agents.context import BlockingContext, Context
from orchestra.agents.gate import Gate
from orchestra.agents.runners import Runners
from orchestra.errors import AgentAbandoned, AgentFailed
from orchestra.ports.agent import Result, Saved
from tests.tidy.project import ROOT
from tests.unit.agents.support import Recorder, assignment, function_agent

pytestmark = pytest.mark.anyio
CANCELLED = asyncio.CancelledError
GRACE = 180.0
"""For agents that stop: more than they take on the busiest machine."""
SHORT_GRACE = 0.2
"""For agents that do not stop."""


async def cancelled(
    function: Callable[..., Any], begun: anyio.Event, link: Recorder | None = None, *, grace: float = GRACE
) -> None:
    """Run an agent and cancel it once it has begun; raises what the runner raises beside the cancellation."""
    runners = Runners(Path(), {"one": function}, threads=1, grace=grace)
    failure: list[BaseException] = []
    ended = anyio.Event()

    async def attempt() -> None:
        try:
            await runners.run(function_agent(), assignment(), link or Recorder())
        except BaseException as error:
            failure.append(error)
            if isinstance(error, CANCELLED):
                raise
        finally:
            ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(attempt)
        await begun.wait()
        group.cancel_scope.cancel()
    assert ended.is_set()
    assert failure, "the attempt came to an end by itself"
    if not isinstance(failure[0], CANCELLED):
        raise failure[0]


# --- in the loop


async def test_a_hanging_agent_is_cancelled_and_cleans_up() -> None:
    begun, seen = anyio.Event(), []
    link = Recorder()

    async def agent(ctx: Context) -> None:
        try:
            begun.set()
            await anyio.sleep_forever()
        except CANCELLED:
            seen.append("cancelled")
            raise
        finally:
            await ctx.save({"kept": 1})  # it may still say where it stood
            await asyncio.sleep(0)
            seen.append("cleaned up")

    await cancelled(agent, begun, link)
    assert seen == ["cancelled", "cleaned up"]
    assert link.reports == [Saved(private={"kept": 1})]


@pytest.mark.parametrize("swallowed", [CANCELLED, BaseException])
async def test_an_agent_that_swallows_its_cancellation_is_dropped(swallowed: type[BaseException]) -> None:
    begun, rounds = anyio.Event(), []

    async def agent(ctx: Context) -> None:
        while True:
            try:
                begun.set()
                rounds.append(1)
                await asyncio.sleep(0.001)
            except swallowed:
                pass

    with pytest.raises(AgentAbandoned, match=r"did not stop within 0\.2 s") as caught:
        await cancelled(agent, begun, grace=SHORT_GRACE)
    assert caught.value.data["agent"] == "one"
    count = len(rounds)
    await asyncio.sleep(0.02)
    assert len(rounds) == count, "it is not resumed any more"
    assert not [task for task in asyncio.all_tasks() if "_lived" in repr(task)]


async def test_an_agent_that_shields_itself_is_dropped_too() -> None:
    begun = anyio.Event()

    async def agent(ctx: Context) -> None:
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep_forever)
                begun.set()
                try:
                    await anyio.sleep_forever()
                except CANCELLED:
                    await asyncio.Event().wait()

    with pytest.raises(AgentAbandoned):
        await cancelled(agent, begun, grace=SHORT_GRACE)


async def test_a_cancellation_that_is_swallowed_once_still_counts() -> None:
    begun = anyio.Event()

    async def agent(ctx: Context) -> str:
        try:
            begun.set()
            await anyio.sleep_forever()
        except CANCELLED:
            pass
        return "a late result"

    await cancelled(agent, begun)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
async def test_an_error_on_the_way_out_does_not_hide_the_cancellation(error: BaseException) -> None:
    begun = anyio.Event()

    async def agent(ctx: Context) -> None:
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            raise error

    await cancelled(agent, begun)


async def test_a_cancelled_task_is_cancelled_whoever_did_it() -> None:
    begun = anyio.Event()

    async def agent(ctx: Context) -> None:
        begun.set()
        await anyio.sleep_forever()

    runners = Runners(Path(), {"one": agent}, grace=GRACE)
    task = asyncio.ensure_future(runners.run(function_agent(), assignment(), Recorder()))
    await begun.wait()
    task.cancel()
    with pytest.raises(CANCELLED):
        await task


async def test_a_time_limit_of_the_engine_holds() -> None:
    async def agent(ctx: Context) -> None:
        await anyio.sleep_forever()

    runners = Runners(Path(), {"one": agent}, grace=GRACE)
    with anyio.move_on_after(0.01) as scope:
        await runners.run(function_agent(), assignment(), Recorder())
    assert scope.cancelled_caught


async def test_cancelling_before_it_began_leaves_nothing_behind() -> None:
    async def agent(ctx: Context) -> None:
        raise AssertionError("it must not begin")

    runners = Runners(Path(), {"one": agent}, grace=GRACE)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await runners.run(function_agent(), assignment(), Recorder())
    assert scope.cancelled_caught


async def test_a_failing_agent_leaves_its_siblings_alone() -> None:
    async def agent(ctx: Context) -> Any:
        await asyncio.sleep(0)
        if ctx.index:
            raise SystemExit(1)
        return "kept"

    runners = Runners(Path(), {"one": agent}, grace=GRACE)
    results: dict[int, Any] = {}

    async def attempt(index: int) -> None:
        try:
            results[index] = await runners.run(function_agent(), assignment(index=index), Recorder())
        except AgentFailed as error:
            results[index] = error.data["error"]

    async with anyio.create_task_group() as group:
        for index in range(3):
            group.start_soon(attempt, index)
    assert results == {0: Result(output="kept"), 1: "SystemExit", 2: "SystemExit"}


# --- in a thread


async def test_a_thread_that_hangs_is_left_behind_and_its_place_is_free() -> None:
    begun, let_go, late = anyio.Event(), threading.Event(), []
    token = anyio.lowlevel.current_token()
    link = Recorder()

    def hangs(ctx: BlockingContext) -> str:
        anyio.from_thread.run_sync(begun.set, token=token)
        let_go.wait()
        try:
            ctx.save("late")
        except CANCELLED as error:
            late.append(error)
        finished.set()
        return "late"

    finished = threading.Event()
    with pytest.raises(AgentAbandoned, match="its thread cannot be stopped"):
        await cancelled(hangs, begun, link, grace=SHORT_GRACE)
    let_go.set()
    await anyio.to_thread.run_sync(finished.wait)
    assert len(late) == 1
    assert link.reports == []


async def test_other_agents_get_a_thread_while_one_hangs() -> None:
    begun, let_go = anyio.Event(), threading.Event()
    token = anyio.lowlevel.current_token()

    def agent(ctx: BlockingContext) -> str:
        if ctx.index:
            return "worked"
        anyio.from_thread.run_sync(begun.set, token=token)
        let_go.wait()
        return "never"

    runners = Runners(Path(), {"one": agent}, threads=1, grace=0.01)

    async def hang() -> None:
        with pytest.raises(AgentAbandoned), scope:
            await runners.run(function_agent(), assignment(), Recorder())

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(hang)
        await begun.wait()
        scope.cancel()
        result = await runners.run(function_agent(), assignment(index=1), Recorder())
    let_go.set()
    assert result == Result(output="worked")


async def test_a_thread_that_waits_for_an_answer_is_woken() -> None:
    begun, seen = anyio.Event(), []

    class Telling(Recorder):
        def _take(self, report: Any) -> None:
            super()._take(report)
            begun.set()

    def agent(ctx: BlockingContext) -> None:
        try:
            ctx.ask("Which?")
        except BaseException as error:
            seen.append(type(error))
            raise

    await cancelled(agent, begun, Telling())
    assert seen == [CANCELLED]


async def test_a_thread_that_works_on_stops_at_its_next_word() -> None:
    begun = anyio.Event()

    class Telling(Recorder):
        def _take(self, report: Any) -> None:
            begun.set()

    def agent(ctx: BlockingContext) -> None:
        while True:
            ctx.emit("on and on")

    await cancelled(agent, begun, Telling())


@pytest.mark.parametrize("word", ["emit", "on_save"])
async def test_a_late_word_from_a_thread_is_nothing_the_loop_complains_about(word: str) -> None:
    begun, stopped, complaints = anyio.Event(), threading.Event(), list[str]()
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(str(told["message"])))

    class Closing(Gate):
        def cancel(self) -> None:
            super().cancel()
            stopped.set()

    def agent(ctx: BlockingContext) -> None:
        ctx.emit("begun")
        assert stopped.wait(GRACE)
        getattr(ctx, word)("late" if word == "emit" else lambda: None)

    class Telling(Recorder):
        def _take(self, report: Any) -> None:
            begun.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestra.agents.python.runner.Gate", Closing)
        await cancelled(agent, begun, Telling())
    assert complaints == []


def test_the_process_can_end_although_a_thread_hangs() -> None:
    program = """
import anyio, asyncio, gc, threading
from orchestra.errors import AgentAbandoned
from orchestra.agents.runners import Runners
from pathlib import Path
from tests.unit.agents.support import Recorder, assignment, function_agent

kept = []

def blocking(ctx):
    loop.call_soon_threadsafe(scope.cancel)
    threading.Event().wait()

async def stubborn(ctx):
    kept.append(ctx)
    scope.cancel()
    while True:
        try:
            await asyncio.sleep(0.001)
        except BaseException:
            pass

async def main():
    global loop, scope
    loop = asyncio.get_running_loop()
    for agent in (blocking, stubborn):
        runners = Runners(Path(), {"one": agent}, grace=0.01)
        try:
            with anyio.CancelScope() as scope:
                await runners.run(function_agent(), assignment(), Recorder())
        except AgentAbandoned:
            print("abandoned")

anyio.run(main)
kept.clear()
gc.collect()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=180, check=True
    )
    assert done.stdout.split() == ["abandoned", "abandoned"]
