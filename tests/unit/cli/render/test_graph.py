"""The picture of a workflow."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.cli.render.graph import graph_lines
from orchestra.ids import AgentId, PhaseId
from orchestra.model.workflow import Phase, Specialist, Transition, Workflow
from tests.unit.config.support import HEAD, workflow

TEXT = """
description: What it is for
inputs: {path: , depth: 3}
context: {found: append}
phases:
  look:
    description: Look around
    specialists:
      one: {task: x, into: found}
      second: {agent: two, needs: one, when: visit > 1, foreach: context.found, outputs: a.md,
        breakpoint: true}
    evaluate: {agent: two, rubric: {a: 2, b: 0.5}, revise: 1}
    on_low_confidence: [{spawn: one, agent: two, max: 2}, {ask: Well?}, proceed]
    max_visits: 3
    timeout: 10m
    next: [{to: tell, when: visit > 2}, {to: look, when: visit < 2}, end]
  tell: {}
"""
PICTURE = """\
sample  What it is for
inputs: path (required), depth

╭─ look (at most 3 visits, 10m) ──────────────────────────────────────────╮
│ Look around                                                             │
│ one     → found                                                         │
│ second  by two · after one · if visit > 1 · for each of context.found · │
│     writes a.md · ● breakpoint                                          │
│ ⚖ two accepts from 0.8 · a ×2, b ×0.5 · 1 round of feedback             │
│ when unsure: another one by two (up to 2), then ask, then proceed       │
╰─────────────────────────────────────────────────────────────────────────╯
  ├─▶ tell  if visit > 2
  ├─↺ look  if visit < 2
  ╰─■ end   otherwise

╭─ tell ──────────╮
│ (nothing to do) │
╰─────────────────╯
  ╰─■ end"""


def test_the_picture(tmp_path: Path) -> None:
    assert "\n".join(graph_lines(workflow(HEAD + TEXT, tmp_path))) == PICTURE


@pytest.mark.parametrize("width", [0, 24, 40, 60, 200])
def test_no_line_is_wider_than_asked_for(width: int, tmp_path: Path) -> None:
    lines = graph_lines(workflow(HEAD + TEXT, tmp_path), width=width)
    assert max(map(len, lines)) <= max(width, 24)


@given(st.text(max_size=200), st.integers(24, 120))
def test_boxes_are_straight_whatever_is_in_them(text: str, width: int) -> None:
    made = Workflow(
        name="x",
        description=text,
        phases=(
            Phase(
                id=PhaseId("p"),
                description=text,
                specialists=(Specialist(id="a", agent=AgentId("a"), when=text),),
                next=(Transition(to=PhaseId("end"), when=text),),
            ),
        ),
    )
    lines = graph_lines(made, width=width)
    assert all(line.isprintable() for line in lines)
    top, bottom = (next(line for line in lines if line.startswith(start)) for start in ("╭", "╰"))
    assert len(top) == len(bottom) <= width
