"""Bisect finds the first snapshot where a condition holds, and refuses what is no condition."""

import pytest

from orchestra.errors import BadExpression
from orchestra.history.search import bisect_where, condition, first_where
from tests.unit.story import RUN, Story, story


async def _told(told: Story) -> dict[str, int]:
    done = await told.task("one", {"score": 7})
    decided = await told.decided("Spawn another specialist")
    found = [await told.found({"n": number}) for number in range(50)]
    return {"done": done, "decided": decided, "last": found[-1]}


@pytest.mark.anyio
async def test_first_and_bisect_agree_where_the_condition_stays_true() -> None:
    async with story() as told:
        at = await _told(told)
        expected = {
            "tasks|length == 1": at["done"] - 2,
            'tasks.one.status == "completed"': at["done"],
            "tasks.one.result.score > 6": at["done"],
            "decisions|length > 0": at["decided"],
            "context.findings|length >= 50": at["last"],
            'cursor.phase == "find"': 1,
            "generation == 0": 0,
            "metrics.tokens_in > 5": None,
            "confidence.overall < 0.9": at["done"],
            "confidence.overall is defined": at["done"],
            'failure.error == "ValueError"': None,
            "tasks.nobody.result.score == 1": None,
            "status.__class__.__mro__|length > 0": None,
        }
        for text, seq in expected.items():
            wanted = condition(text)
            for search in (first_where, bisect_where):
                row = search(told.archive, RUN, wanted)
                assert (row.seq if row else None) == seq, (text, search)


@pytest.mark.anyio
async def test_what_has_no_order_is_told_with_its_snapshot() -> None:
    """Before, a text was more than any number, and the first snapshot with one was what was looked for."""
    async with story() as told:
        at = await _told(told)
        wanted = condition("tasks.one.status > 5")
        for search, seq in ((first_where, at["done"] - 2), (bisect_where, at["last"] // 2 + 1)):
            with pytest.raises(BadExpression, match=f"compares a text with a number, at snapshot {seq}"):
                search(told.archive, RUN, wanted)


@pytest.mark.anyio
async def test_first_finds_what_holds_only_for_a_while() -> None:
    async with story() as told:
        at = await _told(told)
        row = first_where(told.archive, RUN, condition('tasks.one.status == "running"'))
        assert row is not None
        assert row.seq == at["done"] - 1


@pytest.mark.anyio
async def test_defaults_count_as_values() -> None:
    async with story() as told:
        at = await _told(told)
        row = first_where(told.archive, RUN, condition('tasks.one.status == "pending"'))
        assert row is not None
        assert row.seq == at["done"] - 2


@pytest.mark.anyio
async def test_progress_is_told() -> None:
    async with story() as told:
        await _told(told)
        seen: list[tuple[int, int]] = []
        first_where(
            told.archive, RUN, condition("generation > 5"), progress=lambda at, of: seen.append((at, of))
        )
        assert [at for at, _ in seen] == list(range(told.active.seq + 1))
        assert {of for _, of in seen} == {told.active.seq}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour == 3", "it names 'colour'"),
        ("status ==", "syntax error"),
        ("", "cannot be used"),
        ("status }} {{ run", "syntax error"),
    ],
)
def test_what_is_no_condition_is_refused_before_anything_is_read(text: str, said: str) -> None:
    with pytest.raises(BadExpression, match=said):
        condition(text)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("status", "gives str, not true or false"),
        ("1 // 0 == 1", "cannot be used"),
        ("range(100000000)|length > 5", "cannot be used"),
    ],
)
async def test_what_says_neither_yes_nor_no(text: str, said: str) -> None:
    async with story() as told:
        with pytest.raises(BadExpression, match=said):
            first_where(told.archive, RUN, condition(text))
