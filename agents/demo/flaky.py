"""Crashes on its first attempts, and counts its starts in its workspace, which lasts over all of them."""

from typing import Any


async def agent(ctx: Any) -> str:
    """Succeed once it has crashed often enough."""
    counter = ctx.workspace / "starts.txt"
    starts = 1 + (int(counter.read_text()) if counter.exists() else 0)
    counter.parent.mkdir(parents=True, exist_ok=True)
    counter.write_text(str(starts))
    crashes = int(ctx.settings.get("crashes", 2))
    await ctx.save({"starts": starts}, progress=min(1.0, starts / (crashes + 1)), step=f"start {starts}")
    if starts <= crashes:
        raise RuntimeError(f"crash {starts} of {crashes}, on purpose")
    return f"flaky: came through at start {starts}"
