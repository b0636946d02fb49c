"""The report as one HTML file.

First the result in a glance, then the findings: the worst first, those of a file together, each with what is
the matter as its title. It asks no network, follows the reader's light or dark setting, prints, and works
without its script, which only filters. Everything that comes from the project is escaped.
"""

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any

from _report_summary import LOOKED_FOR, Review

_HERE = Path(__file__).parent
_CODE = re.compile(r"`([^`]+)`")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def html_page(review: Review) -> str:
    """The whole page."""
    style = (_HERE / "_report.css").read_text(encoding="utf-8")
    script = (_HERE / "_report.js").read_text(encoding="utf-8")
    return "\n".join(_page(review, style, script)) + "\n"


def _page(review: Review, style: str, script: str) -> Iterator[str]:
    title = f"Review of {escape(review.project)}"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>"
    yield '<a class="skip" href="#findings">Skip to the findings</a>'
    said = f"{review.total}." if review.findings else review.headline
    yield f"<header>\n<h1>{title}</h1>\n<p>{escape(said)}</p>\n</header>\n<main>"
    if review.findings:
        yield from _summary(review)
        yield from _filters(review)
        yield from _findings(review)
    else:
        yield from _nothing(review)
    yield from _skipped(review)
    yield f"</main>\n<script>\n{script}</script>\n</body>\n</html>"


# The glance.


def _summary(review: Review) -> Iterator[str]:
    yield '<section class="summary" aria-label="Summary">'
    yield from _figures(review)
    yield from _by_kind(review)
    yield from _busiest(review)
    yield "</section>"


def _figures(review: Review) -> Iterator[str]:
    """How bad it is: the numbers, and their shares as a bar."""
    yield '<div class="figures"><ul>'
    for severity, count in review.by_severity.items():
        yield f'<li class="{severity}"><strong>{count}</strong> {severity}</li>'
    yield '</ul><div class="bar" aria-hidden="true">'
    for severity, count in review.by_severity.items():
        if count:
            yield f'<span class="{severity}" style="flex-grow: {count}"></span>'
    yield "</div></div>"


def _by_kind(review: Review) -> Iterator[str]:
    yield "<table><caption>By kind</caption><thead><tr><td></td>"
    yield "".join(f'<th scope="col">{severity}</th>' for severity in review.by_severity)
    yield "</tr></thead><tbody>"
    for kind in review.by_kind:
        cells = "".join(_count(review.count(kind, severity), severity) for severity in review.by_severity)
        yield f'<tr><th scope="row">{kind}</th>{cells}</tr>'
    yield "</tbody></table>"


def _count(count: int, severity: str) -> str:
    return f'<td class="{severity}">{count}</td>' if count else '<td class="none">0</td>'


def _busiest(review: Review) -> Iterator[str]:
    """The files with the most findings, each leading to its first."""
    yield "<table><caption>Most findings in</caption><tbody>"
    first = {each["file"]: number for number, each in reversed(list(enumerate(review.findings, start=1)))}
    for name, count in review.busiest:
        place = f'<a href="#finding-{first[name]}">{_place(name)}</a>'
        yield f'<tr><th scope="row">{place}</th><td>{count}</td></tr>'
    yield "</tbody></table>"


def _place(file: str) -> str:
    return "the project as a whole" if file == "." else f"<code>{escape(file)}</code>"


def _nothing(review: Review) -> Iterator[str]:
    """What was looked for, so that nothing found says something."""
    yield '<section class="nothing" aria-label="What was looked for"><h2>What was looked for</h2><dl>'
    for kind, text in LOOKED_FOR.items():
        yield f"<dt>{kind}</dt><dd>{escape(text)}</dd>"
    yield "</dl><p>These rules see what can be read from the source. That they found nothing is no proof that"
    yield "there is nothing to find.</p></section>"


# The findings.


def _filters(review: Review) -> Iterator[str]:
    yield '<form id="filters" hidden aria-label="Filter the findings">'
    yield from _choices("severity", review.by_severity)
    yield from _choices("kind", review.by_kind)
    yield '<label class="words"><span>Containing</span>'
    yield '<input type="search" name="words" autocomplete="off" placeholder="file, rule or word"></label>'
    yield '<p class="shown"><output name="shown" aria-live="polite"></output>'
    yield '<button type="reset">Show all</button></p></form>'


def _choices(name: str, counts: dict[str, int]) -> Iterator[str]:
    yield f"<fieldset><legend>{name.capitalize()}</legend>"
    for value, count in counts.items():
        if count:
            box = f'<input type="checkbox" name="{name}" value="{value}" checked>'
            yield f'<label class="{value}">{box} {value} <small>{count}</small></label>'
    yield "</fieldset>"


def _findings(review: Review) -> Iterator[str]:
    yield '<div id="findings">'
    numbered = enumerate(review.findings, start=1)
    for severity, group in groupby(numbered, key=lambda pair: str(pair[1]["severity"])):
        found = list(group)
        yield f'<section class="{escape(severity)}" aria-label="{escape(severity)}">'
        yield f"<h2>{escape(severity.capitalize())} <small>{len(found)}</small></h2>"
        for file, pairs in groupby(found, key=lambda pair: str(pair[1]["file"])):
            yield f'<div class="file"><h3>{_place(file)}</h3>'
            for number, each in pairs:
                yield from _finding(number, each)
            yield "</div>"
        yield "</section>"
    yield '<p id="none" hidden>No finding fits. Choose more above.</p></div>'


def _finding(number: int, each: dict[str, Any]) -> Iterator[str]:
    severity, kind = escape(each["severity"]), escape(each["kind"])
    yield f'<article id="finding-{number}" data-severity="{severity}" data-kind="{kind}"'
    yield f' data-file="{escape(each["file"])}">'
    yield f"<h4>{spans(each['message'])}</h4>"
    line = f'<a href="#finding-{number}">line {each["line"]}</a> · ' if each["line"] else ""
    yield f'<p class="tags">{line}{kind} · {escape(each["rule"])}</p>'
    if each["excerpt"]:
        yield _excerpt(each)
    yield f'<p class="advice">{spans(each["advice"])}</p>\n</article>'


def _excerpt(each: dict[str, Any]) -> str:
    lines = dedent(each["excerpt"]).split("\n")
    width = len(str(each["line"] + len(lines) - 1))
    rows = (
        f'<span class="row"><span class="number" data-line="{number:>{width}}"></span>'
        f"<span>{escape(line)}\n</span></span>"
        for number, line in enumerate(lines, start=each["line"])
    )
    return f"<pre><code>{''.join(rows)}</code></pre>"


def spans(text: str) -> str:
    """Prose with its code spans, escaped."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _skipped(review: Review) -> Iterator[str]:
    if review.skipped:
        count = len(review.skipped)
        words = "1 file was" if count == 1 else f"{count} files were"
        yield f"<details><summary>{words} left out</summary><ul>"
        for each in review.skipped:
            yield f"<li><code>{escape(each['file'])}</code>: {escape(each['why'])}</li>"
        yield "</ul></details>"
