"""Time limits with one timer for all: who is late is called, who ended is not."""

import anyio
import pytest

from orchestra.engine.agents.attempts import Deadlines
from orchestra.engine.inbox import Inbox
from orchestra.engine.settings import EngineSettings
from orchestra.engine.stage import Slots
from tests.unit.engine.support import Theatre, does, flow, phase

pytestmark = pytest.mark.anyio


async def test_only_those_who_are_late_are_called() -> None:
    deadlines, called, last = Deadlines(), list[str](), anyio.Event()

    def early() -> None:
        called.append("early")

    def ended() -> None:
        called.append("ended")

    deadlines.set(ended, 0.001)
    deadlines.set(last.set, 0.02)
    deadlines.set(early, 0.002)
    assert deadlines.clear(ended) is not None
    with anyio.fail_after(180):
        await last.wait()
    assert called == ["early"]
    assert deadlines.clear(early) is None


async def test_what_is_left_goes_on_later() -> None:
    deadlines, rung = Deadlines(), anyio.Event()
    deadlines.set(rung.set, 60.0)
    left = deadlines.clear(rung.set)
    assert left is not None
    assert 0 < left <= 60.0
    deadlines.set(rung.set, 0.0)
    with anyio.fail_after(180):
        await rung.wait()


async def test_nobody_is_called_after_the_end() -> None:
    deadlines, called, later = Deadlines(), list[str](), anyio.Event()
    deadlines.set(lambda: called.append("late"), 0.0)
    deadlines.close()
    anyio.lowlevel.current_token().native_token.call_later(0.005, later.set)  # type: ignore[attr-defined]
    await later.wait()
    assert not called


async def test_an_alarm_that_stays_set_wakes_at_the_latest_when_it_should() -> None:
    inbox = Inbox()
    inbox.wake()
    await inbox.wait(60.0)
    inbox.take()
    with anyio.fail_after(180):
        await inbox.wait(0.01)
        inbox.take()
        await inbox.wait(0.01)
    inbox.close()


def test_a_slot_is_given_back_by_whoever_is_called() -> None:
    slots, order = Slots(2), list[int]()
    for number in range(4):
        slots.ask(lambda number=number: order.append(number))  # type: ignore[misc]
    assert order == [0, 1]
    slots.give()
    assert order == [0, 1, 2]


async def test_who_waits_for_a_place_can_be_stopped(theatre: Theatre) -> None:
    """One works, the other never begins: draining ends both."""
    began = anyio.Event()
    starts = list[str]()

    async def hangs(ctx: object) -> None:
        starts.append("hangs")
        began.set()
        await anyio.sleep_forever()

    work = flow(phase("work", does("a"), does("b")))
    kinds = list[str]()
    async with theatre.house({"a": hangs, "b": hangs}, engine=EngineSettings(process_concurrency=1)) as house:

        async def play() -> None:
            kinds.append((await house.run(work, run="run")).kind)

        async with anyio.create_task_group() as group:
            group.start_soon(play)
            await began.wait()
            house.drain()
    assert kinds == ["interrupted"]
    assert starts == ["hangs"]
