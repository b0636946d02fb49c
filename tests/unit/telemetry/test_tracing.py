"""Spans of real runs, as their files hold them."""

from itertools import product
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.ids import RunId
from orchestra.telemetry.records import span_id, trace_id
from orchestra.telemetry.tracing import leg_id
from tests.unit.telemetry.support import (
    CONTENT,
    FUNCTIONS,
    SECRET,
    by_name,
    journal,
    played,
    spans,
    workflow,
)

RUN = "letters_1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("traced")
    ending = anyio.run(played, made)
    assert ending.kind == "completed"
    return made


@pytest.fixture
def found(folder: Path) -> list[dict[str, Any]]:
    return spans(folder, RUN)


def test_the_tree_of_a_run(found: list[dict[str, Any]]) -> None:
    names = {each["spanId"]: each["name"] for each in found}
    tree = sorted((names.get(each.get("parentSpanId", ""), ""), each["name"]) for each in found)
    assert tree == [
        ("", "invoke_workflow letters"),
        ("evaluation draft", "invoke_agent apollo:judge"),
        ("invoke_workflow letters", "phase draft"),
        ("invoke_workflow letters", "phase print"),
        ("phase draft", "evaluation draft"),
        ("phase draft", "invoke_agent writer"),
        ("phase print", "invoke_agent printer"),
        ("phase print", "invoke_agent printer"),
    ]
    assert len(names) == len(found), "ids are unique"
    assert {each["traceId"] for each in found} == {trace_id(RunId(RUN))}


def test_children_lie_inside_their_parents(found: list[dict[str, Any]]) -> None:
    by_id = {each["spanId"]: each for each in found}
    for each in found:
        begin, end = int(each["startTimeUnixNano"]), int(each["endTimeUnixNano"])
        assert begin <= end
        parent = by_id.get(each.get("parentSpanId", ""))
        if parent is not None:
            assert int(parent["startTimeUnixNano"]) <= begin
            assert end <= int(parent["endTimeUnixNano"])


def test_an_attempt_says_who_what_and_how_much(found: list[dict[str, Any]]) -> None:
    (writer,) = by_name(found, "invoke_agent writer")
    assert writer["attributes"] == {
        "orchestra.run": RUN,
        "orchestra.workflow": "letters",
        "orchestra.seq": 0,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "writer",
        "orchestra.task": "draft/writer",
        "orchestra.attempt": 1,
        "orchestra.role": "mercury",
        "orchestra.generation": 0,
        "orchestra.phase": "draft",
        "orchestra.visit": 1,
        "orchestra.round": 1,
        "orchestra.confidence": 0.9,
        "orchestra.api_calls": 1,
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 12,
        "orchestra.status": "completed",
    }


def test_the_run_sums_up(found: list[dict[str, Any]]) -> None:
    (run,) = by_name(found, "invoke_workflow letters")
    told = run["attributes"]
    assert told["gen_ai.operation.name"] == "invoke_workflow"
    assert told["gen_ai.workflow.name"] == "letters"
    assert told["gen_ai.usage.input_tokens"] == 30
    assert (told["orchestra.status"], told["orchestra.recoveries"]) == ("completed", 0)
    assert "status" not in run


def test_an_error_is_told_without_its_secret(found: list[dict[str, Any]]) -> None:
    first, second = by_name(found, "invoke_agent printer")
    assert first["status"]["code"] == 2
    assert first["attributes"]["error.type"] == "ValueError"
    (error,) = [each for each in first["events"] if each["name"] == "exception"]
    assert error["attributes"] == {
        "exception.type": "ValueError",
        "exception.message": "the key [redacted] was refused",
    }
    assert (second["attributes"]["orchestra.attempt"], second["attributes"]["orchestra.status"]) == (
        2,
        "completed",
    )


def test_a_verdict_is_told(found: list[dict[str, Any]]) -> None:
    (evaluation,) = by_name(found, "evaluation draft")
    assert evaluation["attributes"]["orchestra.verdict"] == "accept"
    assert evaluation["attributes"]["orchestra.score"] == pytest.approx(0.9)
    results = [each for each in evaluation["events"] if each["name"] == "gen_ai.evaluation.result"]
    assert results[-1]["attributes"]["gen_ai.evaluation.score.label"] == "accept"


def test_snapshots_and_decisions_are_events(folder: Path, found: list[dict[str, Any]]) -> None:
    happened = [event for each in found for event in each["events"]]
    saved = [each["attributes"] for each in happened if each["name"] == "checkpoint.saved"]
    told = sorted(each["orchestra.seq"] for each in saved)
    assert told == [each["seq"] for each in journal(folder, RUN) if each["marked"]]
    assert all(each["orchestra.checkpoint.size"] > 0 for each in saved)
    assert any("run_started" in each["orchestra.checkpoint.triggers"] for each in saved)
    decided = [set(each["attributes"]) for each in happened if each["name"] == "decision.made"]
    assert {"orchestra.decision", "orchestra.agent", "orchestra.confidence"} in decided


def test_no_content_leaves_the_run(folder: Path) -> None:
    for file in (folder / "outputs" / RUN / "telemetry").iterdir():
        text = file.read_text(encoding="utf-8")
        assert CONTENT not in text
        assert SECRET not in text
    assert SECRET not in (folder / "outputs" / RUN / "events.jsonl").read_text(encoding="utf-8")


@pytest.mark.anyio
async def test_a_fork_is_linked_to_where_it_came_from(tmp_path: Path) -> None:
    async with Orchestra(
        f"sqlite:{tmp_path}/store.db", functions=FUNCTIONS, project=tmp_path, telemetry=True
    ) as house:
        await house.run(workflow(), run=RUN)
        await house.fork(RUN, 1, new="letters_2")
        await house.resume("letters_2")
    forked, resumed = by_name(spans(tmp_path, "letters_2"), "invoke_workflow letters")
    (link,) = forked["links"]
    assert (link["traceId"], link["spanId"]) == (trace_id(RunId(RUN)), leg_id(RunId(RUN), 0))
    assert forked["attributes"]["orchestra.status"] == "paused"
    (link,) = resumed["links"]
    assert (link["traceId"], link["spanId"]) == (forked["traceId"], forked["spanId"])
    assert resumed["attributes"]["orchestra.status"] == "completed"


def test_ids_have_the_right_shape_and_tell_spans_apart() -> None:
    one, other = RunId("a"), RunId("b")
    assert len(trace_id(one)) == 32
    assert trace_id(one) != trace_id(other)
    parts = product((one, other), "pq", "xy", (0, 1))
    made = {span_id(run, kind, key, seq) for run, kind, key, seq in parts}
    assert len(made) == 16
    assert {len(each) for each in made} == {16}
