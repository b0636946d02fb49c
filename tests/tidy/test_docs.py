"""The docs name everything a user can meet, and nothing they name is missing.

A name counts as documented when a page has it in a code span, a code block or a heading; prose does not
count, or every setting called `on` would be documented by accident.
"""

import importlib
import inspect
import re
from pathlib import Path

import attrs
import pytest

from tests.tidy.project import DOCS, ROOT, markdown_files, mentions, name_of, named_in

REFERENCE = DOCS / "reference"
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def _missing(page: Path, names: list[str]) -> list[str]:
    assert names, f"nothing to look for in {name_of(page)}: has its source moved?"
    named = named_in(page.read_text(encoding="utf-8"))
    return [name for name in names if not mentions(named, name)]


def _load(module: str, name: str) -> object:
    return getattr(importlib.import_module(module), name)


def _strings(module: str, name: str) -> list[str]:
    values = _load(module, name)
    assert isinstance(values, tuple)
    return [str(value) for value in values]


@pytest.mark.parametrize("name", ["CheckpointSettings", "RetentionSettings"])
def test_every_setting_is_documented(name: str) -> None:
    settings = _load("orchestra.checkpoint.settings", name)
    assert isinstance(settings, type)
    assert attrs.has(settings)
    keys = [field.name for field in attrs.fields(settings)]
    assert _missing(REFERENCE / "settings.md", keys) == []


def test_every_resolved_setting_is_documented() -> None:
    setting_names = _load("orchestra.config.settings.resolve", "setting_names")
    assert callable(setting_names)
    names: list[str] = [name.rpartition(".")[2] for name in setting_names()]
    assert _missing(REFERENCE / "settings.md", names) == []


def test_every_key_of_a_workflow_file_is_documented() -> None:
    schema = _load("orchestra.app.workflow_files", "workflow_schema")
    assert callable(schema)
    made = schema()
    models = [
        made,
        *(each for name, each in made["$defs"].items() if name not in ("Checkpoint", "Retention")),
    ]
    keys = [key for each in models for key in each.get("properties", {})]
    assert _missing(REFERENCE / "workflow.md", keys) == []


def test_every_event_kind_is_documented() -> None:
    assert _missing(REFERENCE / "events.md", _strings("orchestra.model.events", "EVENT_KINDS")) == []


def test_every_trigger_is_documented() -> None:
    assert _missing(REFERENCE / "triggers.md", _strings("orchestra.model.snapshot", "TRIGGERS")) == []


def test_every_error_is_documented() -> None:
    errors = importlib.import_module("orchestra.errors")
    names = [
        name
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, Exception) and value.__module__ == errors.__name__ and not name.startswith("_")
    ]
    assert _missing(REFERENCE / "errors.md", names) == []


def test_every_command_is_documented() -> None:
    commands = _load("orchestra.cli.catalog", "COMMANDS")
    assert isinstance(commands, tuple)
    names = [command.name for command in commands if not command.hidden]
    assert names
    pages = "\n".join(named_in(path.read_text(encoding="utf-8")) for path in sorted(DOCS.rglob("*.md")))
    assert [name for name in names if not mentions(pages, f"orchestra {name}")] == []


def _targets(path: Path) -> list[Path]:
    links = [match["target"] for match in _LINK.finditer(path.read_text(encoding="utf-8"))]
    local = (link.partition("#")[0] for link in links if "://" not in link)
    return [(path.parent / link).resolve() for link in local if link]


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{name_of(path)} -> {target}"
        for path in markdown_files()
        for target in _targets(path)
        if not target.exists()
    ]
    assert not broken, "\n".join(broken)


def test_every_page_can_be_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting.extend(_targets(page))
    assert [name_of(path) for path in sorted(DOCS.rglob("*.md")) if path not in reached] == []


def test_the_readme_leads_to_the_docs() -> None:
    assert DOCS / "README.md" in _targets(ROOT / "README.md")


def test_prose_does_not_count_as_documentation() -> None:
    page = "# Settings\n\nTurned on here.\n\n## keep\n\nUse `every` so:\n\n```yaml\ninterval: 3\n```\n"
    named = named_in(page)
    assert mentions(named, "every")
    assert mentions(named, "keep")
    assert mentions(named, "interval")
    assert not mentions(named, "on")
    assert not mentions("phase_started", "phase_start")


def test_where_modules_went_is_where_they_are() -> None:
    table = (DOCS / "decisions" / "0020-rooms.md").read_text(encoding="utf-8")
    places = re.findall(r"^\| `[^`]+` \| `(?P<place>[^`]+)` \|$", table, re.MULTILINE)
    assert len(places) > 200
    assert [each for each in places if not (ROOT / "orchestra" / f"{each}.py").is_file()] == []
