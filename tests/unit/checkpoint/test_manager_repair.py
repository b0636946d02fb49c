"""What the manager does about bad turns and damaged rows: nothing leaks, is stuck or is used twice."""

import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.codec.values import contribution
from orchestra.errors import ContentTooLarge, Damaged, IllegalEvent
from orchestra.ids import Instant, PhaseId, RunId
from orchestra.limits import NODE_BYTES, TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.state import WorkflowRef
from orchestra.ports.store import Row, RowQuery
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock
from tests.unit.story import FIND, RUN, story

pytestmark = pytest.mark.anyio
AT = Instant(7)


async def test_a_bad_first_turn_leaves_no_claim_behind() -> None:
    started = ev.RunStarted(at=AT, run=RunId("r"), workflow=WorkflowRef(name="w"))
    with MemoryStore() as store:
        async with CheckpointManager(store, clock=FakeClock(), owner="test") as manager:
            with pytest.raises(IllegalEvent):
                await manager.begin(started, ev.PhaseCompleted(at=AT, phase=PhaseId("never")))
            assert (await manager.begin(started)).seq == 0


async def test_a_bad_fork_leaves_no_claim_behind() -> None:
    async with story() as told:
        bad = ev.PhaseCompleted(at=AT, phase=PhaseId("never"))
        with pytest.raises(IllegalEvent):
            await told.manager.fork(RUN, 1, RunId("other"), more=[bad])
        assert (await told.manager.fork(RUN, 1, RunId("other"))).seq == 0


async def test_a_text_that_grows_too_long_is_refused_and_the_run_goes_on() -> None:
    async with story() as told:
        await told.turn(ev.MessagePosted(at=AT, message="m", role="assistant", status="streaming"))
        half = "x" * (TEXT_CHARS // 2)
        await told.turn(ev.MessageStreamed(at=AT, message="m", text=half))
        with pytest.raises(IllegalEvent, match="the limit is 200,000"):
            await told.turn(ev.MessageStreamed(at=AT, message="m", text=half + "y"))
        assert await told.turn(ev.MessageStreamed(at=AT, message="m", text=half, status="complete")) == 4


async def test_every_leaf_of_long_texts_can_be_read_again() -> None:
    async with story() as told:
        for number in range(40):
            post = ev.MessagePosted(at=AT, message=f"m{number}", role="assistant", status="streaming")
            await told.turn(post, ev.MessageStreamed(at=AT, message=f"m{number}", text="ä" * TEXT_CHARS))
        fresh = CheckpointManager(told.archive.store, clock=told.clock, owner="reader")
        assert (await fresh.look(RUN)).state == told.active.state


async def test_a_patch_no_reader_would_accept_is_not_written() -> None:
    async with story() as told:
        value = "x" * 30_000
        many = [
            ev.ContextContributed(
                at=AT, name="all", contribution=contribution("append", value, told.manager.addresser)
            )
        ] * (NODE_BYTES // 30_000 + 10)
        with pytest.raises(ContentTooLarge, match="Nothing was recorded"):
            await told.turn(*many)
        assert told.active.seq == 1
        assert await told.turn(many[0]) == 2


class _DamagedRows(MemoryStore):
    """A store that finds some of its rows damaged whenever they are among those asked for."""

    damaged: frozenset[int] = frozenset()

    def rows(self, query: RowQuery) -> list[Row]:
        found = super().rows(query)
        for row in found:
            if row.seq in self.damaged and query.content:
                raise Damaged(what=f"row {row.seq}", reason="its check fails")
        return found


async def test_restoring_goes_on_from_below_damaged_rows_with_a_generation_never_used() -> None:
    clock, store = FakeClock(), _DamagedRows()
    async with CheckpointManager(store, clock=clock, owner="first") as manager:
        active = await manager.begin(ev.RunStarted(at=AT, run=RUN, workflow=WorkflowRef(name="w")))
        for _ in range(40):
            await manager.record(active, [ev.PhaseStarted(at=AT, phase=FIND)])
        last = (await manager.rollback(active, 33, reason="once")).state.generation
        await manager.record(active, [ev.PhaseStarted(at=AT, phase=FIND)])
        await manager.release(active)
        store.damaged = frozenset({36, 41, 42})
        again = await manager.restore(RUN)
        assert again.seq == 43
        assert again.state.rollbacks[0].to_seq == 35
        assert again.state.generation > last
        assert (await manager.record(again, [ev.PhaseStarted(at=AT, phase=FIND)])).header.seq == 44
