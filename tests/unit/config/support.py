"""Small workflows to make mistakes in."""

from pathlib import Path

import pytest

from orchestra.agents.registry import KINDS
from orchestra.config.load import LoadedWorkflow, parse_workflow
from orchestra.config.problems import Problem, Problems
from orchestra.errors import BadWorkflow
from orchestra.model.workflow import Phase, Workflow

FILE = "flow.yaml"
AGENT = "async def agent(ctx):\n    return 1\n"
HEAD = "name: sample\nagents: {one: one.py, two: two.py}\n"
"""Two lines; what a test writes begins on line 3."""


def folder(path: Path) -> Path:
    """A folder with two agents in it."""
    for name in ("one.py", "two.py"):
        (path / name).write_text(AGENT)
    return path


def load(text: str, path: Path) -> LoadedWorkflow:
    """The workflow in a text."""
    return parse_workflow(text, file=FILE, folder=folder(path), kinds=KINDS)


def workflow(text: str, path: Path) -> Workflow:
    """The workflow in a text."""
    return load(text, path).workflow


def phase(text: str, path: Path) -> Phase:
    """The first phase of a workflow; `text` is what stands below its name, indented by four."""
    return workflow(f"{HEAD}phases:\n  first:\n{text}", path).phases[0]


def problems(text: str, path: Path) -> list[str]:
    """Every mistake as `line:column: message`."""
    with pytest.raises(BadWorkflow) as caught:
        load(text, path)
    found = caught.value.data["problems"]
    assert isinstance(found, Problems)
    return [_short(each) for each in found]


def places(text: str, path: Path) -> list[tuple[int, int]]:
    """Line and column of every mistake."""
    with pytest.raises(BadWorkflow) as caught:
        load(text, path)
    found = caught.value.data["problems"]
    assert isinstance(found, Problems)
    return [(each.line, each.column) for each in found]


def _short(problem: Problem) -> str:
    return f"{problem.line}:{problem.column}: {problem.message}"
