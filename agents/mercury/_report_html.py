"""The report as one HTML file.

It asks no network, follows the reader's light or dark setting, prints, and works without its script, which
only filters. Everything that comes from the project is escaped.
"""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from _report_summary import Review

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
    yield f"<header>\n<h1>{title}</h1>\n<p>{escape(review.headline)}</p>\n</header>\n<main>"
    if review.findings:
        yield from _figures(review)
        yield from _filters(review)
    yield '<section id="findings" aria-label="Findings">'
    for each in review.findings:
        yield from _finding(each)
    yield "</section>"
    yield from _skipped(review)
    yield f"</main>\n<script>\n{script}</script>\n</body>\n</html>"


def _figures(review: Review) -> Iterator[str]:
    yield '<section aria-label="Figures"><ul class="figures">'
    for severity, count in review.by_severity.items():
        yield f'<li class="{severity}"><strong>{count}</strong> {severity}</li>'
    yield f"<li><strong>{review.files:,}</strong> files</li></ul>"
    yield "<table><caption>Where the most is found</caption>"
    yield '<thead><tr><th scope="col">File</th><th scope="col">Findings</th></tr></thead><tbody>'
    for name, count in review.busiest:
        yield f'<tr><th scope="row"><code>{escape(name)}</code></th><td>{count}</td></tr>'
    yield "</tbody></table></section>"


def _filters(review: Review) -> Iterator[str]:
    yield '<form id="filters" hidden aria-label="Filter the findings">'
    yield from _choices("severity", review.by_severity)
    yield from _choices("kind", review.by_kind)
    yield '<label class="words">Containing <input type="search" name="words" autocomplete="off"></label>'
    yield '<output name="shown" aria-live="polite"></output></form>'


def _choices(name: str, counts: dict[str, int]) -> Iterator[str]:
    yield f"<fieldset><legend>{name.capitalize()}</legend>"
    for value, count in counts.items():
        if count:
            box = f'<input type="checkbox" name="{name}" value="{value}" checked>'
            yield f"<label>{box} {value} <small>{count}</small></label>"
    yield "</fieldset>"


def _finding(each: dict[str, Any]) -> Iterator[str]:
    place = each["file"] + (f":{each['line']}" if each["line"] else "")
    severity, kind = escape(each["severity"]), escape(each["kind"])
    yield f'<article class="{severity}" data-severity="{severity}" data-kind="{kind}">'
    yield f"<h2><code>{escape(place)}</code></h2>"
    yield f'<p class="tags"><span class="severity">{severity}</span> {kind} · {escape(each["rule"])}</p>'
    yield f"<p>{spans(each['message'])}</p>"
    if each["excerpt"]:
        yield _excerpt(each)
    yield f'<p class="advice">{spans(each["advice"])}</p>\n</article>'


def _excerpt(each: dict[str, Any]) -> str:
    lines = enumerate(each["excerpt"].split("\n"), start=each["line"])
    rows = (
        f'<span class="row"><span class="number">{number}</span>{escape(line)}\n</span>'
        for number, line in lines
    )
    return f'<pre tabindex="0"><code>{"".join(rows)}</code></pre>'


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
