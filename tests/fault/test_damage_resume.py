"""What `recovery:` says holds when a run is resumed: its newest snapshot is damaged, or its store is slow.

CHECKLIST 001.41.
"""

import threading
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.errors import BadOrder, DamageError
from orchestra.ids import RunId
from orchestra.model.workflow import RecoveryPolicy
from orchestra.ports.store import Row, RowQuery, Store
from orchestra.stores.memory import MemoryStore
from orchestra.testing.faulty import FaultPlan, FaultyStore
from tests.unit.engine.support import Failing, Theatre, does, flow, phase, policy, triggers
from tests.unit.recordings import flipped, rows_of, set_row

pytestmark = pytest.mark.anyio
RUN = RunId("run")
WORK = flow(phase("one", does("quick"), next=["two"]), phase("two", does("pages")), policy=policy("fail"))
PAGES = 6


class Slow(FaultyStore):
    """A store that hands out no rows before it is let."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner, FaultPlan())
        self.asked, self.answer = threading.Event(), threading.Event()

    def rows(self, query: RowQuery) -> list[Row]:
        self.asked.set()
        assert self.answer.wait(30)
        return super().rows(query)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def theatre(tmp_path: Path, store: MemoryStore) -> Theatre:
    return Theatre(tmp_path, store)


class Pages:
    """An agent that reads page after page, from where it was, and fails at the end the first time."""

    def __init__(self) -> None:
        self.began: list[int] = []

    async def __call__(self, ctx: Any) -> str:
        self.began.append(0 if ctx.private is None else ctx.private + 1)
        for page in range(self.began[-1], PAGES):
            await ctx.save(page)
        if len(self.began) == 1:
            raise RuntimeError("the light went out")
        return "read"


class Cast(dict[str, Any]):
    """The agents of the workflow."""

    def __init__(self) -> None:
        self.quick, self.pages = Failing(0), Pages()
        super().__init__(quick=self.quick, pages=self.pages)


async def _failed(theatre: Theatre) -> Cast:
    """The cast of a run that failed in its second phase, after the last page."""
    cast = Cast()
    assert (await theatre.run(WORK, cast)).kind == "failed"
    return cast


def _house(theatre: Theatre, store: Store, cast: Cast, **more: Any) -> Orchestra:
    rules = RecoveryPolicy(on_failure=("fail",), **more)
    return Orchestra(store, functions=cast, project=theatre.folder, recovery=rules)


def _damage(store: MemoryStore, *seqs: int) -> None:
    for seq in seqs:
        set_row(store, RUN, seq, header=flipped(rows_of(store, RUN)[seq].header, 60))


def _is_free(store: MemoryStore) -> bool:
    found = store.run(RUN)
    assert found is not None
    return not found.owned


@pytest.mark.parametrize("lost", [1, 3])
async def test_it_goes_on_from_the_newest_whole_snapshot(
    theatre: Theatre, store: MemoryStore, lost: int, caplog: pytest.LogCaptureFixture
) -> None:
    """That is on the record, and nothing that is whole is done again."""
    cast = await _failed(theatre)
    head = len(rows_of(store, RUN)) - 1
    whole = head - lost
    _damage(store, *range(whole + 1, head + 1))
    async with _house(theatre, store, cast, fallback_to_previous=True) as house:
        ending = await house.resume(RUN)
    assert (ending.kind, cast.quick.calls) == ("completed", 1)
    assert cast.pages.began == [0, PAGES + 1 - lost]
    (record,) = ending.state.rollbacks
    assert (record.from_seq, record.to_seq, record.reason) == (head, whole, f"snapshot {head} is damaged")
    assert "rolled_back" in triggers(store)[head + 1]
    assert f"run {RUN}: snapshot {head} is damaged, going on from {whole}" in caplog.text


async def test_it_does_not_where_that_is_not_wanted(theatre: Theatre, store: MemoryStore) -> None:
    cast = await _failed(theatre)
    before = list(rows_of(store, RUN))
    head = len(before) - 1
    _damage(store, head)
    async with _house(theatre, store, cast, fallback_to_previous=False) as house:
        with pytest.raises(DamageError, match=f"{RUN}@{head}"):
            await house.resume(RUN)
        assert _is_free(store)
        assert [row.digest for row in rows_of(store, RUN)] == [row.digest for row in before]
        set_row(store, RUN, head, header=before[head].header)
        assert (await house.resume(RUN)).kind == "completed"


@pytest.mark.parametrize("wanted", [True, False])
async def test_without_other_rules_those_of_the_workflow_hold(
    theatre: Theatre, store: MemoryStore, wanted: bool
) -> None:
    cast, rules = Cast(), RecoveryPolicy(on_failure=("fail",), fallback_to_previous=wanted)
    work = attrs.evolve(WORK, policy=attrs.evolve(WORK.policy, recovery=rules))
    assert (await theatre.run(work, cast)).kind == "failed"
    _damage(store, len(rows_of(store, RUN)) - 1)
    if wanted:
        assert (await theatre.resume(cast)).kind == "completed"
        return
    with pytest.raises(DamageError):
        await theatre.resume(cast)
    assert _is_free(store)


async def test_a_store_that_is_too_slow_is_not_waited_for(theatre: Theatre, store: MemoryStore) -> None:
    """The setting is named, the run is free for others, and nothing was written."""
    cast = await _failed(theatre)
    before = len(rows_of(store, RUN))
    slow = Slow(store)
    async with _house(theatre, slow, cast, timeout_us=1) as house, anyio.create_task_group() as group:

        async def answer_too_late() -> None:
            assert await anyio.to_thread.run_sync(slow.asked.wait, 30)
            slow.answer.set()

        group.start_soon(answer_too_late)
        with pytest.raises(BadOrder, match=rf"taking {RUN} over took longer than .* \(recovery\.timeout\)"):
            await house.resume(RUN)
        assert _is_free(store)
    assert len(rows_of(store, RUN)) == before
    assert (await theatre.resume(cast)).kind == "completed"
