"""Writes the report to a file."""

from orchestra import Context


async def agent(ctx: Context) -> str:
    """The report as the writer left it, below the question it answers."""
    text = f"# {ctx.inputs['question']}\n\n{ctx.context['report'].strip()}\n"
    await ctx.write("report.md", text, "text/markdown")
    return "report.md"
