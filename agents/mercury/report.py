"""Report: the findings as pages to read, in Markdown and as one self-contained HTML file."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from _finding import order
from _report_html import html_page
from _report_markdown import markdown_page
from _report_summary import Review
from _specialist import root_of

from orchestra import Result


def agent(ctx: Any) -> Result:
    """Write `report.md` and `report.html`."""
    review = reviewed(ctx)
    ctx.write("report.md", markdown_page(review))
    ctx.save({"written": ["report.md"]}, progress=0.5, step="report.md")
    ctx.write("report.html", html_page(review))
    ctx.emit(review.headline + "\n")
    return Result(output={"findings": len(review.findings), **review.by_severity}, confidence=1.0)


def reviewed(ctx: Any) -> Review:
    """All that the report speaks of."""
    survey = ctx.context.get("survey") or {"files": [], "skipped": []}
    found = sorted(flat(ctx.context.get("findings") or ()), key=order)
    return Review(
        project=root_of(ctx).name,
        findings=list(unique(found)),
        files=len(survey["files"]),
        skipped=[dict(each) for each in survey["skipped"]],
    )


def flat(findings: Any) -> Iterator[dict[str, Any]]:
    """Findings from lists in lists: each specialist adds a list of its own."""
    if isinstance(findings, Mapping):
        yield dict(findings)
    elif isinstance(findings, Iterable) and not isinstance(findings, str):
        for each in findings:
            yield from flat(each)


def unique(findings: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each finding once: a revised list repeats what an earlier one said."""
    seen: set[tuple[Any, ...]] = set()
    for each in findings:
        key = (each["rule"], each["file"], each["line"], each["message"])
        if key not in seen:
            seen.add(key)
            yield each
