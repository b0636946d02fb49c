"""Orders that are left in the store for whoever plays a run."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.engine.orders import Order
from orchestra.errors import BadOrder
from orchestra.ids import Instant, RunId
from orchestra.ports.store import Claim
from orchestra.stores.memory import MemoryStore
from tests.unit.engine.support import Theatre, does, flow, nothing, phase

pytestmark = pytest.mark.anyio
RUN = RunId("run")
CANCEL = Order(kind="cancel")


class Shared(MemoryStore):
    """A store in which another process holds the claim on the run, and can be lost at a bad moment."""

    def __init__(self) -> None:
        super().__init__()
        self.held: Claim | None = None
        self.dies = self.hurries = False

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        command = super().send(run, body, at)
        if self.dies and self.held is not None:
            self.release(self.held)
        return command

    def withdraw(self, run: RunId, command: int) -> bool:
        return super().withdraw(run, command) and not self.hurries


@pytest.fixture
async def theatre(tmp_path: Path) -> Theatre:
    """A run at a breakpoint, owned by a process that takes nothing in."""
    store = Shared()
    theatre = Theatre(tmp_path, store)
    await theatre.run(flow(phase("work", does("a"), breakpoint=True)), {"a": nothing})
    store.held = store.claim(RUN, "another process")
    return theatre


class Crowded(MemoryStore):
    """A store in which somebody else always sends the same a moment before."""

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        super().send(run, body, at)
        return super().send(run, body, at)


async def test_who_answers_second_hears_that_the_answer_was_refused(tmp_path: Path) -> None:
    """When the order was sent the question was open, and when it arrived somebody had answered."""
    theatre, release, found = Theatre(tmp_path, Crowded()), anyio.Event(), list[str]()

    async def asks(ctx: Any) -> None:
        await ctx.ask("Which?")
        await release.wait()

    async with theatre.house({"a": asks}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append((await house.run(flow(phase("work", does("a"))), run="run", wait=True)).kind)

        group.start_soon(play)
        await theatre.until_waiting()
        async with theatre.house() as other:
            with pytest.raises(BadOrder, match="answer cannot be done: no open question fits"):
                await other.order("run", Order(kind="answer", value="this"), patience=20)
        release.set()
    assert found == ["completed"]


async def test_an_order_that_nobody_took_in_is_not_done_later(theatre: Theatre) -> None:
    store = theatre.store
    assert isinstance(store, Shared)
    assert store.held is not None
    async with theatre.house({"a": nothing}) as house:
        with pytest.raises(BadOrder, match="did not take it in within 0 s"):
            await house.order("run", CANCEL, patience=0)
        assert store.commands(RUN) == []
        store.release(store.held)
        assert (await house.resume("run")).kind == "completed"


async def test_an_order_that_was_taken_in_at_the_last_moment_is_done(theatre: Theatre) -> None:
    assert isinstance(theatre.store, Shared)
    theatre.store.hurries = True
    async with theatre.house() as house:
        await house.order("run", CANCEL, patience=0)


async def test_an_order_for_a_process_that_dies_meanwhile_is_done_here(theatre: Theatre) -> None:
    """Nobody waits for one that is gone, and what was left for it is not found by the next."""
    assert isinstance(theatre.store, Shared)
    theatre.store.dies = True
    async with theatre.house() as house:
        await house.order("run", CANCEL, patience=20)
        assert (await house.manager.look(RUN)).state.status == "cancelled"
    assert theatre.store.commands(RUN) == []


async def test_an_order_that_is_taken_back_while_it_waits_in_the_process_is_not_done(tmp_path: Path) -> None:
    """Whoever plays the run knew of it, and was busy stopping an agent when patience ran out."""
    theatre, stopping, release = Theatre(tmp_path), anyio.Event(), anyio.Event()

    async def stubborn(ctx: Any) -> None:
        try:
            await anyio.sleep(0 if release.is_set() else 60)
        finally:
            stopping.set()
            with anyio.CancelScope(shield=True):
                await release.wait()

    found = list[str]()
    async with theatre.house({"a": stubborn}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append((await house.run(flow(phase("work", does("a"))), run="run")).kind)

        group.start_soon(play)
        await theatre.until(lambda turn: True)
        group.start_soon(house.order, "run", Order(kind="rollback", target="0"))
        await stopping.wait()
        async with theatre.house() as other:
            with pytest.raises(BadOrder, match="did not take it in"):
                await other.order("run", CANCEL, patience=1.5)
        release.set()
    assert found == ["completed"]
