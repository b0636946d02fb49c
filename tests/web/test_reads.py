"""Every question that can be asked, over HTTP, on every kind of store."""

import json
from typing import Any

import pytest

from orchestra.model.snapshot import TRIGGERS
from tests.unit.cli.recording import AUDIT, FORK, HEAD, HOSTILE, LARGE, REVIEW
from tests.web.support import Visitor

pytestmark = pytest.mark.anyio


async def test_info_says_what_is_looked_at(visitor: Visitor) -> None:
    found = await visitor.get("/info")
    assert found["store"] == visitor.site.archive.store.place
    assert found["read_only"] is True
    assert found["actions"] is False
    assert found["triggers"] == list(TRIGGERS)


async def test_runs_are_listed_newest_first_with_what_is_worth_knowing(visitor: Visitor) -> None:
    found = await visitor.get("/runs")
    assert [run["run"] for run in found["runs"]] == [AUDIT, FORK, REVIEW]
    audit, fork, review = found["runs"]
    assert found["counts"] == {"failed": 1, "interrupted": 1, "completed": 1}
    assert not found["more"]
    assert audit["status"] == "failed"
    assert fork["standing"] == "interrupted"
    assert fork["status"] == "running"
    assert fork["origin"] == {"run": REVIEW, "seq": 3}
    assert fork["family"] == REVIEW
    assert review["tasks"] == {"done": 2, "total": 2}
    assert review["snapshots"] == HEAD + 1
    assert review["damage"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"status": "interrupted"}, [FORK]),
        ({"status": "running"}, []),
        ({"status": "failed,completed"}, [AUDIT, REVIEW]),
        ({"workflow": "audit"}, [AUDIT]),
        ({"contains": "130000"}, [FORK]),
        ({"limit": 1, "offset": 1}, [FORK]),
    ],
)
async def test_runs_are_chosen(visitor: Visitor, query: dict[str, Any], expected: list[str]) -> None:
    found = await visitor.get("/runs", **query)
    assert [run["run"] for run in found["runs"]] == expected
    assert found["more"] == ("limit" in query)


async def test_a_run_in_full(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}")
    assert found["head"] == HEAD
    assert found["inputs"] == {"path": "."}
    assert found["forks"] == [{"run": FORK, "seq": 3, "status": "interrupted"}]
    assert found["thresholds"] == [0.5]
    assert [agent["agent"] for agent in found["agents"]] == ["structure-agent", "large-agent"]
    assert found["resumable"] is False
    assert found["playing"] is False
    assert (await visitor.get(f"/runs/{FORK}"))["resumable"] is True


async def test_a_run_may_be_named_by_its_beginning(visitor: Visitor) -> None:
    assert (await visitor.get("/runs/audit"))["run"] == AUDIT
    status, body = await visitor.refused("/runs/review")
    assert (status, body["error"]) == (400, "AmbiguousReference")


async def test_snapshots_are_columns(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/snapshots")
    assert (found["count"], found["first"], found["head"]) == (HEAD + 1, 0, HEAD)
    columns, words = found["columns"], found["words"]
    assert columns["seq"] is None
    assert {len(column) for name, column in columns.items() if name != "seq"} == {HEAD + 1}
    assert columns["at"] == sorted(columns["at"])
    assert [words["status"][code] for code in columns["status"]][-1] == "completed"
    assert columns["phase"][0] == -1
    assert [words["phase"][code] for code in columns["phase"]][1] == "find"
    assert words["triggers"][columns["triggers"][0]] == ["run_started"]
    assert words["agents"][columns["agents"][3]] == ["structure-agent"]
    assert columns["flags"][0] & 4  # sealed
    assert columns["flags"][3] & 32  # another run began here
    assert not columns["flags"][2] & 32


async def test_columns_of_chosen_snapshots_name_them(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/snapshots", trigger="decision")
    assert found["columns"]["seq"] == [4, 9]
    assert (await visitor.get(f"/runs/{REVIEW}/snapshots", first=2, last=4))["first"] == 2
    assert (await visitor.get(f"/runs/{REVIEW}/snapshots", agent="large-agent"))["count"] == 2
    assert (await visitor.get(f"/runs/{REVIEW}/snapshots", phase="nowhere"))["count"] == 0


async def test_an_error_is_flagged(visitor: Visitor) -> None:
    flags = (await visitor.get(f"/runs/{AUDIT}/snapshots"))["columns"]["flags"]
    assert [bool(each & 8) for each in flags] == [False, False, True, True]


async def test_headlines_say_what_happened(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/headlines", first=3, last=4)
    assert [row["seq"] for row in found["rows"]] == [3, 4]
    assert found["rows"][0]["main"] == "finished: structure"
    event = found["rows"][1]["events"][0]
    assert (event["kind"], event["who"]) == ("decision_made", "atlas")
    assert HOSTILE[:20] in event["what"]


async def test_the_outline_has_bars_phases_and_marks(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/outline")
    assert (found["upto"], found["more"]) == (HEAD, False)
    bars = [(bar["agent"], bar["from"], bar["to"], bar["outcome"]) for bar in found["bars"]]
    assert bars == [("structure-agent", 2, 3, "completed"), ("large-agent", 5, 6, "completed")]
    assert [(each["phase"], each["from"], each["to"]) for each in found["phases"]] == [
        ("find", 1, 7),
        ("write", 8, None),
    ]
    assert found["decisions"] == [4, 9]
    assert found["thresholds"] == [0.5]
    assert (await visitor.get(f"/runs/{AUDIT}/outline"))["errors"] == [2, 3]


async def test_an_outline_goes_on_after_a_snapshot(visitor: Visitor) -> None:
    await visitor.get(f"/runs/{REVIEW}/outline")
    found = await visitor.get(f"/runs/{REVIEW}/outline", after=5)
    assert [(bar["agent"], bar["to"]) for bar in found["bars"]] == [("large-agent", 6)]
    assert found["decisions"] == [9]


async def test_a_snapshot_in_full(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/snapshots/4")
    assert found["reference"] == f"{REVIEW}@4"
    assert found["builds_on"] == {"run": REVIEW, "seq": 3}
    (decision,) = found["decisions"]
    assert decision["description"] == "go on: " + HOSTILE
    assert decision["rationale"] == "because"
    assert found["verified"] is True
    assert found["undone"] is False
    assert found["metrics"]["added"] == {"tokens": 0, "cost_micros": 0, "api_calls": 0, "elapsed_us": 0}
    assert (await visitor.get(f"/runs/{REVIEW}/snapshots/3"))["forks"] == [FORK]
    assert (await visitor.get(f"/runs/{FORK}/snapshots/0"))["builds_on"] == {"run": REVIEW, "seq": 3}


@pytest.mark.parametrize(("at", "seq"), [("head", HEAD), ("-1", HEAD - 1), ("phase:write", 8), ("7", 7)])
async def test_a_snapshot_by_its_place(visitor: Visitor, at: str, seq: int) -> None:
    assert (await visitor.get(f"/runs/{REVIEW}/snapshots/{at}"))["seq"] == seq


async def test_a_state_has_odd_values_in_their_forms(visitor: Visitor) -> None:
    path = ["tasks", "structure", "result"]
    found = await visitor.get(f"/runs/{REVIEW}/snapshots/head/state", path=path)
    assert found["text"] == "tasks.structure.result"
    assert found["kind"] == "object"
    assert found["whole"] is True
    assert found["value"] == {
        "raw": {"$bytes": "AP8="},
        "tags": {"$set": ["a", "b"]},
        "pair": {"$tuple": [1, 2]},
        "nan": {"$float": "nan"},
        "text": "one\ntwo\n",
    }


async def test_a_whole_state_says_where_large_values_are(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/snapshots/head/state")
    assert found["path"] == []
    assert list(found["value"])[:2] == ["run", "family"]
    assert set(found["value"]["created_at"]) == {"$at"}
    large = found["value"]["tasks"]["large"]["result"]["$large"]
    assert large["size"] > len(LARGE)
    opened = await visitor.get(f"/runs/{REVIEW}/snapshots/head/state", path=["tasks", "large", "result"])
    assert opened["value"] == LARGE
    assert opened["count"] == len(LARGE)


async def test_a_collection_is_paged(visitor: Visitor) -> None:
    where = f"/runs/{REVIEW}/snapshots/head/state"
    found = await visitor.get(where, path=["tasks"], offset=1, limit=1)
    assert list(found["value"]) == ["large"]
    assert (found["count"], found["whole"]) == (2, False)
    assert (await visitor.get(where, path=["decisions"], offset=1))["value"][0]["description"] == "write it"


async def test_what_does_not_fit_the_budget_can_be_asked_for(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/snapshots/head/state", budget=1024)
    assert found["whole"] is False
    assert found["value"]["tasks"] == {"$more": {"kind": "object", "count": 2}}


async def test_a_value_can_be_had_raw(visitor: Visitor) -> None:
    where = f"/api/runs/{REVIEW}/snapshots/head/state"
    path = json.dumps(["tasks", "large", "result"])
    found = await visitor.client.get(where, params={"path": path, "raw": 1})
    assert found.text == LARGE
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
    assert found.headers["content-disposition"].startswith("attachment")
    path = json.dumps(["tasks", "structure", "result", "raw"])
    found = await visitor.client.get(where, params={"path": path, "raw": 1})
    assert found.content == b"\x00\xff"
    assert found.headers["content-type"] == "application/octet-stream"


async def test_states_are_known_by_their_digest(visitor: Visitor) -> None:
    where = f"/api/runs/{REVIEW}/snapshots/4/state"
    first = await visitor.client.get(where)
    assert first.headers["cache-control"] == "private, no-cache"
    again = await visitor.client.get(where, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    digest = (await visitor.get(f"/runs/{REVIEW}/snapshots/4"))["digest"]
    kept = await visitor.client.get(where, params={"v": digest[:12]})
    assert kept.headers["cache-control"] == "private, max-age=31536000, immutable"
    other = await visitor.client.get(where, params={"v": "0" * 12})
    assert other.headers["cache-control"] == "private, no-cache"


async def test_changes_of_a_snapshot(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/snapshots/9/changes")
    assert found["from"]["seq"] == 8
    texts = [change["text"] for change in found["changes"]]
    assert "decisions[1]" in texts
    added = found["changes"][texts.index("decisions[1]")]
    assert added["kind"] == "added"
    assert added["before"] is None
    assert set(added["after"]["at"]) == {"$at"}
    assert found["counts"]["added"] >= 1
    assert found["truncated"] is False


async def test_the_first_snapshot_is_all_change(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/snapshots/0/changes")
    assert found["from"] is None
    assert {change["kind"] for change in found["changes"]} == {"added"}


async def test_any_two_snapshots_are_compared(visitor: Visitor) -> None:
    found = await visitor.get("/diff", from_=f"{REVIEW}@2", to=f"{FORK}@1")
    assert found["to"] == {"reference": f"{FORK}@1", "run": FORK, "seq": 1}
    assert "origin" in [change["text"] for change in found["changes"]]
    one = await visitor.get("/diff", from_=f"{REVIEW}@2", to=f"{REVIEW}@4", path=["tasks", "structure"])
    assert one["changes"]
    assert all(change["path"][:2] == ["tasks", "structure"] for change in one["changes"])
    short = await visitor.get("/diff", from_=f"{REVIEW}@0", to=f"{REVIEW}@10", limit=2)
    assert (len(short["changes"]), short["truncated"]) == (2, True)


async def test_who_set_a_value(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/blame", path=["tasks", "structure", "status"])
    assert (found["seq"], found["who"], found["after"]) == (3, "structure-agent", "completed")
    assert found["before"] == "running"
    assert found["exact"] is True


async def test_which_snapshots_changed_a_value(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/touches", path=["tasks", "structure", "status"])
    assert found["seqs"] == [2, 3]
    assert (await visitor.get(f"/runs/{REVIEW}/touches", path=["cursor", "phase"]))["seqs"] == [1, 8]


async def test_where_a_condition_holds(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/first", expr="completed_tasks > 1")
    assert found == {"seq": 6, "reference": f"{REVIEW}@6"}
    nowhere = await visitor.get(f"/runs/{REVIEW}/first", expr="completed_tasks > 9")
    assert nowhere == {"seq": None, "reference": None}
    held = await visitor.get(f"/runs/{REVIEW}/matches", expr="completed_tasks == 1")
    assert held == {"seqs": [3, 4, 5], "truncated": False}


async def _search(visitor: Visitor, text: str, **more: Any) -> list[dict[str, Any]]:
    found = await visitor.client.get(f"/api/runs/{REVIEW}/search", params={"q": text, **more})
    assert found.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in found.text.splitlines()]


async def test_a_text_is_found_where_it_came_from(visitor: Visitor) -> None:
    *hits, last = await _search(visitor, "WRITE IT")
    assert [(hit["seq"], hit["text"], hit["where"]) for hit in hits] == [
        (9, "decisions[1].description", "decision")
    ]
    assert hits[0]["excerpt"] == "write it"
    assert last == {"done": True, "scanned": HEAD + 1, "truncated": False}


async def test_a_text_in_a_large_value_is_found(visitor: Visitor) -> None:
    *hits, _ = await _search(visitor, "much much")
    assert [(hit["seq"], hit["path"]) for hit in hits] == [(6, ["tasks", "large", "result"])]


async def test_a_search_stops_at_its_limit(visitor: Visitor) -> None:
    *hits, last = await _search(visitor, "a", limit=3)
    assert len(hits) == 3
    assert last["truncated"] is True


async def test_decisions_with_their_reasons(visitor: Visitor) -> None:
    found = (await visitor.get(f"/runs/{REVIEW}/decisions"))["decisions"]
    assert [(each["seq"], each["agent"], each["confidence"]) for each in found] == [
        (4, "atlas", 0.7),
        (9, "atlas", 0.7),
    ]
    assert not any(each["undone"] for each in found)


async def test_nothing_is_waited_for_and_nothing_was_made(visitor: Visitor) -> None:
    assert await visitor.get(f"/runs/{REVIEW}/questions") == {"waits": []}
    assert await visitor.get("/questions") == {"waits": []}
    assert await visitor.get(f"/runs/{REVIEW}/outputs") == {"outputs": []}


async def test_a_run_without_a_definition_has_its_path_all_the_same(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/workflow")
    assert (found["name"], found["phases"]) == ("review", [])
    assert [(each["phase"], each["seq"]) for each in found["path"]] == [("find", 1), ("write", 8)]


async def test_a_family(visitor: Visitor) -> None:
    found = await visitor.get(f"/families/{FORK}")
    assert found["family"] == REVIEW
    assert [(each["run"], each["origin"]) for each in found["runs"]] == [
        (REVIEW, None),
        (FORK, {"run": REVIEW, "seq": 3}),
    ]


async def test_a_run_is_verified(visitor: Visitor) -> None:
    found = await visitor.get(f"/runs/{REVIEW}/verify")
    assert found == {"whole": True, "problems": [], "newest_whole": f"{REVIEW}@{HEAD}"}


async def test_a_run_can_be_carried_away(visitor: Visitor) -> None:
    found = await visitor.client.get(f"/api/runs/{REVIEW}/export")
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-disposition"].startswith("attachment")
    assert int(found.headers["content-length"]) == len(found.content) > 1000


@pytest.mark.parametrize(
    ("path", "query", "status", "error"),
    [
        ("/runs/nobody", {}, 404, "UnknownRun"),
        (f"/runs/{REVIEW}/snapshots/99", {}, 404, "UnknownSnapshot"),
        (f"/runs/{REVIEW}/snapshots/later", {}, 422, "BadRequest"),
        (f"/runs/{REVIEW}/snapshots/1/state", {"path": ["nothing"]}, 404, "UnknownPath"),
        (f"/runs/{REVIEW}/snapshots/1/state", {"path": {"a": 1}}, 400, "BadRequest"),
        (f"/runs/{REVIEW}/blame", {"path": ["nothing", "at all"]}, 404, "UnknownPath"),
        (f"/runs/{REVIEW}/touches", {"path": ["nothing"]}, 404, "UnknownPath"),
        (f"/runs/{REVIEW}/first", {"expr": "completed_tasks >"}, 400, "BadExpression"),
        (f"/runs/{REVIEW}/search", {"q": ""}, 422, "BadRequest"),
        (f"/runs/{REVIEW}/outputs/a.txt", {}, 404, "UnknownPath"),
        ("/diff", {"from": "nobody", "to": REVIEW}, 404, "UnknownRun"),
        ("/diff", {"to": REVIEW}, 422, "BadRequest"),
        ("/runs/../x", {}, 404, "NotFound"),
        ("/nothing", {}, 404, "NotFound"),
    ],
)
async def test_what_cannot_be_answered_is_said(
    visitor: Visitor, path: str, query: dict[str, Any], status: int, error: str
) -> None:
    found, body = await visitor.refused(path, **query)
    assert (found, body["error"]) == (status, error)
    assert "Traceback" not in body["message"]


async def test_large_answers_are_packed(visitor: Visitor) -> None:
    found = await visitor.client.get(f"/api/runs/{REVIEW}/snapshots/head/state")
    assert found.headers["content-encoding"] == "gzip"
    assert found.headers["vary"] == "Accept-Encoding"
    plain = await visitor.client.get(
        f"/api/runs/{REVIEW}/snapshots/head/state", headers={"Accept-Encoding": "identity"}
    )
    assert "content-encoding" not in plain.headers
    assert plain.json() == found.json()
