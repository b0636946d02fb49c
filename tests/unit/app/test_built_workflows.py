"""Workflows that are built in Python: checked before they run, and played as a file is."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.agents.registry import KINDS
from orchestra.app.orchestra import Orchestra
from orchestra.config.load import parse_workflow
from orchestra.errors import BadWorkflow
from orchestra.ids import AgentId, PhaseId
from orchestra.model.workflow import (
    Agent,
    ContextName,
    Evaluate,
    Phase,
    Spawn,
    Specialist,
    Transition,
    Workflow,
)

pytestmark = pytest.mark.anyio

WORK = AgentId("work")
WRONG = AgentId("wrk")


def _does(**more: Any) -> Specialist:
    return Specialist(**{"id": "work", "agent": WORK, **more})


def _phase(name: str, *specialists: Specialist, **more: Any) -> Phase:
    return Phase(id=PhaseId(name), specialists=specialists or (_does(),), **more)


def _built(*phases: Phase) -> Workflow:
    agents = (Agent(id=WORK, kind="function"),)
    return Workflow(name="built", context=(ContextName(name="notes"),), agents=agents, phases=phases)


async def work(ctx: Any) -> None:
    """Has nothing to do."""


async def test_a_phase_without_next_leads_to_the_phase_below(tmp_path: Path) -> None:
    built = _built(_phase("first"), _phase("second"), _phase("third", next=()), _phase("fourth"))
    async with Orchestra("memory:", functions={"work": work}, project=tmp_path) as orchestra:
        ending = await orchestra.run(built)
    assert ending.kind == "completed"
    assert [visit.phase for visit in ending.state.path] == ["first", "second", "third"]


def test_a_file_and_python_lead_to_the_same_transitions(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def agent(ctx): return 1\n")
    text = "name: built\nagents: {work: work.py}\nphases: {first: {specialists: {work: a}}, second: {}}\n"
    read = parse_workflow(text, file="built.yaml", folder=tmp_path, kinds=KINDS).workflow
    built = _built(_phase("first"), _phase("second"))
    assert [each.next for each in built.phases] == [each.next for each in read.phases]
    assert built.phases[0].next == (Transition(to=PhaseId("second")),)
    assert attrs.evolve(built, name="other").phases is built.phases


@pytest.mark.parametrize(
    ("phases", "mistake"),
    [
        ([], "phases: a workflow has at least one phase"),
        ([_phase("a", _does(agent=WRONG))], "phases.a.specialists.work.agent: there is no agent `wrk`"),
        ([_phase("a", _does(substitute=WRONG))], "phases.a.specialists.work.substitute: there is no agent"),
        ([_phase("a", evaluate=Evaluate(agent=WRONG))], "phases.a.evaluate.agent: there is no agent `wrk`"),
        (
            [_phase("a", on_low_confidence=(Spawn(specialist="work", agent=WRONG),))],
            "phases.a.on_low_confidence.0.agent: there is no agent `wrk`",
        ),
        (
            [_phase("a", next=(Transition(to=PhaseId("aa")),))],
            "phases.a.next.0.to: there is no phase `aa`; did you mean `a`?",
        ),
        ([_phase("a", _does(into="note"))], "phases.a.specialists.work.into: `note` is not declared"),
        ([_phase("a", _does(needs=("b",)))], "phases.a.specialists.work.needs.0: there is no specialist `b`"),
        (
            [_phase("a", _does(id="x", needs=("y",)), _does(id="y", needs=("x",)))],
            "these wait for one another",
        ),
        ([_phase("a"), _phase("a")], "phases.a: `a` is there 2 times"),
        ([_phase("a", _does(), _does())], "phases.a.specialists.work: `work` is there 2 times"),
    ],
)
async def test_a_name_that_is_not_there_is_told_before_the_run(
    phases: list[Phase], mistake: str, tmp_path: Path
) -> None:
    async with Orchestra("memory:", functions={"work": work}, project=tmp_path) as orchestra:
        with pytest.raises(BadWorkflow) as found:
            await orchestra.run(_built(*phases))
    assert mistake in str(found.value)
    assert str(found.value).endswith("workflow built cannot be used: 1 mistake.")


async def test_all_mistakes_are_told_at_once_and_no_run_begins(tmp_path: Path) -> None:
    built = _built(_phase("a", _does(agent=WRONG, into="note")), _phase("b", _does(agent=WRONG)))
    async with Orchestra("memory:", functions={"work": work}, project=tmp_path) as orchestra:
        with pytest.raises(BadWorkflow, match="3 mistakes"):
            await orchestra.run(built, run="never")
        assert orchestra.manager.archive.store.run("never") is None  # type: ignore[arg-type]
