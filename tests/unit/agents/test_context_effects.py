"""An effect happens at most once over all attempts, unless it is declared repeatable."""

import threading
from typing import Any

import anyio
import pytest

from orchestra.agents.context import BlockingContext, Context
from orchestra.errors import AgentFailed
from orchestra.ports.agent import EffectEnded, Result
from tests.unit.agents.support import Recorder, run_function

pytestmark = pytest.mark.anyio


class Post:
    """Something that counts how often it was done."""

    def __init__(self, error: Exception | None = None) -> None:
        self.keys: list[str] = []
        self.error = error

    def __call__(self, key: str) -> Any:
        self.keys.append(key)
        if self.error:
            raise self.error
        return {"id": 7}


async def _run(post: Post, link: Recorder, **options: Any) -> Any:
    async def agent(ctx: Context) -> Any:
        return await ctx.effect("post", post, **options)

    result = await run_function(agent, link)
    assert isinstance(result, Result)
    return result.output


async def test_the_intent_comes_first_and_the_outcome_last() -> None:
    link, post = Recorder(), Post()
    assert await _run(post, link, intent="x", risky=True) == {"id": 7}
    assert link.kinds() == ["effect_begun", "effect_ended"]
    assert link.reports[1] == EffectEnded(name="post", status="done", outcome={"id": 7})
    assert post.keys == ["demo_1/job/1/one/0/post"]


async def test_what_is_done_is_not_done_again() -> None:
    link, post = Recorder(effects={"post": {"status": "done", "outcome": 5}}), Post()
    assert await _run(post, link) == 5
    assert post.keys == []


@pytest.mark.parametrize("status", ["intended", "unknown"])
async def test_an_unknown_outcome_is_not_repeated(status: str) -> None:
    link, post = Recorder(effects={"post": {"status": status, "outcome": None}}), Post()
    with pytest.raises(AgentFailed, match="outcome of 'post' is unknown") as caught:
        await _run(post, link)
    assert caught.value.data["recoverable"] is False
    assert post.keys == []


@pytest.mark.parametrize("status", ["intended", "unknown", "failed", "undone"])
async def test_what_may_be_repeated_is(status: str) -> None:
    link, post = Recorder(effects={"post": {"status": status}}), Post()
    assert await _run(post, link, repeatable=True) == {"id": 7}


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({}, "unknown"),
        ({"harmless": (KeyError,)}, "unknown"),
        ({"harmless": (ValueError,)}, "failed"),
        ({"repeatable": True}, "failed"),
    ],
)
async def test_an_error_does_not_say_that_nothing_happened(options: dict[str, Any], status: str) -> None:
    link = Recorder()
    with pytest.raises(AgentFailed, match="ValueError: broke"):
        await _run(Post(ValueError("broke")), link, **options)
    assert link.effects["post"] == {"status": status, "outcome": {"error": "ValueError", "message": "broke"}}


async def test_an_effect_may_be_async() -> None:
    async def post(key: str) -> str:
        await anyio.sleep(0.001)
        return f"done {key[-4:]}"

    async def agent(ctx: Context) -> Any:
        return await ctx.effect("post", post)

    def plain(ctx: BlockingContext) -> Any:
        return ctx.effect("post", post)

    assert await run_function(agent) == Result(output="done post")
    assert await run_function(plain) == Result(output="done post")


async def test_a_plain_function_does_its_effects_in_its_own_thread() -> None:
    def agent(ctx: BlockingContext) -> Any:
        here = threading.get_ident()
        return ctx.effect("post", lambda key: threading.get_ident() == here)

    assert await run_function(agent) == Result(output=True)
