"""`configs/research.yaml` from the command line, with the test model: no key, no network."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestra.agents.llm.models import missing_extra
from tests.tidy.project import ROOT
from tests.unit.cli.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name in ("agents", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return Project(tmp_path)


def _state(project: Project) -> Any:
    return json.loads(project.run("show", "r1", "--json").stdout)["state"]


def test_the_file_is_in_order(project: Project) -> None:
    assert "is in order: 4 phases, 5 agents" in project.run("check", "configs/research.yaml").stdout


def test_a_question_becomes_a_report(project: Project) -> None:
    done = project.run(
        "run", "configs/research.yaml", "--run-id", "r1", "--input", "question=Why is the sea salt?"
    )
    assert "✔ completed  r1" in done.stdout, done.stderr
    report = (project.folder / "outputs/r1/publish/report.md").read_text()
    assert report.startswith("# Why is the sea salt?\n\n")
    state = _state(project)
    plan = state["context"]["plan"]
    assert plan
    assert all(set(each) == {"name", "task", "why", "alternatives"} for each in plan)
    planned = [each for each in state["decisions"] if each["kind"] == "assignment_planned"]
    assert [each["rationale"] for each in planned] == [each["why"] for each in plan]
    assert [len(each["alternatives"]) for each in planned] == [len(each["alternatives"]) for each in plan]
    assert len(state["context"]["notes"]) == len(plan)
    called = [(each["tool"], each["status"]) for each in state["tool_calls"].values()]
    assert called == [("search_sources", "done")] * len(plan)


def test_the_report_is_revised_until_the_rounds_are_over(project: Project) -> None:
    flow = project.folder / "configs" / "research.yaml"
    flow.write_text(flow.read_text().replace("threshold: 0.8", "threshold: 1.0"))
    project.run("run", "configs/research.yaml", "--run-id", "r1")
    said = [each for each in _state(project)["messages"].values() if each["agent"] == "writer"]
    asked = [each["parts"][0]["text"] for each in said if each["role"] == "user"]
    assert [text.startswith("Your answer was looked at") for text in asked] == [False, True, True]


# --- cassettes


def test_a_run_is_played_again_for_nothing(project: Project) -> None:
    project.run("run", "configs/research.yaml", "--run-id", "r0", "--record", "said.jsonl")
    first = (project.folder / "outputs/r0/publish/report.md").read_text()
    recorded = (project.folder / "said.jsonl").read_text()
    project.run("run", "configs/research.yaml", "--run-id", "r1", "--replay", "said.jsonl")
    assert (project.folder / "outputs/r1/publish/report.md").read_text() == first
    project.run("run", "configs/research.yaml", "--run-id", "r2", "--record", "said.jsonl")
    assert len((project.folder / "said.jsonl").read_text().splitlines()) == len(recorded.splitlines())


def test_a_changed_prompt_is_named_with_what_changed(project: Project) -> None:
    project.run("run", "configs/research.yaml", "--record", "said.jsonl")
    file = project.folder / "agents/research/planner.md"
    file.write_text(file.read_text().replace("You lead a small", "You lead a large"))
    done = project.run("run", "configs/research.yaml", "--run-id", "r1", "--replay", "said.jsonl", code=1)
    assert "has no answer for step 1 of 'planner': its prompt has changed." in done.stdout
    assert "               - You lead a small research team." in done.stdout
    assert "               + You lead a large research team." in done.stdout
    assert "site-packages" not in done.stdout  # where the library stood says nothing to anybody


@pytest.mark.parametrize(
    ("text", "option", "said"),
    [
        ("nonsense\n", "--replay", "it is no cassette"),
        ("nonsense\n", "--record", "it is no cassette"),
        (None, "--replay", "there is no such file"),
        ('{"cassette":1,"workflow":"other","digest":""}\n', "--replay", "of the workflow 'other'"),
        ('{"cassette":1,"workflow":"other","digest":""}\n', "--record", "of the workflow 'other'"),
        ('{"cassette":1,"workflow":"research","digest":""}\n{"ag', "--replay", "line 2 is not complete"),
    ],
)
def test_a_cassette_that_is_no_use_is_told_before_there_is_a_run(
    project: Project, text: str | None, option: str, said: str
) -> None:
    file = project.folder / "said.jsonl"
    if text is not None:
        file.write_text(text)
    done = project.run("run", "configs/research.yaml", option, "said.jsonl", code=2)
    assert said in done.stderr
    assert project.json("runs") == []
    assert text is None or file.read_text() == text


def test_runs_that_were_cut_off_are_left_alone_while_answers_are_recorded(project: Project) -> None:
    process = project.at_the_gate()
    process.kill()
    process.communicate()
    project.go()
    project.run("run", "flow.yaml", "--run-id", "r2", "--record", "said.jsonl")
    assert project.status("r1") == "running"  # as its process left it


def test_a_run_that_waited_is_recorded_and_replayed_to_its_end(project: Project) -> None:
    (project.folder / "post.py").write_text(
        'def send(text: str) -> str:\n    """Send it."""\n    return "sent"\n'
    )
    (project.folder / "clerk.md").write_text(
        "---\nmodel: test\ntools: post.py\nrisky: send\n---\nBe brief.\n"
    )
    flow = "name: letter\nagents: {clerk: clerk.md}\nphases: {only: {specialists: {clerk: Send it}}}\n"
    (project.folder / "letter.yaml").write_text(flow)
    for run, option in (("r1", "--record"), ("r2", "--replay")):
        project.run("run", "letter.yaml", "--run-id", run, option, "said.jsonl", code=3)
        project.run("answer", run, "approve")
        project.run("resume", run, option, "said.jsonl")
        assert project.status(run) == "completed"
    assert (
        len((project.folder / "said.jsonl").read_text().splitlines()) == 3
    )  # what it is of, and two answers
    refused = project.run("resume", "r2", "--record", "a.jsonl", "--replay", "said.jsonl", code=2)
    assert "at the same time" in refused.stderr


# --- the model in this process


@pytest.mark.skipif(missing_extra("local") is not None, reason=f"needs {missing_extra('local')}")
def test_a_real_model_makes_a_report(project: Project) -> None:
    flow = project.folder / "configs" / "research.yaml"  # as it is, but for how long it may take
    text = flow.read_text().replace("rounds: 2", "rounds: 1")
    for name in ("researcher", "writer"):
        path = f"../agents/research/{name}.md"
        text = text.replace(f"{name}: {path}\n", f"{name}: {{path: {path}, max_tokens: 150}}\n")
        text = text.replace(f"    path: {path}\n", f"    path: {path}\n    max_tokens: 150\n")
    flow.write_text(text)
    command = ("run", "configs/research.yaml", "--run-id", "r1", "--model", "local", "--record", "said.jsonl")
    assert "✔ completed  r1" in project.run(*command).stdout
    report = (project.folder / "outputs/r1/publish/report.md").read_text()
    assert report.startswith("# What is this project for?\n\n")
    assert len(report) > 100
    state = _state(project)
    plan = state["context"]["plan"]
    assert plan
    assert all(set(each) == {"name", "task", "why", "alternatives"} for each in plan)
    assert {each["status"] for each in state["tasks"].values()} == {"completed"}
    called = {(each["tool"], each["status"]) for each in state["tool_calls"].values()}
    assert called == {("search_sources", "done")}
    asked = {each["generation"]["model"] for each in state["messages"].values() if each.get("generation")}
    assert asked == {"local"}
    project.run(
        "run", "configs/research.yaml", "--run-id", "r2", "--model", "local", "--replay", "said.jsonl"
    )
    assert (project.folder / "outputs/r2/publish/report.md").read_text() == report
