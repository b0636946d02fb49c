"""Made-up results have the parts that a workflow goes on to use."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.app.stand_ins import MADE_UP, made_up
from orchestra.app.workflow_files import load_workflow

FLOW = """
name: w
context: {found: %s}
agents: {a: a.py}
phases:
  one:
    specialists: {make: {agent: a, task: x, into: found}}
    %s
  two: {specialists: {use: {agent: a, %s}}}
"""


@pytest.fixture
def result(tmp_path: Path) -> Any:
    def read(use: str, reducer: str = "replace", after: str = "") -> Any:
        (tmp_path / "a.py").write_text("async def agent(ctx): ...\n")
        (tmp_path / "flow.yaml").write_text(FLOW % (reducer, after, use))
        workflow = load_workflow(tmp_path / "flow.yaml").workflow
        return made_up(workflow, workflow.phases[0], "make", tmp_path)

    return read


@pytest.mark.parametrize(
    ("use", "made"),
    [
        ("task: x", MADE_UP),
        ("task: '{{ context.found }}'", MADE_UP),
        ("task: '{{ context.found.a.b }} {{ context.found.a.c }}'", {"a": {"b": MADE_UP, "c": MADE_UP}}),
        ("task: x, when: context.found.count > 3", {"count": 1}),
        (
            "task: x, when: context.found.ready and context.found.kind == 'good'",
            {"ready": True, "kind": "good"},
        ),
        ("task: x, when: not context.found.ready", {"ready": True}),
        ("task: '{{ item }}', foreach: context.found.parts", {"parts": [MADE_UP]}),
        ("task: '{{ item.name }}', foreach: context.found", [{"name": MADE_UP}]),
        ("task: '{% for each in context.found.parts %}{{ each }}{% endfor %}'", {"parts": [MADE_UP]}),
        ("task: x, when: context.found.parts | length > 2", {"parts": [MADE_UP]}),
    ],
)
def test_what_is_used_is_there(result: Any, use: str, made: Any) -> None:
    assert result(use) == made


def test_conditions_of_ways_count_too(result: Any) -> None:
    after = "next: [{to: two, when: results.make.score >= 0.5}, end]"
    assert result("task: x", after=after) == {"score": 1}


@pytest.mark.parametrize(
    ("reducer", "made"),
    [("sum", 1), ("max", 1), ("merge", {"made_up": True}), ("append", MADE_UP)],
)
def test_it_can_enter_the_context(result: Any, reducer: str, made: Any) -> None:
    assert result("task: '{{ context.found }}'", reducer) == made
