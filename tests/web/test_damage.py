"""Damaged, pruned and hostile content: it is shown where it is, and the rest of the run stays usable."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.errors import StoreClosed
from orchestra.ids import RunId
from orchestra.stores.registry import open_store
from orchestra.testing.clock import FakeClock
from tests.unit.cli.recording import HEAD, REVIEW, Recorder, record_into
from tests.web.support import Visitor, served

pytestmark = pytest.mark.anyio
SPOILED = "cast(substr({0}, 1, length({0}) - 1) || x'fe' as blob)"


async def _damaged(folder: Path, statement: str) -> None:
    with open_store(f"sqlite:{folder}/store.db", create=True) as store:
        await record_into(store)
    connection = sqlite3.connect(folder / "store.db")
    with connection:
        where = "seq = 5 and run_no = (select run_no from runs where run = ?)"
        connection.execute(f"update rows set {statement} where {where}", (REVIEW,))
    connection.close()


@pytest.fixture(params=["status = 'x'", f"header = {SPOILED.format('header')}"], ids=["status", "header"])
async def broken(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Visitor]:
    """A browser over a run whose snapshot 5 has a row that fails its check."""
    await _damaged(tmp_path, request.param)
    with open_store(f"sqlite:{tmp_path}/store.db", read_only=True) as store:
        async with served(store) as made:
            yield made


async def test_the_rest_of_a_run_with_a_damaged_row_is_there(broken: Visitor) -> None:
    columns = await broken.get(f"/runs/{REVIEW}/snapshots")
    assert columns["count"] == HEAD + 1
    rows = (await broken.get(f"/runs/{REVIEW}/headlines", first=0))["rows"]
    assert [row["seq"] for row in rows] == list(range(HEAD + 1))
    assert [row["seq"] for row in rows if row["damage"]] == [5]
    assert "is damaged" in rows[5]["damage"]
    assert rows[6]["main"] == "finished: large"
    assert 5 in (await broken.get(f"/runs/{REVIEW}/outline"))["errors"]
    assert (await broken.get(f"/runs/{REVIEW}/snapshots/4"))["damage"] is None
    assert (await broken.get(f"/runs/{REVIEW}/snapshots/4/state"))["value"]["status"] == "running"
    assert (await broken.get(f"/runs/{REVIEW}/decisions"))["decisions"][0]["seq"] == 4


async def test_a_damaged_snapshot_is_refused_in_a_sentence(broken: Visitor) -> None:
    status, body = await broken.refused(f"/runs/{REVIEW}/snapshots/5/state")
    assert (status, body["error"]) == (422, "Damaged")
    assert "orchestra verify" in body["message"]
    found = await broken.get(f"/runs/{REVIEW}/verify")
    assert found["whole"] is False
    assert found["problems"]


async def test_the_list_of_runs_says_which_is_damaged(broken: Visitor) -> None:
    runs = {run["run"]: run for run in (await broken.get("/runs"))["runs"]}
    assert len(runs) == 3
    full = await broken.get(f"/runs/{REVIEW}")
    assert full["head"] == HEAD
    assert "damaged" in full["damage"]  # its newest state needs the damaged row


async def test_a_feed_passes_over_what_is_damaged(broken: Visitor) -> None:
    total = broken.site.archive.store.last_no()
    seen: list[int] = []
    async with broken.client.stream("GET", "/api/events", params={"after": 0}) as response:
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                seen.append(int(line[4:]))
            if seen and seen[-1] == total:
                break
    assert len(seen) >= total - 1
    assert seen == sorted(seen)


async def test_searching_passes_over_what_is_damaged(broken: Visitor) -> None:
    found = await broken.client.get(f"/api/runs/{REVIEW}/search", params={"q": "go on"})
    assert '"seq":4' in found.text
    assert '"done":true' in found.text
    assert (await broken.get(f"/runs/{REVIEW}/first", expr="completed_tasks == 1"))["seq"] == 3


async def test_a_damaged_patch_spoils_only_the_states_that_need_it(tmp_path: Path) -> None:
    await _damaged(tmp_path, f"patch = {SPOILED.format('patch')}")
    with open_store(f"sqlite:{tmp_path}/store.db", read_only=True) as store:
        async with served(store) as visitor:
            assert (await visitor.get(f"/runs/{REVIEW}/snapshots/4/state"))["whole"]
            assert (await visitor.refused(f"/runs/{REVIEW}/snapshots/6/state"))[0] == 422
            found = await visitor.get(f"/runs/{REVIEW}/snapshots")
            assert found["count"] == HEAD + 1


@pytest.fixture
async def pruned(tmp_path: Path) -> AsyncIterator[Visitor]:
    """A browser over a run of which some snapshots were pruned."""
    with open_store(f"sqlite:{tmp_path}/store.db", create=True) as store:
        await record_into(store)
        store.prune(REVIEW, [5, 6])
        async with served(store) as made:
            yield made


async def test_a_pruned_snapshot_still_says_what_happened(pruned: Visitor) -> None:
    found = await pruned.get(f"/runs/{REVIEW}/snapshots/5")
    assert (found["pruned"], found["verified"], found["metrics"]) == (True, False, None)
    assert found["events"]
    status, body = await pruned.refused(f"/runs/{REVIEW}/snapshots/5/state")
    assert (status, body["error"]) == (410, "PrunedSnapshot")
    assert f"{REVIEW}@4" in body["message"]
    assert (await pruned.refused(f"/runs/{REVIEW}/snapshots/5/changes"))[0] == 410
    flags = (await pruned.get(f"/runs/{REVIEW}/snapshots"))["columns"]["flags"]
    assert [bool(flag & 2) for flag in flags[4:8]] == [False, True, True, False]
    assert len((await pruned.get(f"/runs/{REVIEW}/headlines"))["rows"]) == HEAD + 1


async def test_a_store_that_was_closed_is_said_to_be(tmp_path: Path) -> None:
    with open_store(f"sqlite:{tmp_path}/store.db", create=True) as store:
        await record_into(store)
        async with served(store) as visitor:
            store.close()
            status, body = await visitor.refused("/runs")
            assert (status, body["error"]) == (503, StoreClosed.__name__)


def _deep(levels: int) -> Any:
    value: Any = "<script>alert(1)</script>"
    for level in range(levels):
        value = [value] if level % 2 else {"__proto__": value}
    return value


HOSTILE: dict[str, Any] = {
    "constructor": {"prototype": 1},
    "$bytes": "not bytes",
    "$$": "two",
    "": "no name",
    "</script>": "<img src=x onerror=alert(1)>",
    "deep": _deep(50),
    "many": list(range(5000)),
    "long": "x" * 10_000,
    "nan": float("inf"),
    "big": 1 << 80,
    "surrogate-like": "\\ud800",
    "separators": "\u2028\u2029\x85\x00",
}


async def test_hostile_values_arrive_as_what_they_are(tmp_path: Path) -> None:
    with open_store(f"sqlite:{tmp_path}/store.db", create=True) as store:
        clock = FakeClock()
        async with CheckpointManager(store, clock=clock, owner="test") as manager:
            recorder = Recorder(manager, clock)
            active = await recorder.begin(RunId("hostile"), "hostile")
            await recorder.phase(active, "find")
            await recorder.task(active, "odd", HOSTILE)
            await manager.release(active)
        async with served(store) as visitor:
            path = ["tasks", "odd", "result"]
            found = (await visitor.get("/runs/hostile/snapshots/head/state", path=path))["value"]
            assert found["$$bytes"] == "not bytes"
            assert found["$$$"] == "two"
            assert found[""] == "no name"
            assert found["</script>"] == HOSTILE["</script>"]
            assert found["many"] == {"$more": {"kind": "array", "count": 5000}}
            assert found["long"]["$cut"]["size"] == 10_000
            assert found["nan"] == {"$float": "inf"}
            assert found["big"] == {"$int": str(1 << 80)}
            assert found["separators"] == HOSTILE["separators"]
            assert found["constructor"] == {"prototype": 1}
            deep: list[str | int] = [0 if level % 2 else "__proto__" for level in reversed(range(50))]
            leaf = await visitor.get("/runs/hostile/snapshots/head/state", path=[*path, "deep", *deep])
            assert leaf["value"] == "<script>alert(1)</script>"
            page = await visitor.get(
                "/runs/hostile/snapshots/head/state", path=[*path, "many"], offset=4990, limit=100
            )
            assert page["value"] == list(range(4990, 5000))
            changes = (await visitor.get("/runs/hostile/snapshots/head/changes"))["changes"]
            assert any(change["path"][:2] == ["tasks", "odd"] for change in changes)
