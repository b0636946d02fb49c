"""How often a run can come to its agents at most, read from the workflow alone."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.app.forecast import most_visits, uses
from orchestra.app.workflow_files import load_workflow
from orchestra.model.workflow import Workflow

AGENT = "async def agent(ctx): ...\n"


@pytest.fixture
def flow(tmp_path: Path) -> Any:
    def read(phases: str, policy: str = "") -> Workflow:
        (tmp_path / "a.py").write_text(AGENT)
        (tmp_path / "flow.yaml").write_text(
            "name: w\ninputs: {files: {type: list, default: [x, y]}}\ncontext: {found: append}\n"
            f"agents: {{a: a.py, b: a.py}}\n{policy}\nphases:\n{phases}"
        )
        return load_workflow(tmp_path / "flow.yaml").workflow

    return read


def _counted(workflow: Workflow, **inputs: Any) -> list[tuple[str, str, str, int]]:
    given = {"files": ["x", "y"], **inputs}
    return [(each.phase, each.name, each.agent, each.assignments) for each in uses(workflow, given, _seven)]


def _seven(phase: str, name: str) -> int:
    return 7


def test_a_way_without_loops_is_gone_once(flow: Any) -> None:
    phases = """
  one: {specialists: {a: x}, next: [{to: two, when: visit > 1}, {to: three}]}
  two: {specialists: {a: x}}
  three: {specialists: {a: x}}
"""
    assert most_visits(flow(phases)) == {"one": 1, "two": 1, "three": 1}


@pytest.mark.parametrize(
    ("when", "most"),
    [
        ("visits.one < 3", 3),
        ("visits.one <= 3", 4),
        ("visits['one'] < 3 and visit > 0", 3),
        ("visits.one < 3 or visit > 0", 50),
        ("visits.two < 3", 50),
    ],
)
def test_a_loop_is_bounded_by_its_condition(flow: Any, when: str, most: int) -> None:
    phases = f"""
  one: {{specialists: {{a: x}}}}
  two: {{specialists: {{a: x}}, next: [{{to: one, when: "{when}"}}, end]}}
"""
    assert most_visits(flow(phases, "policy: {max_iterations: 50}")) == {"one": most, "two": most}


def test_a_loop_is_bounded_by_visits_of_any_phase_in_it(flow: Any) -> None:
    phases = """
  one: {specialists: {a: x}, max_visits: 4}
  two: {specialists: {a: x}, next: [{to: one, when: visit > 0}, end]}
"""
    assert most_visits(flow(phases)) == {"one": 4, "two": 4}


def test_rounds_items_spawns_and_substitutes_are_counted(flow: Any) -> None:
    phases = """
  one:
    specialists:
      each: {agent: a, foreach: inputs.files, task: "{{ item }}", into: found}
      guess: {agent: a, foreach: context.found, task: "{{ item }}", substitute: b}
      plain: {agent: a, task: x}
    evaluate: {agent: b, revise: 2}
    on_low_confidence: [{spawn: plain, agent: b, max: 2}, proceed]
"""
    workflow = flow(phases)
    assert _counted(workflow, files=["x", "y", "z"]) == [
        ("one", "each", "a", 9),
        ("one", "guess", "a", 21),
        ("one", "guess", "b", 21),
        ("one", "plain", "a", 3),
        ("one", "plain+", "b", 6),
        ("one", "evaluation", "b", 3),
    ]
    listed = {each.name: each.items_of for each in uses(workflow, {"files": []}, _seven)}
    assert listed["each"] == ""
    assert listed["guess"] == "context.found"
