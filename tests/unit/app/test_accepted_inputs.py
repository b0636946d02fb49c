"""Inputs that were accepted before a run starts are not looked at again."""

from pathlib import Path

import attrs
import pytest

from orchestra.agents.registry import KINDS
from orchestra.app.orchestra import Orchestra
from orchestra.config.inputs import accept_inputs
from orchestra.config.load import parse_workflow

pytestmark = pytest.mark.anyio

TEXT = """\
name: asks
inputs:
  where: {type: path, required: true}
  also: {type: text, required: false}
  key: {type: text, secret: true, required: true}
agents: {work: work.py}
phases: {first: {specialists: {work: "{{ inputs.where }}"}}}
"""


async def test_accepted_inputs_start_the_run_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def agent(ctx): return 1\n")
    (tmp_path / "there").mkdir()
    loaded = parse_workflow(TEXT, file=str(tmp_path / "asks.yaml"), folder=tmp_path, kinds=KINDS)
    given = {"where": "there", "key": "hidden words"}
    accepted = accept_inputs(loaded.workflow, given, base=tmp_path)
    (tmp_path / "there").rmdir()  # accepting them now would be refused
    async with Orchestra("memory:", project=tmp_path) as orchestra:
        ending = await orchestra.run(attrs.evolve(loaded, inputs=accepted))
    assert ending.kind == "completed"
    assert ending.state.tasks
    assert accepted == {"where": "there", "also": None, "key": "hidden words"}  # secrets stay with the caller
