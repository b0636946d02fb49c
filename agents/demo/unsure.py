"""Begins confident and grows less so, until it is below the threshold."""

from typing import Any

from orchestra import Result


async def agent(ctx: Any) -> Result:
    """An opinion with a confidence of 0.73."""
    for value in (0.92, 0.81, 0.73):
        ctx.confidence(value)
        await ctx.save({"confidence": value}, step=f"confidence {value}")
    await ctx.decide(
        "Hand in the opinion as it is",
        rationale="more looking would not make it surer; a second opinion would",
        confidence=0.73,
        alternatives=("keep looking", "give up"),
    )
    return Result(output="unsure: probably yes", confidence=0.73)
