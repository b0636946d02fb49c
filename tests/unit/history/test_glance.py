"""A glance tells what the whole state would, from the header and one patch or leaf."""

from collections.abc import Collection, Mapping
from typing import Any

import attrs
import pytest

from orchestra.codec.header import write_header
from orchestra.errors import Damaged
from orchestra.history.archive import Archive
from orchestra.history.glance import Glance, glance
from orchestra.history.verify.verifier import verify_run
from orchestra.ids import Digest
from orchestra.ports.store import Row, RowQuery
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import FRAMER, set_row
from tests.unit.story import RUN, Story
from tests.unit.story import story as recording

pytestmark = pytest.mark.anyio


class Counting(MemoryStore):
    """Counts what is fetched."""

    objects_read = 0
    rows_read = 0

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        self.objects_read += len(digests)
        return super().get_objects(digests)

    def rows(self, query: RowQuery) -> list[Row]:
        found = super().rows(query)
        self.rows_read += len(found)
        return found


def check(archive: Archive) -> Glance:
    """A glance agrees with the state."""
    state = archive.snapshot(archive.newest(RUN)).state
    seen = glance(archive, RUN)
    assert (seen.tasks, seen.decisions) == (len(state.tasks), len(state.decisions))
    assert seen.last_decision == (state.decisions[-1] if len(state.decisions) else None)
    assert (seen.status, seen.phase) == (state.status, state.cursor.phase)
    assert seen.confidence == state.confidence.overall
    return seen


async def told(story: Story, turns: int) -> None:
    for number in range(turns):
        await story.found(number)


async def test_at_every_snapshot_of_a_run() -> None:
    async with recording() as story:
        for number in range(70):
            if number % 9 == 0:
                await story.decided(f"choice {number}")
            else:
                await story.found(number)
            check(Archive(story.archive.store))


@pytest.mark.parametrize("later", [0, 1, 20])
async def test_one_patch_is_opened_and_no_object(later: int) -> None:
    store = Counting()
    async with recording(store) as story:
        await told(story, 40)
        await story.decided("the last one")
        await told(story, later)
        store.objects_read = store.rows_read = 0
        seen = glance(Archive(store), RUN)
    assert seen.last_decision is not None
    assert seen.last_decision.description == "the last one"
    assert (store.objects_read, store.rows_read) == (0, 1 + later)


async def test_a_decision_from_before_the_seal() -> None:
    store = Counting()
    async with recording(store) as story:
        await story.decided("the last one")
        await told(story, 70)
        check(story.archive)
        store.objects_read = store.rows_read = 0
        glance(Archive(store), RUN)
    assert (store.objects_read, store.rows_read) == (1, 1), "the seal, in which a short sequence stands"


async def test_after_a_rollback_and_in_a_fork() -> None:
    async with recording() as story:
        await story.decided("kept")
        at = story.active.seq
        await story.decided("undone")
        await story.manager.rollback(story.active, at, reason="no")
        seen = check(story.archive)
        assert seen.last_decision is not None
        assert seen.last_decision.description == "kept"
        await told(story, 3)
        check(story.archive)


async def test_headers_that_count_nothing_are_made_up_for() -> None:
    store = MemoryStore()
    async with recording(store) as story:
        await story.decided("first")
        await told(story, 3)
        archive = Archive(store, FRAMER)
        header = attrs.evolve(archive.header(archive.newest(RUN)), counts=None)
        digest, frame = write_header(header, FRAMER)
        set_row(store, RUN, header.seq, digest=digest, header=frame)
        assert archive.header(archive.newest(RUN)).counts is None
        check(archive)


async def test_rows_that_do_not_follow_one_another_are_refused() -> None:
    store = MemoryStore()
    async with recording(store) as story:
        await story.decided("first")
        at = story.active.seq
        await told(story, 3)
        archive = Archive(store, FRAMER)
        header = attrs.evolve(archive.header(archive.row(RUN, at)), ordinal=9)
        digest, frame = write_header(header, FRAMER)
        set_row(store, RUN, at, digest=digest, header=frame)
        with pytest.raises(Damaged, match="does not follow its parent"):
            glance(archive, RUN)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"tasks": 5}, "number of tasks"),
        ({"decisions": 5}, "number of decisions"),
        ({"ago": 1}, "place of the last decision"),
    ],
    ids=["tasks", "decisions", "ago"],
)
async def test_a_header_that_miscounts_is_found_by_verifying(wrong: dict[str, Any], what: str) -> None:
    store = MemoryStore()
    async with recording(store) as story:
        await story.decided("first")
        await story.decided("second")
        archive = Archive(store, FRAMER)
        assert not verify_run(archive, RUN).findings
        header = archive.header(archive.newest(RUN))
        assert header.counts is not None
        header = attrs.evolve(header, counts=attrs.evolve(header.counts, **wrong))
        digest, frame = write_header(header, FRAMER)
        set_row(store, RUN, header.seq, digest=digest, header=frame)
        reasons = [finding.reason for finding in verify_run(archive, RUN).findings]
        assert any(what in reason for reason in reasons)
