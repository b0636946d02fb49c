"""The report in Markdown: plain enough for a pull request or a terminal."""

import re
from collections.abc import Iterator
from typing import Any

from _report_summary import LOOKED_FOR, Review

_SPECIAL = re.compile(r"([\\*{}\[\]<>#|]|(?<!\w)_|_(?!\w))")


def markdown_page(review: Review) -> str:
    """The whole page."""
    return "\n".join(_page(review)) + "\n"


def _page(review: Review) -> Iterator[str]:
    yield f"# Review of {plain(review.project)}"
    yield ""
    yield review.headline
    if review.findings:
        yield ""
        yield from _table(review)
    else:
        yield from ("", "What was looked for:", "")
        yield from (f"- {kind}: {text}" for kind, text in LOOKED_FOR.items())
    for severity in review.by_severity:
        group = [each for each in review.findings if each["severity"] == severity]
        if group:
            yield from ("", f"## {severity.capitalize()} ({len(group)})")
        for each in group:
            yield from _finding(each)
    yield from _skipped(review)


def _table(review: Review) -> Iterator[str]:
    yield "| kind | high | medium | low |"
    yield "|---|--:|--:|--:|"
    for kind in review.by_kind:
        counts = [review.count(kind, severity) for severity in review.by_severity]
        yield f"| {kind} | " + " | ".join(str(count) for count in counts) + " |"


def _finding(each: dict[str, Any]) -> Iterator[str]:
    place = each["file"] + (f":{each['line']}" if each["line"] else "")
    yield from ("", f"### {code(place)} · {each['rule']}")
    yield from ("", spans(each["message"]))
    if each["excerpt"]:
        yield from ("", *fenced(each))
    yield from ("", f"*{spans(each['advice'])}*")


def fenced(each: dict[str, Any]) -> list[str]:
    """An excerpt with line numbers, in a fence longer than any in it."""
    runs = [len(run) for run in re.findall(r"`+", each["excerpt"])]
    fence = "`" * max(3, max(runs, default=0) + 1)
    language = "python" if each["file"].endswith(".py") else "text"
    lines = each["excerpt"].split("\n")
    numbered = [f"{each['line'] + number:>5}  {line}" for number, line in enumerate(lines)]
    return [f"{fence}{language}", *numbered, fence]


def code(text: str) -> str:
    """A code span, whatever the text holds."""
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("\n", " ")


def spans(text: str) -> str:
    """Prose in which the code spans stay and everything else is plain."""
    parts = text.replace("\n", " ").split("`")
    if len(parts) % 2 == 0:  # a lone backtick
        return plain(text)
    return "".join(code(part) if number % 2 else plain(part) for number, part in enumerate(parts))


def plain(text: str) -> str:
    """Text in which nothing means anything."""
    return _SPECIAL.sub(r"\\\1", text)


def _skipped(review: Review) -> Iterator[str]:
    if review.skipped:
        yield from ("", f"## Left out ({len(review.skipped)})", "")
        for each in review.skipped:
            yield f"- {code(each['file'])}: {plain(each['why'])}"
