"""`configs/research.yaml` from the command line, with the test model: no key, no network."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

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
