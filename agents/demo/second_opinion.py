"""The additional specialist: does the same task, and is sure."""

from typing import Any

from orchestra import Result


async def agent(ctx: Any) -> Result:
    """A second opinion."""
    ctx.emit("looked at it from the other side\n")
    return Result(output="second opinion: yes", confidence=0.95)
