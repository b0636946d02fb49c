"""Streamed text: kept up to a bound, and said where it goes past it."""

from typing import Any

import pytest

from orchestra.engine.agents.mercury import CUT
from orchestra.limits import TEXT_CHARS
from tests.unit.engine.support import Theatre, decisions, does, flow, phase, policy

pytestmark = pytest.mark.anyio


async def _streamed(theatre: Theatre, *pieces: str, attempts: int = 1) -> Any:
    async def streams(ctx: Any) -> None:
        for piece in pieces:
            ctx.emit(piece)
            await ctx.save()
        ctx.fail("stop here")

    rules = policy("restart", "fail", attempts=attempts)
    return await theatre.run(flow(phase("work", does("a", "streams")), policy=rules), {"streams": streams})


async def test_what_fits_is_kept_whole(theatre: Theatre) -> None:
    text = "x" * (TEXT_CHARS - len(CUT) - 1)
    ending = await _streamed(theatre, text, ".")
    assert ending.state.agents["a"].partial == f"{text}."
    assert decisions(ending.state, "text_cut") == []


@pytest.mark.parametrize(
    "pieces",
    [("x" * TEXT_CHARS,), ("x" * (TEXT_CHARS - 10), "y" * 100), ("x" * 150_000,) * 3, ("x" * 500_000, "y")],
    ids=["at the limit", "across it", "again and again", "at once"],
)
async def test_what_is_left_out_is_said_once(theatre: Theatre, pieces: tuple[str, ...]) -> None:
    ending = await _streamed(theatre, *pieces)
    partial = ending.state.agents["a"].partial
    assert len(partial) == TEXT_CHARS
    assert partial == "".join(pieces)[: TEXT_CHARS - len(CUT)] + CUT
    (said,) = decisions(ending.state, "text_cut")
    assert said.description == "Keep no more of what a streams"
    assert "200,000" in said.rationale
    assert "write an output" in said.alternatives


async def test_a_further_attempt_does_not_say_it_again(theatre: Theatre) -> None:
    ending = await _streamed(theatre, "x" * 300_000, attempts=3)
    assert ending.state.tasks["work/a"].attempts == 3
    assert len(decisions(ending.state, "text_cut")) == 1
    assert ending.state.agents["a"].partial.endswith(CUT)


async def test_a_result_is_not_harmed_by_much_streaming(theatre: Theatre) -> None:
    async def streams(ctx: Any) -> str:
        for _ in range(10):
            ctx.emit("z" * 100_000)
        return "fine"

    ending = await theatre.run(flow(phase("work", does("a", "streams"))), {"streams": streams})
    assert ending.kind == "completed"
    assert len(decisions(ending.state, "text_cut")) == 1
