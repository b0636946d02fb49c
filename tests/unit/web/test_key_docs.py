"""The page about keys is complete: every command of the page's table is on it, and nothing else."""

import re

from orchestra.web.bundle.script import page_text
from tests.unit.cli.project import ROOT

PAGE = ROOT / "docs/reference/browser-keys.md"


def _commands() -> list[tuple[list[str], str]]:
    table = page_text("keys.js").split("export const COMMANDS = [", 1)[1].split("\n];", 1)[0]
    found = re.findall(r'keys: \[([^\]]*(?:"\]")?[^\]]*)\],.*?title: "([^"]+)"', table, re.DOTALL)
    return [(re.findall(r'"([^"]+)"', keys), title) for keys, title in found]


def test_every_command_is_on_the_page() -> None:
    said = PAGE.read_text(encoding="utf-8").lower()
    commands = _commands()
    assert len(commands) > 30
    assert [title for _, title in commands if title.lower() not in said.replace("\n", " ")] == []


def test_every_single_letter_is_on_the_page() -> None:
    said = PAGE.read_text(encoding="utf-8")
    letters = [key for keys, _ in _commands() for key in keys if len(key) == 1]
    assert [key for key in letters if f"`{key}`" not in said] == []
