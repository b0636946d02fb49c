"""The feed: nothing is missed, whoever plays the run, and a listener goes on where it was."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra import limits
from orchestra.app.orchestra import Orchestra
from orchestra.ports.store import RowQuery, Store
from orchestra.stores.registry import open_store
from orchestra.web import feed
from tests.unit.cli.project import Project, ended
from tests.unit.cli.recording import AUDIT, HEAD, REVIEW
from tests.web.support import SECONDS, Visitor, served

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def listening(visitor: Visitor, **query: Any) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """The events of the feed, one after the other; `last` is sent as the id that was seen last."""
    last, wanted = query.pop("last", None), query.pop("wanted", ("snapshot",))
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    async with visitor.client.stream("GET", "/api/events", params=query, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _events(response, wanted)


async def _events(response: Any, wanted: tuple[str, ...]) -> AsyncIterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = json.loads(value) if name == "data" else value
        else:
            if "data" in event and event["event"] in wanted:
                yield event
            event = {}


def _every(visitor: Visitor, **query: Any) -> Any:
    return listening(visitor, wanted=("snapshot", "run", "gone"), **query)


async def some(events: AsyncIterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The next so many."""
    found: list[dict[str, Any]] = []
    with anyio.fail_after(SECONDS):
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


async def test_everything_after_a_number_is_told_in_order(visitor: Visitor) -> None:
    total = visitor.site.archive.store.last_no()
    async with listening(visitor, after=0) as events:
        found = await some(events, total)
    assert [int(event["id"]) for event in found] == list(range(1, total + 1))
    assert [event["data"]["seq"] for event in found if event["data"]["run"] == REVIEW] == list(
        range(HEAD + 1)
    )
    told = next(event["data"] for event in found if event["data"]["triggers"] == ["decision"])
    assert told["main"].startswith("decided: go on")
    assert told["events"][0]["who"] == "atlas"


async def test_a_listener_goes_on_after_the_last_id_it_saw(visitor: Visitor) -> None:
    async with listening(visitor, after=0, last=5) as events:
        assert [event["id"] for event in await some(events, 3)] == ["6", "7", "8"]


async def test_one_run_only(visitor: Visitor) -> None:
    async with listening(visitor, after=0, run="audit") as events:
        found = await some(events, 4)
    assert [(event["data"]["run"], event["data"]["seq"]) for event in found] == [
        (AUDIT, seq) for seq in range(4)
    ]


async def test_an_unknown_run_is_refused(visitor: Visitor) -> None:
    assert (await visitor.refused("/events", run="nobody"))[0] == 404
    found = await visitor.client.get("/api/events", headers={"Last-Event-ID": "x"})
    assert found.status_code == 422


async def test_a_listener_that_fell_far_behind_reads_from_the_store(
    recorded: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WEB_LISTENER_EVENTS", 4)
    monkeypatch.setattr(limits, "WEB_FEED_ROWS", 3)
    total = recorded.last_no()
    async with served(recorded) as visitor, listening(visitor, after=0) as events:
        found = await some(events, total)
    assert [int(event["id"]) for event in found] == list(range(1, total + 1))


async def _watched(visitor: Visitor, run: str) -> None:
    """Wait until the feed knows how a run stands: from then on it tells of changes."""
    with anyio.fail_after(SECONDS):
        while True:
            if run in visitor.site.feed._standings:
                return
            await anyio.sleep(0.01)


async def test_what_a_deleted_run_was_is_gone(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_STANDING_SECONDS", 0.05)
    store = visitor.site.archive.store
    newest = store.last_no()
    async with listening(visitor, after=newest - 1, wanted=("snapshot", "gone")) as events:
        (last,) = await some(events, 1)
        assert last["id"] == str(newest)
        await _watched(visitor, AUDIT)
        await anyio.to_thread.run_sync(store.delete, AUDIT)
        (gone,) = await some(events, 1)
    assert (gone["event"], gone["data"]) == ("gone", {"run": AUDIT})
    assert (await visitor.refused(f"/runs/{AUDIT}"))[0] == 404
    assert [run["run"] for run in (await visitor.get("/runs"))["runs"]].count(AUDIT) == 0


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()


@asynccontextmanager
async def looking(project: Project) -> AsyncIterator[Visitor]:
    """A browser in this process over the store that other processes of the project use."""
    (project.folder / "outputs").mkdir(exist_ok=True)
    url = f"sqlite:{project.folder}/outputs/orchestra.db"
    with open_store(url, create=True) as store:
        async with Orchestra(store, project=project.folder) as orchestra, served(store, orchestra) as made:
            yield made


async def test_a_run_of_another_process_is_followed_and_nothing_is_missed(project: Project) -> None:
    project.workflow("quick", "gate", "quick")
    async with looking(project) as visitor:
        process = project.start("run", "flow.yaml", "--run-id", "r1")
        found: list[dict[str, Any]] = []
        while not found or found[-1]["data"]["status"] != "completed":
            last = found[-1]["id"] if found else 0
            async with listening(visitor, last=last) as events:  # and hang up after the second one
                found += await some(events, 1)
                if found[-1]["data"]["phase"] == "p2":
                    project.go()
                if found[-1]["data"]["status"] != "completed":
                    found += await some(events, 1)
        await anyio.to_thread.run_sync(ended, process, 0)
        rows = visitor.site.archive.store.rows(RowQuery(content=False))
    assert [event["data"]["seq"] for event in found] == [row.seq for row in rows]
    assert found[-1]["data"]["triggers"][-1] == "completed"


async def test_orders_reach_a_run_of_another_process(project: Project) -> None:
    process = await anyio.to_thread.run_sync(project.at_the_gate, "--wait")
    async with looking(project) as visitor:
        found = await visitor.get("/runs/r1")
        assert (found["owned"], found["playing"], found["standing"]) == (True, False, "running")
        assert (await visitor.post("/runs/r1/resume", status=409))["error"] == "RunOwned"
        assert (await visitor.post("/runs/r1/pause", reason="lunch"))["status"] == "paused"
        await visitor.post("/runs/r1/snapshot", note="from the page")
        project.go()
        assert await visitor.post("/runs/r1/resume") == {"run": "r1", "playing": False}
        await visitor.until("r1", status="completed")
    await anyio.to_thread.run_sync(ended, process, 0)


async def test_a_killed_process_is_noticed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_STANDING_SECONDS", 0.05)
    process = await anyio.to_thread.run_sync(project.at_the_gate)
    async with looking(project) as visitor, _every(visitor, run="r1", after=0) as events:
        await some(events, 1)
        await _watched(visitor, "r1")
        process.kill()
        with anyio.fail_after(SECONDS):
            async for event in events:
                if event["event"] == "run":
                    break
        assert event["data"]["standing"] == "interrupted"
        assert event["data"]["owned"] is False
    await anyio.to_thread.run_sync(process.communicate)
