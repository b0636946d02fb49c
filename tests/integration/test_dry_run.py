"""`orchestra run --dry-run`: the whole way, at no cost, and nothing is left of it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.project import ROOT
from tests.unit.cli.project import Project

WRITER = """---
model: openai:gpt-5
tools: [tools.py, mcp:post]
risky: true
mcp: servers.json
---
Write on {{ context.plan.topic }}, for {{ context.plan.reader.name }}.
"""
TRAP = 'from pathlib import Path\nPath("touched").touch()\n'
FLOW = """
name: mixed
inputs: {goal: tea}
context: {plan: replace, done: append}
agents:
  plan: plan.py
  tell: {command: [sh, ./tell.sh]}
  writer: {path: writer.md, limits: {requests: 3}}
  judge: plan.py
phases:
  plan:
    breakpoint: true
    specialists: {plan: {task: "Plan {{ inputs.goal }}", into: plan}}
    next: [{to: write, when: "context.plan.count > 0 and context.plan.ready"}, end]
  write:
    specialists:
      writer: {foreach: context.plan.parts, task: "{{ item.title }} of {{ context.plan.topic }}", into: done}
      tell: {needs: [writer], task: "Tell {{ needs.writer }}", outputs: [told.txt]}
    evaluate: {agent: judge, rubric: [truth], revise: 1}
    on_low_confidence: [{ask: "Is that enough?"}]
policy: {confidence: {threshold: 0.9}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    files = {
        "flow.yaml": FLOW,
        "writer.md": WRITER,
        "plan.py": TRAP + "async def agent(ctx): ...\n",
        "tell.sh": "touch touched\n",
        "tools.py": TRAP + "def send(text: str) -> str:\n    return text\n",
        "servers.json": json.dumps({"mcpServers": {"post": {"command": "touch", "args": ["touched"]}}}),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return made


def _dry(project: Project, *arguments: str, code: int = 0) -> Any:
    return json.loads(project.run("run", *arguments, "--dry-run", "--json", code=code).stdout)


def test_the_whole_workflow_is_walked_and_nothing_happens(project: Project) -> None:
    before = sorted(project.folder.rglob("*"))
    found = _dry(project, "flow.yaml")
    assert sorted(project.folder.rglob("*")) == before
    assert found["walk"]["status"] == "completed"
    assert found["walk"]["phases"] == ["plan", "write"]
    writer = next(each for each in found["agents"] if each["agent"] == "writer")
    assert writer["models"] == ["openai:gpt-5"]
    assert writer["walked"]["requests"] == 2  # a tool is called, by name alone
    assert writer["at_most"]["assignments"] == 2
    assert writer["at_most"]["requests"] == 6
    assert writer["goes_over"] == "context.plan.parts"
    assert found["at_most"]["cost_micros"] == writer["at_most"]["cost_micros"] > 0
    assert "judge, plan, tell" in found["not_known"][0]
    assert any("context.plan.parts" in each for each in found["not_known"])


def test_it_is_told_to_people(project: Project) -> None:
    said = project.run("run", "flow.yaml", "--dry-run").stdout
    assert "✔ dry run of mixed: no model was asked, nothing of yours was run, nothing is kept" in said
    assert "walked     plan → write" in said
    assert "1 of 2*" in said
    assert "at most    6 requests, 2,400,000 tokens, 24 to pay" in said


def test_a_model_without_a_price_is_told(project: Project) -> None:
    found = _dry(project, "flow.yaml", "--model", "openai:nobody-knows-it")
    assert found["at_most"] == {"requests": 6, "tokens": None, "cost_micros": None}
    assert "writer: `openai:nobody-knows-it` has no price that is known" in found["not_known"]


def test_questions_to_people_are_answered_and_told(project: Project) -> None:
    flow = project.folder / "flow.yaml"
    text = flow.read_text().replace("path: writer.md,", "path: writer.md, confidence: true,")
    flow.write_text(text.replace("threshold: 0.9", "threshold: 1.0"))
    found = _dry(project, "flow.yaml")
    (asked,) = found["walk"]["answered"]
    assert asked["question"].startswith("Is that enough?")
    assert asked["answer"] == "yes"


def test_a_way_that_ends_in_a_failure_is_one(project: Project) -> None:
    flow = project.folder / "flow.yaml"
    flow.write_text(flow.read_text().replace("limits: {requests: 3}", "limits: {requests: 1}"))
    found = _dry(project, "flow.yaml", code=1)
    assert found["walk"]["failure"]["error"] == "BudgetExceeded"


def test_the_team_that_ships_is_walked_with_other_models(tmp_path: Path) -> None:
    for name in ("agents", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    project = Project(tmp_path)
    found = _dry(project, "configs/research.yaml", "--model", "anthropic:claude-opus-4-5")
    assert found["walk"]["phases"] == ["plan", "investigate", "write", "publish"]
    assert not (tmp_path / "outputs").exists()
    assert found["at_most"]["cost_micros"] > 0


def test_limits_that_agents_share_are_told(project: Project) -> None:
    flow = project.folder / "flow.yaml"
    limits = "policy: {limits: {cost: 0.5, requests: 9, on_limit: ask}, "
    flow.write_text(flow.read_text().replace("policy: {", limits))
    told = "how much sooner the limits of the run end it (9 requests, 0.5 cost; ask): not in the sum"
    assert told in _dry(project, "flow.yaml")["not_known"]


def test_a_cassette_is_no_use_in_a_dry_run(project: Project) -> None:
    done = project.run("run", "flow.yaml", "--dry-run", "--record", "said.jsonl", code=2)
    assert "a dry run asks no model and records none" in done.stderr
