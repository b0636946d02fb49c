"""Writes down what the others noted."""

from collections.abc import Iterator, Mapping
from typing import Any


async def agent(ctx: Any) -> int:
    """The notes as a page; gives their number."""
    notes = list(flat(ctx.context.get("notes") or ()))
    await ctx.write("story.md", "\n".join(["# What happened", "", *(f"- {note}" for note in notes), ""]))
    return len(notes)


def flat(notes: Any) -> Iterator[str]:
    """The notes as texts, however they were collected."""
    if isinstance(notes, str | Mapping):
        yield str(notes)
    else:
        for each in notes:
            yield from flat(each)
