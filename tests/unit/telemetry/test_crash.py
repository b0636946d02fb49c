"""After a crash: the journal catches up, and the trace tells what was interrupted."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.ids import AgentId, PhaseId, RunId, TaskId
from orchestra.model import events as ev
from orchestra.model.records import Generation, MessageStatus
from orchestra.model.state import WorkflowRef
from orchestra.stores.memory import MemoryStore
from orchestra.telemetry import names
from orchestra.telemetry.tracing import interrupted_spans
from orchestra.testing.clock import START, FakeClock
from tests.unit.telemetry import crashing
from tests.unit.telemetry.support import by_name, crash, journal, metrics, spans, stored

RUN = "crashing_1"
pytestmark = pytest.mark.anyio


async def _resume(folder: Path) -> None:
    functions = {"quick": crashing.quick, "deadly": crashing.quick}
    async with Orchestra(
        f"sqlite:{folder}/store.db", functions=functions, project=folder, telemetry=True, events=True
    ) as house:
        ending = await house.resume(RUN)
    assert ending.kind == "completed"


def _journal_is_that_of_the_store(folder: Path) -> list[dict[str, Any]]:
    lines = journal(folder, RUN)
    assert [(each["seq"], each["digest"]) for each in lines] == stored(folder, RUN)
    return lines


@pytest.mark.parametrize("damage", ["none", "torn", "behind", "empty", "foreign", "gone"])
async def test_the_journal_catches_up(tmp_path: Path, damage: str) -> None:
    crash(tmp_path, RUN)
    file = tmp_path / "outputs" / RUN / "events.jsonl"
    content = file.read_bytes()
    first = content.partition(b"\n")[0] + b"\n"
    match damage:
        case "torn":
            file.write_bytes(content + b'{"seq":99,"at":"20')
        case "behind":
            file.write_bytes(first)
        case "empty":
            file.write_bytes(b"")
        case "foreign":
            file.write_bytes(b'{"seq":4000,"at":"2020","digest":"00"}\n')
        case "gone":
            file.unlink()
        case _:
            assert damage == "none"
    await _resume(tmp_path)
    lines = _journal_is_that_of_the_store(tmp_path)
    assert lines[0]["triggers"][0] == "run_started"
    assert lines[-1]["status"] == "completed"
    kinds = [event["kind"] for each in lines for event in each["events"]]
    assert "run_resumed" in kinds


async def test_what_was_interrupted_is_told_before_anything_else_ends(tmp_path: Path) -> None:
    """The process that takes the run up may die as well."""
    crash(tmp_path, RUN)
    told: list[list[str]] = []

    async def looks(_: Any) -> None:
        assert await house.flush()
        told.append([each["attributes"]["orchestra.status"] for each in spans(tmp_path, RUN)])

    async with Orchestra(
        f"sqlite:{tmp_path}/store.db",
        functions={"quick": crashing.quick, "deadly": looks},
        project=tmp_path,
        telemetry=True,
    ) as house:
        await house.resume(RUN)
    assert "interrupted" in told[0]


async def test_the_trace_tells_what_was_interrupted(tmp_path: Path) -> None:
    crash(tmp_path, RUN)
    await _resume(tmp_path)
    found = spans(tmp_path, RUN)
    identities = {each["spanId"] for each in found}
    assert len(identities) == len(found)
    assert all(each["parentSpanId"] in identities for each in found if "parentSpanId" in each)
    interrupted, resumed = by_name(found, "invoke_workflow crashing")
    assert interrupted["attributes"]["orchestra.status"] == "interrupted"
    assert interrupted["status"]["code"] == 2
    assert resumed["attributes"]["orchestra.recovered"] is True
    assert resumed["traceId"] == interrupted["traceId"]
    assert [link["spanId"] for link in resumed["links"]] == [interrupted["spanId"]]
    first, again = by_name(found, "invoke_agent three")
    assert (first["attributes"]["orchestra.status"], first["attributes"]["orchestra.attempt"]) == (
        "interrupted",
        1,
    )
    assert (again["attributes"]["orchestra.status"], again["attributes"]["orchestra.attempt"]) == (
        "completed",
        2,
    )
    broken, whole = by_name(found, "phase second")
    assert (broken["parentSpanId"], whole["parentSpanId"]) == (interrupted["spanId"], resumed["spanId"])


async def test_a_recovery_that_held_is_counted(tmp_path: Path) -> None:
    crash(tmp_path, RUN)
    await _resume(tmp_path)
    found = metrics(tmp_path, RUN)
    (rate,) = found["orchestra.recovery.success_rate"]["gauge"]["dataPoints"]
    assert rate["asDouble"] == 1.0


async def test_a_request_without_an_answer_is_told_below_its_attempt() -> None:
    """One was answered before the process died, the other was not."""
    run, task, store = RunId(RUN), TaskId("work/talk"), MemoryStore()
    agent = AgentId("talk")

    def said(number: int, status: MessageStatus) -> ev.MessagePosted:
        return ev.MessagePosted(
            at=START,
            message=f"{task}#{number}",
            role="assistant",
            agent=agent,
            task=task,
            status=status,
            model="openai-chat:gpt",
            generation=Generation(model="openai-chat:gpt"),
        )

    async with CheckpointManager(store, clock=FakeClock(), owner="test") as manager:
        active = await manager.begin(ev.RunStarted(at=START, run=run, workflow=WorkflowRef(name="talk")))
        await manager.record(
            active,
            [
                ev.PhaseStarted(at=START, phase=PhaseId("work")),
                ev.TaskPlanned(at=START, task=task, agent=agent, phase=PhaseId("work")),
                ev.AgentLaunched(at=START, agent=agent, task=task),
            ],
        )
        for message in (said(0, "streaming"), said(0, "complete"), said(1, "streaming")):
            await manager.record(active, [message])
        found = interrupted_spans(manager.archive, run, "talk", active.seq + 1)
    assert [each.name for each in found] == [
        "invoke_workflow talk",
        "phase work",
        "invoke_agent talk",
        "chat gpt",
    ]
    assert found[3].parent == found[2].id
    assert found[3].status == "interrupted"
    assert found[3].attributes[names.PROVIDER] == "openai"
