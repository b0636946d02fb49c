"""Models that a run names: conditions see them, and agents need none of their own."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.project import Project

FLOW = """
name: talk
agents: {clerk: %s, plain: plain.py}
phases:
  work:
    specialists:
      clerk: {task: "Say it", when: "models != []"}
      plain: {task: "Do it", when: "models == []"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    (tmp_path / "plain.py").write_text("async def agent(ctx):\n    return ctx.task\n")
    (tmp_path / "clerk.md").write_text("---\nmodel: google:gemini-2.5-pro\n---\nYou are a clerk.\n")
    return made


def _done(project: Project, run: str) -> list[str]:
    state = json.loads(project.run("show", run, "--json").stdout)["state"]
    return [name for name, task in state["tasks"].items() if task["status"] == "completed"]


def test_an_agent_that_inherits_needs_no_model_of_its_own(project: Project) -> None:
    (project.folder / "flow.yaml").write_text(FLOW % "{path: clerk.md, model: inherit}")
    assert "is in order" in project.run("check", "flow.yaml").stdout
    project.run("run", "flow.yaml", "--run-id", "r1")
    assert _done(project, "r1") == ["work/plain"]
    project.run("run", "flow.yaml", "--run-id", "r2", "--model", "test")
    assert _done(project, "r2") == ["work/clerk"]


def test_a_model_whose_package_is_missing_is_no_hindrance_when_another_is_asked(project: Project) -> None:
    (project.folder / "flow.yaml").write_text(FLOW % "clerk.md")
    done = project.run("run", "flow.yaml", code=2)
    assert "pip install -e '.[google]'" in done.stderr
    project.run("run", "flow.yaml", "--run-id", "r1", "--model", "test")
    assert _done(project, "r1") == ["work/clerk"]
    done = project.run("run", "flow.yaml", "--model", "cohere:x", code=2)
    assert "The setting --model cannot be 'cohere:x'" in done.stderr


def test_without_a_model_an_agent_that_inherits_says_how_to_name_one(project: Project) -> None:
    flow = FLOW.replace(', when: "models != []"', "")
    (project.folder / "flow.yaml").write_text(flow % "{path: clerk.md, model: inherit}")
    done = project.run("run", "flow.yaml", "--run-id", "r1", code=1)
    assert "no model is named" in done.stdout
    assert "--model" in done.stdout


def test_tools_that_write_have_no_folder_to_read(project: Project) -> None:
    agent = "{path: clerk.md, model: test, folder: '.', tools: [Write, read_file]}"
    (project.folder / "flow.yaml").write_text(FLOW % agent)
    done = project.run("check", "flow.yaml", code=2)
    assert "`Write` writes, and what is in a `folder` is only read" in done.stdout
    agent = "{path: clerk.md, model: test, folder: '{{ inputs.pth'}"
    (project.folder / "flow.yaml").write_text(FLOW % agent)
    assert "flow.yaml:3:" in project.run("check", "flow.yaml", code=2).stdout
