"""The report: complete, in order, and safe to open whatever the project holds."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.unit.shipped_agents.review import PLANTED, Said, load, results, surveyed

EVIL = "<script>alert('x')</script>"
HOSTILE: dict[str, Any] = {
    "rule": "dangerous-eval",
    "severity": "high",
    "kind": "security",
    "file": f"{EVIL}.py",
    "line": 3,
    "message": f"It says `{EVIL}` & *more* | [x](y).",
    "advice": EVIL,
    "excerpt": f"x = '{EVIL}'\n```\n</code></pre>",
}


def written(findings: Any, folder: Path = PLANTED / "project") -> dict[str, str]:
    said = surveyed(folder)
    said.context["findings"] = findings
    load("mercury/report").agent(said)
    return said.written


class Page(HTMLParser):
    """Notes tags, and what could reach outside."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "input"):
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "action") and not (value or "").startswith("#"):
                self.outside.append(f"{name}={value}")
            if name.startswith("on"):
                self.outside.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_both_pages_tell_all() -> None:
    found = [list(each) for each in results(PLANTED / "project").values()]
    pages = written(found)
    count = sum(len(each) for each in found)
    assert pages["report.md"].count("\n### ") == count
    assert Page(pages["report.html"]).tags.count("article") == count
    for each in (one for group in found for one in group):
        assert each["rule"] in pages["report.md"]
    assert f"{count} findings in 10 Python files" in pages["report.html"]


def test_the_worst_comes_first() -> None:
    page = written(list(results(PLANTED / "project").values()))["report.html"]
    severities = re.findall(r'data-severity="(\w+)"', page)
    assert severities == sorted(severities, key=["high", "medium", "low"].index)


def test_nothing_of_the_project_becomes_markup() -> None:
    pages = written([HOSTILE])
    page = Page(pages["report.html"])
    assert page.tags.count("script") == 1
    assert page.outside == []
    assert page.open == []
    assert EVIL not in pages["report.html"]
    fence = re.search(r"^(`{4,})python$", pages["report.md"], re.MULTILINE)
    assert fence is not None
    assert "\\<script\\>" in pages["report.md"]
    assert "\\[x\\](y)" in pages["report.md"]


def test_the_page_asks_no_network() -> None:
    page = written([HOSTILE])["report.html"]
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    assert "default-src 'none'" in page


def test_a_finding_is_told_once() -> None:
    assert written([[HOSTILE], [dict(HOSTILE)]])["report.md"].count("\n### ") == 1


def test_nothing_found_is_said_with_what_was_looked_for() -> None:
    pages = written([])
    for page in pages.values():
        assert "Nothing was found in the 10 Python files" in page
        assert "tests that cannot fail" in page
    assert Page(pages["report.html"]).open == []


def test_findings_of_a_file_stand_together_under_their_severity() -> None:
    """Each with what is the matter as its title; files with many lead to their first."""
    page = written(list(results(PLANTED / "project").values()))["report.html"]
    assert re.findall(r"<h2>(\w+) <small>", page) == ["High", "Medium", "Low"]
    for section in page.split("<h2>")[1:]:
        files = re.findall(r"<h3>(.*?)</h3>", section)
        assert len(files) == len(set(files))
    links = re.findall(r'<th scope="row"><a href="#(finding-\d+)"><code>(.*?)</code>', page)
    assert links
    for name, file in links:
        first = page.index(f'data-file="{file}"')
        assert page.rindex("<article", 0, first) == page.index(f'<article id="{name}"')


def test_the_project_as_a_whole_has_a_name() -> None:
    page = written([{**HOSTILE, "file": ".", "line": 0, "excerpt": ""}])["report.html"]
    assert "<h3>the project as a whole</h3>" in page
    assert "line 0" not in page


def test_an_excerpt_begins_at_its_margin() -> None:
    page = written([{**HOSTILE, "line": 9, "excerpt": "        if x:\n            pass"}])["report.html"]
    assert "<span>if x:\n</span>" in page
    assert "<span>    pass\n</span>" in page
    assert re.findall(r'data-line="([ \d]+)"', page) == [" 9", "10"]


def test_what_was_left_out_is_told(tmp_path: Path) -> None:
    said = Said(
        project=tmp_path, context={"survey": {"files": [], "skipped": [{"file": "a.py", "why": "a link"}]}}
    )
    load("mercury/report").agent(said)
    assert "`a.py`: a link" in said.written["report.md"]
    assert "1 files were left out" not in said.written["report.html"]
    assert "1 file was left out" in said.written["report.html"]
