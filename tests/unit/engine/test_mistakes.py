"""One agent's mistake is its own: it costs that agent an attempt, and neither the run nor the process."""

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from orchestra.errors import AgentFailed
from orchestra.limits import NAME_CHARS, TEXT_CHARS
from orchestra.model.events import TaskFailed
from orchestra.model.records import Failure
from orchestra.ports.agent import Emitted, Required, Saved, Used
from tests.unit.engine.support import Theatre, does, flow, phase, policy, result

pytestmark = pytest.mark.anyio


class Closed(dict[str, Any]):
    def items(self) -> Any:
        raise StopIteration("nobody looks into this")


async def _saves(ctx: Any) -> None:
    await ctx.save({"inner": Closed()})


async def _saves_unchecked(ctx: Any) -> None:
    await ctx._link.call(Saved(blockers=({"reason": "x"},)))


async def _requires_unchecked(ctx: Any) -> None:
    await ctx._link.call(Required(name="\ud800"))


async def _returns(ctx: Any) -> Any:
    return [Closed()]


async def _fails(ctx: Any) -> None:
    ctx.fail("as it is", details=Closed())


async def _names_a_book(ctx: Any) -> None:
    await ctx.effect("x" * 40_000_000, lambda key: None)


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        (_names_a_book, "ValueError"),
        (_saves, "StopIteration"),
        (_saves_unchecked, "KeyError"),
        (_requires_unchecked, "UnicodeEncodeError"),
        (_returns, "StopIteration"),
        (_fails, "Failed"),
    ],
)
async def test_what_cannot_be_understood_is_a_failed_attempt(
    theatre: Theatre, agent: Callable[[Any], Any], error: str
) -> None:
    async def learns(ctx: Any) -> Any:
        return await agent(ctx) if ctx.attempt == 1 else "learned"

    workflow = flow(phase("work", does("a")), policy=policy("restart", "fail", attempts=2))
    ending = await theatre.run(workflow, {"a": learns})
    (failed,) = (event for event in theatre.events if isinstance(event, TaskFailed))
    assert failed.failure.error == error
    assert result(ending.state, "work/a") == "learned"


def _shared(levels: int = 12) -> Any:
    """Few things that hold each other: looked at one by one, they are more than anybody can count."""
    value: Any = "v"
    for _ in range(levels):
        value = [value] * 1000
    return value


async def _returns_shared(ctx: Any) -> Any:
    return _shared()


async def _returns_shared_below(ctx: Any) -> Any:
    return OrderedDict(inner=_shared())


async def _saves_shared(ctx: Any) -> None:
    await ctx.save(_shared())


async def _saves_shared_blockers(ctx: Any) -> None:
    await ctx.save(blockers=[{"by": "x", "reason": "y", "more": _shared(2)}] * 20)


async def _effects_shared(ctx: Any) -> None:
    await ctx.effect("post", lambda key: None, intent=_shared())


@pytest.mark.parametrize(
    "agent",
    [_returns_shared, _returns_shared_below, _saves_shared, _saves_shared_blockers, _effects_shared],
)
async def test_shared_parts_are_counted_as_often_as_they_are_there(
    theatre: Theatre, agent: Callable[[Any], Any]
) -> None:
    await theatre.run(flow(phase("work", does("a")), policy=policy("fail")), {"a": agent})
    (failed,) = (event for event in theatre.events if isinstance(event, TaskFailed))
    assert failed.failure.error == "UnstorableValue"
    assert "more than 2,000,000 things" in failed.failure.message


async def test_shared_details_do_not_hide_a_failure(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        ctx.fail("as it is", details=_shared())

    await theatre.run(flow(phase("work", does("a")), policy=policy("fail")), {"a": agent})
    (failed,) = (event for event in theatre.events if isinstance(event, TaskFailed))
    assert (failed.failure.error, failed.failure.message) == ("Failed", "as it is")


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("report", [Emitted(text="lost \ud800"), Used(tokens_in=10**400)])
async def test_a_refusal_that_nobody_waits_for_fails_the_attempt(
    theatre: Theatre, report: Emitted | Used, waits: bool
) -> None:
    async def agent(ctx: Any) -> str:
        if ctx.attempt == 1:
            ctx._link.send(report)
            if waits:
                await anyio.sleep_forever()
        return "done"

    workflow = flow(phase("work", does("a")), policy=policy("restart", "fail", attempts=2))
    ending = await theatre.run(workflow, {"a": agent})
    (failed,) = (event for event in theatre.events if isinstance(event, TaskFailed))
    assert failed.failure.error == "IllegalEvent"
    assert result(ending.state, "work/a") == "done"


async def _failure(theatre: Theatre, error: BaseException) -> Failure:
    async def agent(ctx: Any) -> None:
        raise error

    await theatre.run(flow(phase("work", does("a")), policy=policy("fail")), {"a": agent})
    (failed,) = (event for event in theatre.events if isinstance(event, TaskFailed))
    return failed.failure


async def test_a_failure_that_names_a_file_of_another_alphabet_is_told(theatre: Theatre) -> None:
    failure = await _failure(theatre, RuntimeError("cannot open " + os.fsdecode(b"caf\xe9.txt")))
    assert (failure.error, failure.message) == ("RuntimeError", "cannot open caf\\udce9.txt")
    assert "caf\\udce9.txt" in failure.stack


async def test_a_failure_is_told_as_far_as_it_can_be_kept(theatre: Theatre) -> None:
    much = {"error": "E" * 3_000_000, "message": "m" * 3_000_000, "stack": "s\ud800" * 3_000_000}
    failure = await _failure(theatre, AgentFailed(agent="a", recoverable=True, details=None, **much))
    assert failure.error == "E" * NAME_CHARS
    assert failure.message.startswith("mmm")
    assert failure.stack.startswith("s\\ud800s")
    assert len(failure.message) + len(failure.stack) <= TEXT_CHARS


async def test_what_was_refused_can_be_said_better(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> str:
        with pytest.raises(AgentFailed):
            await ctx.save(Closed())
        await ctx.save({"at": 1})
        return "fine"

    ending = await theatre.run(flow(phase("work", does("a"))), {"a": agent})
    assert result(ending.state, "work/a") == "fine"
