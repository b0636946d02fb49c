"""The page's files: small, put together whole, light, and without anything that runs text."""

import gzip
import re
from pathlib import Path

import pytest

from orchestra.web.bundle.script import PAGE_FOLDER, SHEETS, modules, page_text
from orchestra.web.routes.page import JOINED, page_file

LINES = 400
WEIGHT = 200_000
FILES = sorted(path for path in PAGE_FOLDER.iterdir() if path.suffix in (".js", ".css", ".html"))
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\s*[\"'`]|https?://(?!www\.w3\.org/2000/svg)"
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_read_in_one_go(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINES


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_turns_text_into_code_or_calls_out(path: Path) -> None:
    found = [line for line in path.read_text().splitlines() if FORBIDDEN.search(line)]
    assert not found


def test_the_page_in_one_piece_holds_every_module_and_sheet() -> None:
    script, sheet = (page_file(PAGE_FOLDER, name).content.decode() for name in JOINED)
    for name in modules("main.js", page_text):
        assert page_text(name).splitlines()[-1] in script, name
    assert all(page_text(path.name) in sheet for path in FILES if path.suffix == ".css")
    assert sorted(SHEETS) == sorted(path.name for path in FILES if path.suffix == ".css")


def test_every_script_is_used() -> None:
    entries = ("main.js", "bundled.js")
    used = {name for entry in entries for name in modules(entry, page_text)} | {"theme.js", "early.js"}
    assert {path.name for path in SCRIPTS} == used


def test_the_page_is_light() -> None:
    assert sum(len(gzip.compress(path.read_bytes())) for path in FILES) < WEIGHT
