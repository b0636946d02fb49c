"""Actions over HTTP on runs that this process plays, and on runs that nobody plays."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.model.workflow import Input
from orchestra.stores.registry import open_store
from tests.unit.engine.support import Theatre, does, flow, phase, policy
from tests.web.conftest import STORES
from tests.web.support import Visitor, served

pytestmark = pytest.mark.anyio
VERBS = ("fork", "replay", "resume", "rollback", "pause", "cancel", "snapshot", "pin", "note")


class Stage:
    """A workflow of three phases: it looks, asks, and works until it may go on."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.began = 0
        self.broken = False
        self.workflow = flow(
            phase("look", does("looks"), next=["ask"]),
            phase("ask", does("asks"), next=["work"]),
            phase("work", does("works")),
            policy=policy("fail"),
            inputs=[Input(name="topic", type="text")],
            context={"found": "append"},
        )

    async def looks(self, ctx: Any) -> str:
        await ctx.decide("Look closely", rationale="it is small", alternatives=["glance"])
        await ctx.write("seen.md", f"# {ctx.inputs['topic']}")
        return f"saw {ctx.inputs['topic']}"

    async def asks(self, ctx: Any) -> str:
        return str(await ctx.ask("Publish?", choices=("yes", "no")))

    async def works(self, ctx: Any) -> str:
        self.began += 1
        if self.broken:
            raise RuntimeError("it is broken")
        await self.go.wait()
        return "done"

    @property
    def functions(self) -> dict[str, Any]:
        return {"looks": self.looks, "asks": self.asks, "works": self.works}


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture(params=STORES, ids=lambda url: url.partition(":")[0])
async def visitor(request: pytest.FixtureRequest, tmp_path: Path, stage: Stage) -> AsyncIterator[Visitor]:
    """Somebody who may change things, and a run `run` that waits for an answer."""
    with open_store(request.param.format(tmp_path), create=True) as store:
        theatre = Theatre(tmp_path, store)
        async with theatre.house(stage.functions) as orchestra:
            await orchestra.run(stage.workflow, {"topic": "tea"}, run="run")
            async with served(store, orchestra) as made:
                yield made


async def _answered(visitor: Visitor) -> None:
    await visitor.post("/runs/run/answer", wait="", value="yes")


async def test_a_question_is_listed_answered_and_the_run_goes_on_here(visitor: Visitor, stage: Stage) -> None:
    (wait,) = (await visitor.get("/questions"))["waits"]
    assert (wait["run"], wait["kind"], wait["text"]) == ("run", "question", "Publish?")
    assert wait["choices"] == ["yes", "no"]
    done = await visitor.post("/runs/run/answer", wait=wait["wait"], value="yes", play=True)
    assert done["playing"] is True
    stage.go.set()
    found = await visitor.until("run", status="completed", playing=False)
    assert found["tasks"] == {"done": 3, "total": 3}
    assert (await visitor.get("/questions"))["waits"] == []
    (closed,) = (await visitor.get("/runs/run/questions"))["waits"]
    assert (closed["status"], closed["answer"]) == ("closed", "yes")


async def test_an_answer_that_is_no_choice_is_refused(visitor: Visitor) -> None:
    body = await visitor.post("/runs/run/answer", status=409, wait="", value="perhaps")
    assert body["error"] == "BadOrder"
    assert "yes, no" in body["message"]


async def test_a_run_is_resumed_paused_and_cancelled_here(visitor: Visitor, stage: Stage) -> None:
    await _answered(visitor)
    assert await visitor.post("/runs/run/resume") == {"run": "run", "playing": True}
    await visitor.until("run", status="running", phase="work", owned=True, playing=True)
    again = await visitor.post("/runs/run/resume", status=409)
    assert again["error"] == "RunOwned"
    assert (await visitor.post("/runs/run/pause", reason="lunch"))["status"] == "paused"
    assert await visitor.post("/runs/run/resume") == {"run": "run", "playing": True}
    await visitor.until("run", status="running")
    assert (await visitor.post("/runs/run/snapshot", note="before the storm"))["playing"] is True
    events = (await visitor.get("/runs/run/headlines", first=0))["rows"][-1]["events"]
    assert "before the storm" in events[0]["what"]
    await visitor.post("/runs/run/cancel", reason="no longer wanted")
    await visitor.until("run", status="cancelled", playing=False, owned=False)
    assert (await visitor.post("/runs/run/resume", status=409))["error"] == "NotResumable"


async def test_a_fork_with_a_changed_value_does_again_what_depends_on_it(visitor: Visitor) -> None:
    at = (await visitor.get("/runs/run/first", expr="completed_tasks == 1"))["seq"]
    plan = await visitor.get("/runs/run/plan", action="fork", at=at, values={"inputs.topic": "coffee"})
    assert plan["action"] == "fork"
    assert plan["to"] == at
    assert any("is not touched" in sentence for sentence in plan["sentences"])
    before = await visitor.get("/runs/run")
    made = await visitor.post(
        "/runs/run/fork", at=0, values={"inputs.topic": "coffee"}, play=True, reason="try"
    )
    assert made["playing"] is True
    new = await visitor.until(made["run"], status="waiting")
    assert new["origin"] == {"run": "run", "seq": 0}
    assert new["inputs"] == {"topic": "coffee"}
    found = await visitor.get(
        f"/runs/{made['run']}/snapshots/head/state", path=["tasks", "look/looks", "result"]
    )
    assert found["value"] == "saw coffee"
    assert (await visitor.get("/runs/run")) == before | {"forks": (await visitor.get("/runs/run"))["forks"]}
    assert (await visitor.get("/runs/run"))["forks"][0]["run"] == made["run"]


async def test_a_fork_waits_until_it_is_resumed_unless_it_is_to_play(visitor: Visitor) -> None:
    made = await visitor.post("/runs/run/fork", at="head")
    assert made["playing"] is False
    assert (await visitor.get(f"/runs/{made['run']}"))["status"] == "paused"


async def test_a_replay_plays_at_once(visitor: Visitor) -> None:
    made = await visitor.post("/runs/run/replay", at=0)
    found = await visitor.until(made["run"], status="waiting", playing=True)
    assert found["questions"] == 1


@pytest.mark.parametrize(
    ("values", "status", "error"),
    [
        ({"inputs.nothing": 1}, 409, "BadOrder"),
        ({"inputs.topic": {"$nothing": 1}}, 400, "BadRequest"),
    ],
)
async def test_a_value_that_cannot_be_set_is_refused(
    visitor: Visitor, values: dict[str, Any], status: int, error: str
) -> None:
    assert (await visitor.post("/runs/run/fork", status=status, at=0, values=values))["error"] == error
    assert len((await visitor.get("/runs"))["runs"]) == 1


async def test_a_rollback_says_first_what_it_means_and_leaves_history(visitor: Visitor) -> None:
    head = (await visitor.get("/runs/run"))["head"]
    plan = await visitor.get("/runs/run/plan", action="rollback", at=0)
    assert plan["undone"] == ["look/looks"]
    assert (plan["at"], plan["to"]) == (head, 0)
    assert any("look/looks" in sentence for sentence in plan["sentences"])
    done = await visitor.post("/runs/run/rollback", to=0, reason="try again")
    assert done == {"run": "run", "to": 0, "playing": False}
    found = await visitor.get("/runs/run")
    (rollback,) = found["rollbacks"]
    assert (rollback["from_seq"], rollback["to_seq"], rollback["reason"]) == (head, 0, "try again")
    assert rollback["seq"] == head + 1
    assert found["status"] == "paused"
    outline = await visitor.get("/runs/run/outline")
    assert [(jump["seq"], jump["from"], jump["to"]) for jump in outline["jumps"]] == [(head + 1, head, 0)]
    assert (await visitor.get(f"/runs/run/snapshots/{head}"))["undone"] is True
    assert (await visitor.get("/runs/run/snapshots/0"))["undone"] is False
    jumped = await visitor.get(f"/runs/run/snapshots/{head + 1}")
    assert jumped["builds_on"] == {"run": "run", "seq": 0}
    assert [each["undone"] for each in (await visitor.get("/runs/run/decisions"))["decisions"]] == [True]


async def test_a_rollback_may_go_on_at_once(visitor: Visitor) -> None:
    head = (await visitor.get("/runs/run"))["head"]
    done = await visitor.post("/runs/run/rollback", to="phase:look", play=True)
    assert done["playing"] is True
    found = await visitor.until("run", status="waiting")
    assert found["head"] > head + 1


@pytest.mark.parametrize("to", ["head", "last"])
async def test_a_rollback_to_nowhere_is_refused(visitor: Visitor, to: str) -> None:
    await visitor.post("/runs/run/rollback", status=409 if to == "head" else 422, to=to)


async def test_a_failed_assignment_is_tried_again(visitor: Visitor, stage: Stage) -> None:
    stage.broken = True
    await _answered(visitor)
    await visitor.post("/runs/run/resume")
    failed = await visitor.until("run", status="failed", playing=False)
    assert "it is broken" in failed["failure"]["message"]
    plan = await visitor.get("/runs/run/plan", action="resume")
    assert plan["again"] == ["work/works"]
    stage.broken = False
    stage.go.set()
    await visitor.post("/runs/run/retry", task="works", play=True)
    await visitor.until("run", status="completed")


async def test_a_key_that_nobody_waits_for_cannot_be_provided(visitor: Visitor) -> None:
    body = await visitor.post("/runs/run/provide", status=409, name="A_KEY")
    assert "does not wait for" in body["message"]


async def test_pins_and_notes(visitor: Visitor) -> None:
    await visitor.post("/runs/run/pin", at=2, text="the good one")
    await visitor.post("/runs/run/note", at=2, text="<b>look</b>\nhere")
    found = await visitor.get("/runs/run/snapshots/2")
    assert (found["pin"], found["note"]) == ("the good one", "<b>look</b>\nhere")
    flags = (await visitor.get("/runs/run/snapshots"))["columns"]["flags"]
    assert flags[2] & 64
    assert flags[2] & 128
    await visitor.post("/runs/run/pin", at=2, on=False)
    await visitor.post("/runs/run/note", at=2, text="")
    found = await visitor.get("/runs/run/snapshots/2")
    assert (found["pin"], found["note"]) == (None, None)


async def test_a_task_is_restored_from_a_checkpoint(visitor: Visitor) -> None:
    head = (await visitor.get("/runs/run"))["head"]
    uuid = (await visitor.get("/runs/run/snapshots/1"))["uuid"]
    done = await visitor.post("/tasks/run/restore", checkpointId=uuid)
    assert done == {"success": True, "message": "Task restored from checkpoint"}
    found = await visitor.until("run", status="waiting", playing=True)
    assert found["rollbacks"][0]["to_seq"] == 1
    assert found["head"] > head + 1


@pytest.mark.parametrize(("task", "checkpoint"), [("nobody", 1), ("run", 999), ("run", "feedbeef")])
async def test_a_task_that_cannot_be_restored(visitor: Visitor, task: str, checkpoint: Any) -> None:
    body = await visitor.post(f"/tasks/{task}/restore", status=500, checkpointId=checkpoint)
    assert body == {"error": "Failed to restore from checkpoint"}


async def test_outputs_come_from_the_store(visitor: Visitor) -> None:
    (output,) = (await visitor.get("/runs/run/outputs"))["outputs"]
    assert output["media_type"] == "text/markdown"
    assert output["stored"] is True
    found = await visitor.client.get(f"/api/runs/run/outputs/{output['path']}")
    assert found.text == "# tea"
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
    assert found.headers["content-security-policy"].startswith("sandbox")


async def test_the_workflow_is_a_graph_with_the_way_the_run_took(visitor: Visitor) -> None:
    found = await visitor.get("/runs/run/workflow")
    assert [(each["id"], each["status"], each["visits"]) for each in found["phases"]] == [
        ("look", "done", 1),
        ("ask", "current", 1),
        ("work", "not reached", 0),
    ]
    assert [(edge["from"], edge["to"], edge["taken"]) for edge in found["edges"]] == [
        ("look", "ask", 1),
        ("ask", "work", 0),
        ("work", "end", 0),
    ]
    assert (found["entry"], found["exits"]) == ("look", ["work"])
    assert [each["phase"] for each in found["path"]] == ["look", "ask"]
    assert all(each["seq"] is not None for each in found["path"])


async def test_a_browser_that_only_reads_changes_nothing(tmp_path: Path, stage: Stage) -> None:
    with open_store("memory:", create=True) as store:
        theatre = Theatre(tmp_path, store)
        async with theatre.house(stage.functions) as orchestra:
            await orchestra.run(stage.workflow, {"topic": "tea"}, run="run")
        before = store.last_no()
        async with served(store) as visitor:
            for verb in (
                "fork",
                "replay",
                "resume",
                "rollback",
                "pause",
                "cancel",
                "snapshot",
                "pin",
                "note",
            ):
                body = await visitor.post(f"/runs/run/{verb}", status=403)
                assert body["error"] == "ReadOnly"
            await visitor.post("/runs/run/answer", status=403, wait="", value="yes")
            await visitor.post("/tasks/run/restore", status=403, checkpointId=1)
            assert (await visitor.refused("/runs/run/plan", action="resume"))[0] == 403
        assert store.last_no() == before
        assert not store.annotations(store.runs(_everything())[0].run)


def _everything() -> Any:
    from orchestra.ports.store import RunQuery

    return RunQuery()
