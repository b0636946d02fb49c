"""Orders that are left in the store for whoever plays a run."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.engine.inbox import Due, Ordered
from orchestra.engine.orders import Order, write_order
from orchestra.errors import BadOrder, OrchestraError, StoreFull
from orchestra.ids import Instant, RunId
from orchestra.limits import HEADLINE_EVENTS
from orchestra.ports.store import Claim, Commit
from orchestra.stores.memory import MemoryStore
from tests.unit.engine.support import Theatre, does, flow, kinds, nothing, phase, policy

pytestmark = pytest.mark.anyio
RUN = RunId("run")
CANCEL = Order(kind="cancel")
PATIENT = policy(grace_us=600_000_000)
"""Agents that are stopped are waited for until they are let go, however slow the machine is."""


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
                await other.order("run", Order(kind="answer", value="this"), patience=180)
        release.set()
    assert found == ["completed"]


class Watched(MemoryStore):
    """A store that tells somebody of each command, on the thread of the run."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        super().__init__()
        self._tell = tell

    def send(self, run: RunId, body: bytes, at: Instant) -> int:
        command = super().send(run, body, at)
        anyio.from_thread.run_sync(self._tell, command)
        return command


async def test_a_refusal_is_heard_however_much_happens_in_the_same_moment(tmp_path: Path) -> None:
    """A snapshot has room for so many lines, and the refusal is the first of its own."""
    answer, release, found = Order(kind="answer", value="this"), anyio.Event(), list[str]()

    def crowd(command: int) -> None:
        atlas = house._playing[RUN]
        for n in range(HEADLINE_EVENTS + 10):
            atlas.inbox.post(Due("user_requested", f"{n}"))
        atlas.inbox.post(Ordered(None, answer))
        atlas.delivered.add(command)
        atlas.inbox.post(Ordered(command, answer))

    async def asks(ctx: Any) -> None:
        await ctx.ask("Which?")
        await release.wait()

    theatre = Theatre(tmp_path, Watched(crowd))
    async with theatre.house({"a": asks}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append((await house.run(flow(phase("work", does("a"))), run="run", wait=True)).kind)

        group.start_soon(play)
        await theatre.until_waiting()
        async with theatre.house() as other:
            with pytest.raises(BadOrder, match="answer cannot be done: no open question fits"):
                await other.order("run", answer, patience=180)
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
        await house.order("run", CANCEL, patience=180)
        assert (await house.manager.look(RUN)).state.status == "cancelled"
    assert theatre.store.commands(RUN) == []


async def test_an_order_that_is_taken_back_while_it_waits_in_the_process_is_not_done(tmp_path: Path) -> None:
    """Whoever plays the run knew of it, and was busy stopping an agent when patience ran out."""
    theatre, stopping, release = Theatre(tmp_path), anyio.Event(), anyio.Event()

    async def stubborn(ctx: Any) -> None:
        try:
            if not release.is_set():
                await anyio.sleep_forever()
        finally:
            stopping.set()
            with anyio.CancelScope(shield=True):
                await release.wait()

    found = list[str]()
    async with theatre.house({"a": stubborn}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append((await house.run(flow(phase("work", does("a")), policy=PATIENT), run="run")).kind)

        group.start_soon(play)
        await theatre.until(lambda turn: True)
        group.start_soon(house.order, "run", Order(kind="rollback", target="0"))
        await stopping.wait()
        async with theatre.house() as other:
            with pytest.raises(BadOrder, match="did not take it in"):
                await other.order("run", CANCEL, patience=1.5)
        release.set()
    assert found == ["completed"]


async def test_a_rollback_is_done_before_the_patience_of_its_sender_ends(tmp_path: Path) -> None:
    """Stopping what is under way may take longer; nothing new begins until it has stopped."""
    theatre, stopping, release = Theatre(tmp_path), anyio.Event(), anyio.Event()
    attempts = list[str]()

    async def stubborn(ctx: Any) -> None:
        attempts.append("begins")
        try:
            if not release.is_set():
                await anyio.sleep_forever()
        finally:
            stopping.set()
            with anyio.CancelScope(shield=True):
                await release.wait()
            attempts.append("ends")

    found = list[Any]()
    async with theatre.house({"a": stubborn}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(flow(phase("work", does("a")), policy=PATIENT), run="run"))

        group.start_soon(play)
        await theatre.until(lambda turn: True)
        async with theatre.house() as other:
            await other.order("run", Order(kind="rollback", target="0", reason="again"), patience=180)
        assert len((await house.manager.look(RUN)).state.rollbacks) == 1
        await stopping.wait()
        assert attempts == ["begins"]
        release.set()
    assert (found[0].kind, len(found[0].state.rollbacks)) == ("completed", 1)
    assert attempts == ["begins", "ends", "begins", "ends"]


class Hasty(MemoryStore):
    """A store in which a sender takes a command back a moment before it would be consumed."""

    def __init__(self) -> None:
        super().__init__()
        self.withdrawn, self._loop = asyncio.Event(), asyncio.get_running_loop()

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        for commit in commits:
            for command in commit.consumed:
                assert self.withdraw(commit.row.run, command)
                self._loop.call_soon_threadsafe(self.withdrawn.set)
        return super().commit(commits, patient=patient)


@pytest.mark.parametrize(
    "order",
    [
        CANCEL,
        Order(kind="pause"),
        Order(kind="rollback", target="0"),
        Order(kind="rollback", target="99"),
        Order(kind="answer", value="x"),
    ],
    ids=["cancel", "pause", "rollback", "rollback to nowhere", "answer to nothing"],
)
async def test_an_order_that_is_taken_back_at_the_last_moment_is_not_done(
    tmp_path: Path, order: Order
) -> None:
    """It leaves no trace, stops nobody, and the run goes on."""
    store, release, calls = Hasty(), anyio.Event(), list[int]()
    theatre = Theatre(tmp_path, store)

    async def slow(ctx: Any) -> str:
        calls.append(ctx.attempt)
        await release.wait()
        return "done"

    found = list[Any]()
    async with theatre.house({"a": slow, "b": nothing}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            work = phase("work", does("a"), does("b", needs=["a"]))
            found.append(await house.run(flow(work), run="run"))

        group.start_soon(play)
        await theatre.until(lambda turn: True)
        before = len(theatre.events)
        store.send(RUN, write_order(order), Instant(0))
        with anyio.fail_after(180):
            await store.withdrawn.wait()
        release.set()
    assert (found[0].kind, calls) == ("completed", [1])
    assert found[0].state.metrics.elapsed_us > 0
    assert not {"run_paused", "rolled_back", "snapshot_requested"} & set(kinds(theatre.events[before:]))


class Full(MemoryStore):
    """A store with no room for what consumes a command."""

    def __init__(self) -> None:
        super().__init__()
        self.full, self.refused, self._loop = True, asyncio.Event(), asyncio.get_running_loop()

    def commit(self, commits: Sequence[Commit], *, patient: bool = True) -> list[int | OrchestraError]:
        if self.full and any(commit.consumed for commit in commits):
            self._loop.call_soon_threadsafe(self.refused.set)
            raise StoreFull(place=self.place, needed="1 kB")
        return super().commit(commits, patient=patient)


@pytest.mark.parametrize("taken_back", [True, False])
@pytest.mark.parametrize("order", [CANCEL, Order(kind="rollback", target="0")], ids=["cancel", "rollback"])
async def test_an_order_that_cannot_be_saved_is_not_done_before_it_can(
    tmp_path: Path, order: Order, taken_back: bool
) -> None:
    """A run that goes on without saving does not do what its sender could still take back."""
    store, release = Full(), anyio.Event()
    theatre = Theatre(tmp_path, store)

    async def slow(ctx: Any) -> None:
        await release.wait()

    found = list[Any]()
    settings = CheckpointSettings(on_save_error="continue")
    async with theatre.house({"a": slow}, settings=settings) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(flow(phase("work", does("a"))), run="run"))

        group.start_soon(play)
        await theatre.until(lambda turn: True)
        command = store.send(RUN, write_order(order), Instant(0))
        with anyio.fail_after(180):
            await store.refused.wait()
            assert not taken_back or store.withdraw(RUN, command)
            store.full = False
            if not taken_back:
                await theatre.until(lambda turn: not store.commands(RUN))
        release.set()
    done = found[0].kind == "cancelled" or len(found[0].state.rollbacks) == 1
    assert done != taken_back
    assert store.commands(RUN) == []
