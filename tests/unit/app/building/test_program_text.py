"""A workflow file printed as a program builds the same workflow, and type-checks."""

import runpy
from pathlib import Path

import pytest

from orchestra.agents.registry import KINDS
from orchestra.app.building.builder import WorkflowBuilder
from orchestra.app.building.program_text import program_text
from orchestra.config.load import LoadedWorkflow, load_workflow, parse_workflow
from tests.unit.app.building.flows import RICH, write_agents

ROOT = Path(__file__).parents[4]
SHORT = """
name: class
inputs: {who: world, many: [a, "b\\"c"], odd: .inf, any: , none: {default: null}}
context: {said: , sum: {reducer: sum}}
agents: {print: one.py, agent_file: "three.py:other", 1st: {command: sh -c true}, unused: three.py}
checkpoint: {store: "memory:", every: 5m}
phases:
  one:
    specialists:
      print:
      a: {agent: print, task: "two\\nlines", foreach: [1, {a: "ä"}, null], on_failure: degrade, needs: print}
      agent_file: A task of one line that is so long that it has no room on a line beside the rest
    evaluate: agent_file
    on_low_confidence: proceed
    next: two
  two:
    description: |
      A text of

      three lines with 'both' "quotes"
    evaluate: {agent: 1st, revise: {}, rubric: [a, b]}
    next: {to: end, when: true}
"""


def _build(text: str, folder: Path) -> LoadedWorkflow:
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    made = [each for each in runpy.run_path(str(program)).values() if isinstance(each, WorkflowBuilder)]
    assert len(made) == 1
    return made[0].build()


@pytest.mark.parametrize("text", [RICH, SHORT], ids=["rich", "short"])
def test_the_program_builds_the_same_workflow(text: str, tmp_path: Path) -> None:
    write_agents(tmp_path)
    loaded = parse_workflow(text, file="flow.yaml", folder=tmp_path, kinds=KINDS)
    made = _build(program_text(loaded), tmp_path)
    assert made.workflow == loaded.workflow


@pytest.mark.parametrize("file", sorted((ROOT / "configs").glob("*_*.yaml")), ids=lambda file: file.stem)
def test_what_ships_can_be_printed(file: Path, tmp_path: Path) -> None:
    loaded = load_workflow(file, KINDS)
    (tmp_path / "configs").mkdir()
    (tmp_path / "agents").symlink_to(ROOT / "agents")
    made = _build(program_text(loaded), tmp_path / "configs")
    assert made.workflow == loaded.workflow


def test_settings_of_a_file_are_handed_on(tmp_path: Path) -> None:
    write_agents(tmp_path)
    text = program_text(parse_workflow(SHORT, file="flow.yaml", folder=tmp_path, kinds=KINDS))
    assert 'async with Orchestra("memory:") as orchestra:' in text
    assert "# Settings of the file that belong to `Orchestra(settings=…)`: every" in text
