"""Report: the findings as pages to read, in Markdown and as one self-contained HTML file."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any

from _finding import SEVERITIES, Finding, order
from _specialist import root_of
from minijinja import Environment, Markup

from orchestra import Result

LOOKED_FOR = {
    "security": "Calls that run data as code, trust what must not be trusted, or give secrets away.",
    "structure": "What grew too large or tangled, code nobody uses, mistakes that Python accepts.",
    "tests": "Modules that no test reaches, tests that cannot fail, tests that never run.",
    "docs": "Public parts without a word about them, and words that are not true any more.",
    "dependencies": "Packages that are imported and not declared, declared and not used, or cannot be had.",
}
OF_MODELS = {"models": "What language models noticed, where the lines that they quote were found."}
_HERE = Path(__file__).parent
_SPECIAL = re.compile(r"([\\*{}\[\]<>#|]|(?<!\w)_|_(?!\w))")


def agent(ctx: Any) -> Result:
    """Write `report.md` and `report.html`."""
    survey = ctx.context.get("survey") or {"files": [], "skipped": []}
    found = list(unique(sorted(flat(ctx.context.get("findings") or ()), key=order)))
    known = summary(
        found, root_of(ctx).name, len(survey["files"]), [dict(each) for each in survey["skipped"]]
    )
    ctx.write("report.md", page("report.md", known))
    ctx.save({"written": ["report.md"]}, progress=0.5, step="report.md")
    ctx.write("report.html", page("report.html", known))
    ctx.emit(known["headline"] + "\n")
    return Result(output={"findings": len(found), **known["by_severity"]}, confidence=1.0)


def flat(findings: Any) -> Iterator[Finding]:
    """Findings from lists in lists: each specialist adds a list of its own."""
    if isinstance(findings, Mapping):
        yield dict(findings)
    elif isinstance(findings, Iterable) and not isinstance(findings, str):
        for each in findings:
            yield from flat(each)


def unique(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Each finding once: a revised list repeats what an earlier one said."""
    seen: set[tuple[Any, ...]] = set()
    for each in findings:
        key = (each["rule"], each["file"], each["line"], each["message"])
        if key not in seen:
            seen.add(key)
            yield each


def summary(
    findings: list[Finding], project: str, files: int, skipped: list[dict[str, str]]
) -> dict[str, Any]:
    """All that the pages speak of."""
    numbered = [{**each, "number": number} for number, each in enumerate(findings, start=1)]
    by_severity = _counted("severity", findings, SEVERITIES)
    by_kind = {
        kind: count for kind, count in _counted("kind", findings, LOOKED_FOR | OF_MODELS).items() if count
    }
    of_kind = {kind: [each for each in findings if each["kind"] == kind] for kind in by_kind}
    kinds = {kind: _counted("severity", found, SEVERITIES) for kind, found in of_kind.items()}
    first = {each["file"]: each["number"] for each in reversed(numbered)}
    counted = Counter(each["file"] for each in findings).most_common(5)
    by = groupby(numbered, lambda each: each["severity"])
    total = f"{_count(len(findings), 'finding')} in {_count(files, 'Python file')}"
    severities = ", ".join(f"{count} {severity}" for severity, count in by_severity.items() if count)
    nothing = f"Nothing was found in the {files:,} Python files that were looked at."
    return {
        "project": project,
        "findings": findings,
        "skipped": skipped,
        "total": f"{total}.",
        "headline": f"{total}: {severities}." if findings else nothing,
        "by_severity": by_severity,
        "by_kind": by_kind,
        "kinds": kinds,
        "busiest": [(file, count, first[file]) for file, count in counted],
        "groups": [(severity, by_severity[severity], _by_file(group)) for severity, group in by],
    }


def _by_file(group: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    return [(file, list(found)) for file, found in groupby(group, lambda each: each["file"])]


def _counted(key: str, findings: list[Finding], values: Iterable[str]) -> dict[str, int]:
    counts = Counter(each[key] for each in findings)
    return {value: counts[value] for value in values}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def page(name: str, known: dict[str, Any]) -> str:
    """A page from its template."""
    template = (_HERE / f"{name}.jinja").read_text(encoding="utf-8")
    environment = Environment(templates={name: template}, trim_blocks=True, lstrip_blocks=True)
    for each in (in_html, in_markdown, plain, code, place, fenced, rows):
        environment.add_filter(each.__name__, each)
    style, script = ((_HERE / f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return (
        environment.render_template(name, **known, looked_for=LOOKED_FOR, style=style, script=script) + "\n"
    )


# What the templates ask for.


def in_html(text: str) -> Markup:
    """Prose with its code spans, escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))


def rows(each: Finding) -> list[tuple[str, str]]:
    """The lines of an excerpt from its margin on, with their numbers."""
    lines = dedent(each["excerpt"]).split("\n")
    width = len(str(each["line"] + len(lines) - 1))
    return [(f"{number:>{width}}", line) for number, line in enumerate(lines, start=each["line"])]


def in_markdown(text: str) -> str:
    """Prose in which the code spans stay and everything else is plain."""
    parts = text.replace("\n", " ").split("`")
    if len(parts) % 2 == 0:  # a lone backtick
        return plain(text)
    return "".join(code(part) if number % 2 else plain(part) for number, part in enumerate(parts))


def plain(text: str) -> str:
    """Text in which nothing means anything."""
    return _SPECIAL.sub(r"\\\1", text)


def code(text: str) -> str:
    """A code span, whatever the text holds."""
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("\n", " ")


def place(each: Finding) -> str:
    """Where a finding stands."""
    return code(each["file"] + (f":{each['line']}" if each["line"] else ""))


def fenced(each: Finding) -> str:
    """An excerpt with line numbers, in a fence longer than any in it."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", each["excerpt"])), 0)
    language = "python" if each["file"].endswith(".py") else "text"
    lines = enumerate(each["excerpt"].split("\n"), start=each["line"])
    return "\n".join([f"{fence}{language}", *(f"{number:>5}  {line}" for number, line in lines), fence])
