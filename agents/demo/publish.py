"""Asks a person, and publishes once."""

from typing import Any


async def agent(ctx: Any) -> bool:
    """Whether the draft was published."""
    draft = str(ctx.context["draft"])
    answer = await ctx.ask("Publish?", choices=("yes", "no"), details={"draft": draft})
    await ctx.decide(f"The answer is {answer}", rationale="a person decides what is published")
    if answer != "yes":
        return False

    async def publish(key: str) -> dict[str, str]:
        """Done once: an interrupted attempt finds the outcome of the earlier one."""
        place = await ctx.write("published.md", f"{draft}\n<!-- {key} -->\n")
        return {"place": str(place), "key": key}

    # Writing the same page twice does no harm, so an interrupted effect may be done again.
    await ctx.effect("publish", publish, intent={"characters": len(draft)}, repeatable=True)
    return True
