"""Searching for a text: found in the snapshot that brought it, at its place in the state."""

import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.history.archive import Archive
from orchestra.history.paths import walk
from orchestra.history.search import Hit, Scanned, TextSearch
from orchestra.ids import AgentId, RunId
from orchestra.model import events as ev
from orchestra.stores.memory import MemoryStore
from orchestra.testing.clock import FakeClock
from tests.unit.cli.recording import Recorder

pytestmark = pytest.mark.anyio
RUN = RunId("run")


async def _recorded() -> Archive:
    store, clock = MemoryStore(), FakeClock()
    async with CheckpointManager(store, clock=clock, owner="test") as manager:
        recorder = Recorder(manager, clock)
        active = await recorder.begin(RUN, "flow")
        await recorder.phase(active, "find")
        await recorder.task(active, "one", {"nested": [{"text": "A Needle in Ünicode"}], "n": 1})
        for number in range(5):
            await recorder.decided(active, f"choice {number}")
        await recorder.turn(
            active,
            ev.TextEmitted(at=recorder.tick(), agent=AgentId("one-agent"), text="a stream"),
        )
        await recorder.task(active, "two", "needle " * 20_000)
        await recorder.task(active, "three", "needle " * 20_000)
        await manager.rollback(active, 5, reason="a needle is the reason")
    return Archive(store)


def _found(archive: Archive, text: str) -> list[tuple[int, tuple[str | int, ...]]]:
    every = TextSearch(archive, text).run(archive.run(RUN))
    return [(hit.seq, hit.path) for hit in every if isinstance(hit, Hit)]


async def test_a_text_is_found_once_whatever_its_case() -> None:
    archive = await _recorded()
    path = ("tasks", "one", "result", "nested", 0, "text")
    assert _found(archive, "needle in")[0] == (3, path)
    assert _found(archive, "NEEDLE IN Ü") == [(3, path)]
    assert _found(archive, "ünicode") == [(3, path)]
    assert _found(archive, "no such text") == []


async def test_positions_are_those_in_the_whole_sequence() -> None:
    archive = await _recorded()
    (hit,) = _found(archive, "choice 3")
    assert hit == (7, ("decisions", 3, "description"))
    assert walk(archive.document(RUN, 7), hit[1], archive.loader) == "choice 3"


async def test_a_large_value_is_opened_once_and_a_rollback_brings_nothing() -> None:
    archive = await _recorded()
    seqs = [seq for seq, path in _found(archive, "needle needle") if path[0] == "tasks"]
    assert len(seqs) == 1  # the second task has the very same value


async def test_streamed_text_is_found() -> None:
    archive = await _recorded()
    assert [path for _, path in _found(archive, "a stream")] == [("agents", "one-agent", "partial")]


async def test_what_the_first_snapshot_has_is_found() -> None:
    archive = await _recorded()
    assert (0, ("workflow", "name")) in _found(archive, "flow")


async def test_it_says_how_far_it_is() -> None:
    archive = await _recorded()
    every = list(TextSearch(archive, "x").run(archive.run(RUN)))
    assert [each.seq for each in every if isinstance(each, Scanned)] == list(range(archive.run(RUN).head + 1))
