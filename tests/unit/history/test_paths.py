"""Paths are read and written the same way, and lead where they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.history.paths import MISSING, BadPath, Inside, format_path, parse_path, walk
from tests.unit.story import story

_STEPS = st.lists(st.one_of(st.text(min_size=1), st.integers(-1000, 1000)), min_size=1).map(tuple)


@given(_STEPS)
def test_every_path_can_be_written_and_read_back(path: tuple[str | int, ...]) -> None:
    assert parse_path(format_path(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("tasks.analyse/1/structure.result", ("tasks", "analyse/1/structure", "result")),
        ("decisions[-1].rationale", ("decisions", -1, "rationale")),
        ('context["a name"][0]', ("context", "a name", 0)),
        ("", ()),
    ],
)
def test_people_write_paths_like_this(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["tasks..x", "tasks[", 'tasks["x', "tasks[1.5]", "a b", "tasks[x]", "[1]x"])
def test_what_is_no_path_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(BadPath, match="at character"):
        parse_path(text)


@pytest.mark.anyio
async def test_walking_opens_values() -> None:
    async with story() as told:
        seq = await told.task("one", {"files": ["a.py", "b.py"]})
        document, loader = told.archive.document(told.active.run, seq), told.archive.loader
        assert walk(document, ("tasks", "one", "result", "files", -1), loader) == Inside("b.py")
        assert walk(document, ("tasks", "two"), loader) is MISSING
        assert walk(document, ("tasks", "one", "result", "files", 7), loader) is MISSING
        assert walk(document, ("status", "x"), loader) is MISSING
