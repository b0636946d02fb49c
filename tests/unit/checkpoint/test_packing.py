"""What is stored is compressed, whoever does it and wherever, and what is told of it is its size there."""

import asyncio
import random

import attrs
import pytest

from orchestra import errors
from orchestra.checkpoint.commit import ActiveRun, TurnMaker
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.checkpoint.writer import StoreWriter
from orchestra.codec.address import Addresser
from orchestra.codec.frame import read_frame
from orchestra.ids import AgentId, Fence, Instant, PhaseId, RunId, TaskId
from orchestra.limits import PACKED_LATER_BYTES
from orchestra.model import events as ev
from orchestra.model.apply.apply import begin
from orchestra.model.state import WorkflowRef
from orchestra.ports.sink import CheckpointSaved, Notice
from orchestra.ports.store import Claim, Commit, Row, RowQuery, RunQuery
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock
from orchestra.testing.samples import SampleRun

pytestmark = pytest.mark.anyio

AT = Instant(5)
SMALL, LARGE = 1_000, 2 * PACKED_LATER_BYTES
RAW, ZSTD = 0, 1


class Sizes:
    def __init__(self) -> None:
        self.told: list[int] = []

    def notice(self, notice: Notice, /) -> None:
        if isinstance(notice, CheckpointSaved):
            self.told.append(notice.size)


def started(run: str) -> ev.RunStarted:
    return ev.RunStarted(at=AT, run=RunId(run), workflow=WorkflowRef(name="w" * SMALL))


def planned(chars: int) -> ev.TaskPlanned:
    text = "word " * (chars // 5)
    return ev.TaskPlanned(at=AT, task=TaskId("p/a"), agent=AgentId("a"), phase=PhaseId("p"), description=text)


def stored_size(store: MemoryStore, row: Row) -> int:
    """What a row and, if it is the first, its seal take up."""
    assert row.patch is not None
    sealed = store.get_objects([row.seal]).values() if row.sealed_at == row.seq else ()
    return len(row.header) + len(row.patch) + sum(map(len, sealed))


@pytest.mark.parametrize("together", [False, True], ids=["alone", "beside another run"])
@pytest.mark.parametrize("chars", [SMALL, LARGE])
async def test_rows_and_objects_are_compressed(chars: int, together: bool) -> None:
    store, sizes = MemoryStore(), Sizes()
    async with CheckpointManager(store, clock=FakeClock(step=1), owner="me", sinks=[sizes]) as manager:
        active = await manager.begin(started("r"))
        if together:
            await manager.begin(started("other"))
            sizes.told.pop()
        await manager.record(active, [planned(chars)])
        assert manager.archive.snapshot(manager.archive.row(active.run, 1)).state == active.state
    rows = store.rows(RowQuery(run=RunId("r")))
    patches = [row.patch or b"" for row in rows]
    assert patches[1][0] == ZSTD
    assert len(patches[1]) < len(read_frame(patches[1], what="the patch").canonical) / 4
    assert [frame[0] for frame in store.get_objects([rows[0].seal]).values()] == [ZSTD]
    assert sizes.told == [row.size for row in rows] == [stored_size(store, row) for row in rows]


async def test_nothing_is_compressed_where_that_is_not_wanted() -> None:
    store = MemoryStore()
    settings = CheckpointSettings(compression=False)
    async with CheckpointManager(store, clock=FakeClock(step=1), owner="me", settings=settings) as manager:
        active = await manager.begin(started("r"))
        await manager.record(active, [planned(LARGE)])
    rows = store.rows(RowQuery(run=RunId("r")))
    assert {(row.patch or b"")[0] for row in rows} == {RAW}
    assert all(row.size == stored_size(store, row) for row in rows)


async def test_the_level_shows_in_what_is_stored() -> None:
    """CHECKLIST 001.42: the higher the number the smaller the bytes, of the same content."""
    words = random.Random(1).choices(["structure", "module", "tests", "weak", "graph", "docs"], k=4_000)
    event = attrs.evolve(planned(0), description=" ".join(words))
    sizes, contents = list[int](), set[bytes]()
    for level in (1, 6, 19):
        store, settings = MemoryStore(), CheckpointSettings(compression_level=level)
        manager = CheckpointManager(store, clock=FakeClock(step=1), owner="me", settings=settings)
        async with manager:
            await manager.record(await manager.begin(started("r")), [event])
        patch = store.rows(RowQuery(run=RunId("r")))[1].patch
        assert patch is not None
        sizes.append(len(patch))
        contents.add(read_frame(patch, what="the patch").canonical)
    assert sizes[0] > sizes[1] > sizes[2]
    assert len(contents) == 1


async def test_the_limit_is_about_what_is_stored() -> None:
    settings = CheckpointSettings(size_limit_bytes=2_000)
    manager = CheckpointManager(MemoryStore(), clock=FakeClock(step=1), owner="me", settings=settings)
    async with manager:
        active = await manager.begin(started("r"))
        await manager.record(active, [planned(10_000)])  # which is compressed to a few hundred bytes
        noise = attrs.evolve(planned(0), task=TaskId("p/b"), description="".join(map(chr, range(256, 3_000))))
        with pytest.raises(errors.SnapshotTooLarge):
            await manager.record(active, [noise])
        assert active.seq == 1


async def test_a_commit_that_cannot_be_packed_fails_alone() -> None:
    """Whoever hands in a commit hears what is wrong with it; the writer goes on."""

    def pack(commit: Commit) -> Commit:
        if commit.row.run == "bad":
            raise MemoryError("no room to compress it")
        return commit

    store = MemoryStore()
    writer = StoreWriter(store, pack=pack)
    writer.runs = 3  # so that what is handed in together is written together
    commits = [SampleRun(store, name).commit() for name in ("good", "bad", "other")]
    outcomes = await asyncio.gather(*map(writer.commit, commits), return_exceptions=True)
    assert [type(each) for each in outcomes] == [Row, MemoryError, Row]
    assert {row.run for row in store.runs(RunQuery())} == {"good", "other"}
    await writer.close()


def test_packing_twice_changes_nothing() -> None:
    state = begin(started("r"))
    active = ActiveRun(claim=Claim(run=state.run, fence=Fence(1), owner="me"), state=state)
    turns = TurnMaker(Addresser(), CheckpointSettings())
    turn = turns.make_jump(active, state, (started("r"),), None)
    once = turns.pack(turn.commit)
    assert once.row.size < turn.commit.row.size
    assert turns.pack(once) == once
