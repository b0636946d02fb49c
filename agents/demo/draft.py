"""Writes a draft for a person to decide on."""

from typing import Any


async def agent(ctx: Any) -> str:
    """The draft, also as an output so that it can be read before the decision."""
    topic = str(ctx.inputs["topic"])
    text = (
        f"# {topic}\n\nThis note is about {topic[:1].lower() + topic[1:]}. It waits for somebody to say "
        "yes.\n"
    )
    await ctx.write("draft.md", text)
    return text
