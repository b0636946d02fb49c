"""Blame finds the snapshot and the agent that set a value, through rollbacks and forks."""

import pytest

from orchestra.errors import UnknownPath
from orchestra.history.blame import Blame, blame
from orchestra.history.paths import parse_path
from orchestra.history.references import resolve
from orchestra.ids import Instant, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Failure
from tests.unit.story import ATLAS, FIND, RUN, STRUCTURE, Story, story

AT, TASK = Instant(9), TaskId("two")

pytestmark = pytest.mark.anyio


def _blame(told: Story, path: str, reference: str = RUN) -> Blame:
    return blame(told.archive, resolve(told.archive, reference), parse_path(path))


async def test_who_set_what() -> None:
    async with story() as told:
        done = await told.task("one", {"score": 1})
        found = await told.found("a finding")
        decided = await told.decided("Spawn another specialist")
        for _ in range(40):
            await told.found("more")
        expected = {
            "tasks.one.status": (done, STRUCTURE),
            "tasks.one.result.score": (done, STRUCTURE),
            "tasks.one.description": (done - 2, STRUCTURE),
            "context.findings[0]": (found, STRUCTURE),
            "context.findings[-1]": (told.active.seq, STRUCTURE),
            "decisions[0].description": (decided, ATLAS),
            "cursor.phase": (1, None),
            "workflow.name": (0, None),
        }
        got = {path: _blame(told, path) for path in expected}
        assert {path: (each.row.seq, each.who) for path, each in got.items()} == expected
        assert all(each.exact for each in got.values())


async def test_before_and_after() -> None:
    async with story() as told:
        await told.task("one", 1)
        status = _blame(told, "tasks.one.status")
        assert (status.before, status.after, status.was_there) == ("running", "completed", True)
        assert not _blame(told, "tasks.one.result").was_there


async def test_a_rollback_is_blamed_for_what_it_brought_back() -> None:
    async with story() as told:
        first = await told.task("one", 1)
        await told.task("two", 2)
        back = (await told.manager.rollback(told.active, first, reason="wrong")).header.seq
        assert _blame(told, "tasks.one.result").row.seq == first
        assert _blame(told, "generation").row.seq == back


async def test_a_fork_leads_to_where_it_came_from() -> None:
    async with story() as told:
        first = await told.task("one", 1)
        await told.manager.fork(RUN, first, RunId("other"))
        found = _blame(told, "tasks.one.result", "other")
        assert (found.row.run, found.row.seq) == (RUN, first)
        assert _blame(told, "run", "other").row.run == "other"


async def test_a_value_set_again_to_the_same_is_not_a_change() -> None:
    async with story() as told:
        first = await told.task("one", {"same": 1})
        await told.manager.rollback(told.active, first, reason="again")
        assert _blame(told, "tasks.one.result.same").row.seq == first


async def test_nothing_there() -> None:
    async with story() as told:
        with pytest.raises(UnknownPath, match=r"has nothing at 'tasks\.nobody'"):
            _blame(told, "tasks.nobody")


async def test_a_field_that_has_its_default_again() -> None:
    async with story() as told:
        done = await told.task("one", 1)
        await told.manager.record(
            told.active, [ev.TaskPlanned(at=AT, task=TASK, agent=STRUCTURE, phase=FIND)]
        )
        failed = ev.TaskFailed(at=AT, task=TASK, failure=Failure(error="E", message="m", at=AT))
        await told.turn(failed)
        gone = await told.turn(ev.TaskCompleted(at=AT, task=TASK))
        found = _blame(told, "tasks.two.failure")
        assert (found.row.seq, found.after, found.was_there) == (gone, None, True)
        assert done < gone


async def test_bytes_inside_a_value_are_bytes() -> None:
    async with story() as told:
        done = await told.task("one", {"raw": b"\x00\x01"})
        found = _blame(told, "tasks.one.result.raw")
        assert (found.row.seq, found.after) == (done, b"\x00\x01")


async def test_pruned_snapshots_make_it_inexact() -> None:
    async with story() as told:
        done = await told.task("one", 1)
        for _ in range(80):
            await told.found("x")
        store = told.archive.store
        store.prune(RUN, range(1, 64))
        found = _blame(told, "tasks.one.status")
        assert found.row.seq > done
        assert not found.exact
