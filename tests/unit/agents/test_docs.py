"""The pages about agents name everything there is."""

import re

import attrs
import pytest

from orchestra.agents.context import Context
from orchestra.agents.reports import FIELDS, REPORTS
from orchestra.ports.agent import Assignment
from tests.tidy.project import DOCS, mentions, named_in

REFERENCE = DOCS / "reference"


def _named(page: str) -> str:
    return named_in((REFERENCE / page).read_text(encoding="utf-8"))


def test_every_name_of_the_context_is_documented() -> None:
    named = _named("agents.md")
    names = [f"ctx.{name}" for name in dir(Context) if not name.startswith("_")]
    assert len(names) > 30
    assert [name for name in names if not re.search(rf"{re.escape(name)}\b", named)] == []


@pytest.mark.parametrize("cls", FIELDS, ids=lambda cls: cls.__name__)
def test_every_field_of_the_protocol_is_documented(cls: type) -> None:
    named = _named("json-lines.md")
    assert [name for name in FIELDS[cls] if not mentions(named, name)] == []


def test_every_message_and_field_of_an_assignment_is_documented() -> None:
    named = _named("json-lines.md")
    names = [*REPORTS, *(field.name for field in attrs.fields(Assignment)), "on_save", "answer", "error"]
    assert [name for name in names if not mentions(named, name)] == []
