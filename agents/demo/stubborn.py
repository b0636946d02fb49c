"""Fails however often it is restarted, until the run has been rolled back.

The last part of the effect key is the generation, which grows with every rollback and is itself never
rolled back: by it an agent knows that it begins anew.
"""

from typing import Any


async def agent(ctx: Any) -> str:
    """Succeed in any generation but the first."""
    generation = int(ctx.effect_key.rpartition("/")[2])
    await ctx.save({"generation": generation}, step=f"generation {generation}, attempt {ctx.attempt}")
    if generation == 0:
        raise RuntimeError("what this builds on is bad; restarting does not help")
    return f"stubborn: succeeded after {generation} rollback{'s' if generation > 1 else ''}"
