"""The snapshots of messages are found, through rollbacks and when clocks go wrong."""

import pytest

from orchestra.history.conversation import message_rows, messages_at
from orchestra.history.references import resolve
from orchestra.ids import Instant
from orchestra.model import events as ev
from tests.unit.story import RUN, Story, story

pytestmark = pytest.mark.anyio


async def _say(told: Story, name: str, at: int) -> int:
    return await told.turn(ev.MessagePosted(at=Instant(at), message=name, role="user"))


def _found(told: Story) -> dict[str, int]:
    row = resolve(told.archive, RUN)
    return {
        name: at.seq for name, at in message_rows(told.archive, row, messages_at(told.archive, row)).items()
    }


@pytest.mark.parametrize("times", [(10, 20, 30), (30, 20, 10), (10, 10, 10)], ids=str)
async def test_messages_are_found_whatever_the_clock_says(times: tuple[int, int, int]) -> None:
    async with story() as told:
        said = {f"m{number}": await _say(told, f"m{number}", at) for number, at in enumerate(times)}
        assert _found(told) == said


async def test_what_a_rollback_undid_is_not_meant() -> None:
    async with story() as told:
        first = await _say(told, "m0", 10)
        await _say(told, "m1", 20)
        await told.manager.rollback(told.active, first, reason="wrong")
        again = await _say(told, "m1", told.active.state.updated_at + 1)
        assert _found(told) == {"m0": first, "m1": again}
