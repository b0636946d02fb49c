"""How sure agents said they were, beside the verdicts on the same results."""

from pathlib import Path

import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.history.calibration import JudgedResult, calibrations, judged_results
from orchestra.ids import RunId
from orchestra.limits import CALIBRATION_RESULTS
from orchestra.ports.store import RowQuery, Store
from orchestra.stores.memory import MemoryStore
from orchestra.stores.registry import open_store

pytestmark = pytest.mark.anyio
FLOW = """
name: judged
agents: {sure: agents.py:sure, silent: agents.py:silent, more: agents.py:more, judge: agents.py:judge}
policy: {confidence: {threshold: 0.99}, retry: {attempts: 2, backoff: 1ms}}
phases:
  work:
    specialists: {sure: "Be sure.", silent: "Say nothing."}
    on_low_confidence: [{spawn: sure, agent: more, max: 1}, proceed]
    evaluate: {agent: judge, rubric: {depth: 1}, revise: 1}
  after:
    specialists: {sure: "Again."}
"""
AGENTS = """
from orchestra import Judgement, Result

async def sure(ctx):
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return Result(output="a", confidence=0.85 + ctx.round / 20)

async def silent(ctx):
    return "b"

async def more(ctx):
    return Result(output="c", confidence=0.2)

async def judge(ctx):
    return Judgement(scores={"depth": 0.1 if ctx.round == 1 else 0.9}, confidence=0.3)
"""


def _result(confidence: float, verdict: str, agent: str = "a", model: str = "m") -> JudgedResult:
    return JudgedResult(workflow="w", agent=agent, model=model, confidence=confidence, verdict=verdict)


def test_results_by_band() -> None:
    (found,) = calibrations([_result(0.9, "accept"), _result(1.0, "revise"), _result(0.6, "reject")])
    assert (found.workflow, found.agent, found.model) == ("w", "a", "m")
    low, high = found.bands
    assert (low.least, low.below, low.results, low.reject) == (0.5, 0.7, 1, 1)
    assert (high.least, high.below, high.accept, high.revise, high.reject) == (0.9, None, 1, 1, 0)
    assert (high.stated, high.accepted, high.gap) == (0.95, 0.5, 0.45)
    assert (found.total.results, found.total.accept, found.total.enough) == (3, 1, False)


def test_agents_and_models_are_told_apart() -> None:
    found = calibrations([_result(0.9, "accept", agent, model) for agent in "ba" for model in "nm"])
    assert [(each.agent, each.model) for each in found] == [("a", "m"), ("a", "n"), ("b", "m"), ("b", "n")]


def test_enough_are_needed() -> None:
    few = [_result(0.9, "accept")] * (CALIBRATION_RESULTS - 1)
    assert not calibrations(few)[0].total.enough
    assert calibrations([*few, _result(0.9, "revise")])[0].total.enough


def _told(house: Orchestra, store: Store, run: str) -> list[tuple[str, float, str]]:
    row = store.run(RunId(run))
    assert row is not None
    found = judged_results(house.manager.archive, row)
    return [(each.agent, each.confidence, each.verdict) for each in found]


@pytest.mark.parametrize("kind", ["sqlite:{}/store.db", "files:{}/store"])
async def test_what_a_verdict_judges(tmp_path: Path, kind: str) -> None:
    """The results of its own round: not additional ones, the evaluator's or those without a confidence."""
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "agents.py").write_text(AGENTS)
    with open_store(kind.format(tmp_path), create=True) as store:
        async with Orchestra(store, project=tmp_path) as house:
            ending = await house.run(tmp_path / "flow.yaml", run="judged")
            assert ending.kind == "completed", ending.state.failure
            assert _told(house, store, "judged") == [("sure", 0.9, "revise"), ("sure", 0.95, "accept")]


async def test_forks_and_rollbacks(tmp_path: Path) -> None:
    """A verdict in a fork judges what was done before it; so does one that a rollback undid."""
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "agents.py").write_text(AGENTS)
    store = MemoryStore()
    async with Orchestra(store, project=tmp_path) as house:
        await house.run(tmp_path / "flow.yaml", run="judged", break_at=["after"])
        verdicts = store.rows(RowQuery(run=RunId("judged"), triggers=("evaluation_completed",)))
        fork = await house.fork("judged", verdicts[0].seq - 1)
        await house.resume(fork)
        both = [("sure", 0.9, "revise"), ("sure", 0.95, "accept")]
        assert _told(house, store, fork) == both
        await house.rollback("judged", to=verdicts[0].seq)
        await house.resume("judged")
        assert _told(house, store, "judged") == [*both, both[1]]
