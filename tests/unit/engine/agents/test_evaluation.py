"""Evaluations: scores one by one, verdicts, rounds of revision (CHECKLIST 001.38, 001.39)."""

from typing import Any

import pytest

from orchestra.ids import AgentId
from orchestra.model.events import TaskFailed
from orchestra.model.workflow import Criterion, Evaluate, Input, Phase, Workflow
from orchestra.ports.agent import Judgement
from tests.unit.engine.support import (
    Failing,
    Theatre,
    context,
    decisions,
    does,
    flow,
    nothing,
    path,
    phase,
    policy,
    result,
    returns,
)

pytestmark = pytest.mark.anyio
RUBRIC = (Criterion(name="evidence", weight=2.0), Criterion(name="coverage"))


def _phase(*, rounds: int = 0, threshold: float = 0.8, **more: Any) -> Phase:
    judge = Evaluate(agent=AgentId("judge"), rubric=RUBRIC, threshold=threshold, rounds=rounds)
    return phase("work", does("a", into="found"), evaluate=judge, **more)


def _flow(**more: Any) -> Workflow:
    return flow(_phase(**more), context={"found": "append"}, policy=policy("restart", "fail", attempts=3))


@pytest.mark.parametrize(
    "issue", [{"description": "x" * 40_000_000}, {"description": "", "where": "x" * 200_001}]
)
async def test_an_issue_that_no_snapshot_could_hold_costs_the_evaluator_an_attempt(
    theatre: Theatre, issue: dict[str, str]
) -> None:
    async def judge(ctx: Any) -> Judgement:
        scores = {"evidence": 1.0, "coverage": 1.0}
        return Judgement(scores=scores, issues=(issue,) if ctx.attempt == 1 else ())

    ending = await theatre.run(_flow(), {"a": nothing, "judge": judge})
    failures = [each.failure for each in theatre.events if isinstance(each, TaskFailed)]
    assert [each.message for each in failures] == ["an issue has at most 200,000 characters"]
    assert ending.kind == "completed"


@pytest.mark.parametrize(
    ("scores", "score", "verdict"),
    [((1.0, 0.4), 0.8, "accept"), ((0.9, 0.3), 0.7, "revise"), ((0.0, 0.0), 0.0, "revise")],
)
async def test_criteria_count_by_weight(
    theatre: Theatre, scores: tuple[float, float], score: float, verdict: str
) -> None:
    judgement = Judgement(scores={"evidence": scores[0], "coverage": scores[1]})
    ending = await theatre.run(_flow(), {"a": returns(1), "judge": returns(judgement)})
    held = ending.state.evaluations["work"]
    assert held.verdict is not None
    assert held.verdict.score == pytest.approx(score)
    assert held.verdict.kind == verdict
    assert result(ending.state, "work/evaluation")["verdict"] == verdict


async def test_an_evaluator_sees_what_it_judges(theatre: Theatre) -> None:
    seen: list[Any] = []

    async def judge(ctx: Any) -> Judgement:
        seen.append((ctx.role, ctx.results, [(line.name, line.weight) for line in ctx.rubric]))
        return Judgement(scores={"evidence": 1, "coverage": 1})

    await theatre.run(_flow(), {"a": returns("found"), "judge": judge})
    assert seen == [("apollo", {"a": "found"}, [("evidence", 2.0), ("coverage", 1.0)])]


async def test_feedback_goes_back_for_another_round(theatre: Theatre) -> None:
    handed: list[Any] = []

    async def agent(ctx: Any) -> str:
        handed.append((ctx.round, ctx.feedback, ctx.task_id))
        return f"round {ctx.round}"

    async def judge(ctx: Any) -> Judgement:
        good = 0.5 if ctx.round == 1 else 0.9
        return Judgement(scores={"evidence": good, "coverage": good}, feedback=f"more, said {ctx.round}")

    ending = await theatre.run(_flow(rounds=2), {"a": agent, "judge": judge})
    assert handed == [(1, (), "work/a"), (2, ("more, said 1",), "work/a~2")]
    assert context(ending.state) == {"found": ["round 2"]}
    (made,) = decisions(ending.state, "evaluation")
    assert made.description == "Revise work: round 2"
    assert made.rationale == "score 0.50 below threshold (0.8): more, said 1"
    rounds = [(each.round, each.verdict.kind) for each in ending.state.evaluations["work"].iterations]
    assert rounds == [(1, "revise"), (2, "accept")]


async def test_rounds_end_and_that_is_on_the_record(theatre: Theatre) -> None:
    judge = returns(Judgement(scores={"evidence": 0.1, "coverage": 0.1}, feedback="never good"))
    counted = Failing(0)
    ending = await theatre.run(_flow(rounds=2), {"a": counted, "judge": judge})
    assert (ending.kind, counted.calls) == ("completed", 3)
    assert [made.description for made in decisions(ending.state, "evaluation")] == [
        "Revise work: round 2",
        "Revise work: round 3",
        "Go on with work as it is",
    ]


@pytest.mark.parametrize(("rounds", "words"), [(0, "a round"), (1, "2 rounds")])
async def test_how_many_rounds_there_were_is_told_in_good_english(
    theatre: Theatre, rounds: int, words: str
) -> None:
    judge = returns(Judgement(scores={"evidence": 0.1, "coverage": 0.1}))
    ending = await theatre.run(_flow(rounds=rounds), {"a": returns(1), "judge": judge})
    assert decisions(ending.state, "evaluation")[-1].rationale == f"score 0.10 below 0.8 after {words}"


@pytest.mark.parametrize(("feedback", "end"), [("", "(0.8)"), ("dig deeper", "(0.8): dig deeper")])
async def test_another_round_has_a_reason_also_without_feedback(
    theatre: Theatre, feedback: str, end: str
) -> None:
    judge = returns(Judgement(scores={"evidence": 0.1, "coverage": 0.1}, feedback=feedback))
    ending = await theatre.run(_flow(rounds=1), {"a": returns(1), "judge": judge})
    assert decisions(ending.state, "evaluation")[0].rationale == f"score 0.10 below threshold {end}"


async def test_an_interrupted_evaluation_goes_on_where_it_was(theatre: Theatre) -> None:
    scored: list[str] = []

    async def judge(ctx: Any) -> None:
        for line in ctx.rubric:
            if line.score is None:
                scored.append(line.name)
                await ctx.score(line.name, 0.9, rationale="good", issues=[{"description": line.name}])
                if ctx.attempt == 1:
                    raise RuntimeError("interrupted")

    ending = await theatre.run(_flow(), {"a": nothing, "judge": judge})
    held = ending.state.evaluations["work"]
    assert scored == ["evidence", "coverage"]
    assert [(each.criterion, each.score, each.rationale) for each in held.scores] == [
        ("evidence", 0.9, "good"),
        ("coverage", 0.9, "good"),
    ]
    assert [issue.description for issue in held.issues] == ["evidence", "coverage"]


async def test_scores_are_made_anew_when_what_they_judged_changed(theatre: Theatre) -> None:
    """A fork with other inputs while an evaluation was under way: neither its scores nor its place stay."""
    order: list[str] = []

    async def agent(ctx: Any) -> str:
        order.append(f"a for {ctx.inputs['who']}")
        return str(ctx.inputs["who"])

    async def judge(ctx: Any) -> None:
        order.append(f"judge {ctx.results['a']} {[line.score for line in ctx.rubric]}")
        await ctx.score("evidence", 0.9)
        if ctx.results["a"] == "me" and ctx.attempt == 1:
            ctx.fail("stop", recoverable=False)
        await ctx.score("coverage", 0.9)

    workflow = flow(_phase(), context={"found": "append"}, inputs=[Input(name="who")], policy=policy("fail"))
    functions = {"a": agent, "judge": judge}
    assert (await theatre.run(workflow, functions, {"who": "me"})).kind == "failed"
    async with theatre.house(functions) as house:
        forked = await house.fork("run", values={"inputs.who": "you"})
        ending = await house.resume(forked)
    assert ending.kind == "completed"
    assert order == ["a for me", "judge me [None, None]", "a for you", "judge you [None, None]"]
    assert context(ending.state) == {"found": ["you"]}


async def test_a_rejection_fails_the_run(theatre: Theatre) -> None:
    judge = returns(Judgement(verdict="reject", scores={"evidence": 1, "coverage": 1}))
    ending = await theatre.run(_flow(rounds=2), {"a": nothing, "judge": judge})
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert ending.state.failure.error == "Rejected"


async def test_a_transition_may_deal_with_a_rejection(theatre: Theatre) -> None:
    judge = returns(Judgement(verdict="reject", scores={"evidence": 0, "coverage": 0}))
    work = _phase(next=[("sorry", 'evaluation.verdict == "reject"'), "end"])
    ending = await theatre.run(
        flow(work, phase("sorry"), context={"found": "append"}), {"a": nothing, "judge": judge}
    )
    assert (ending.kind, path(ending.state)) == ("completed", ["work", "sorry"])


@pytest.mark.parametrize(
    ("judgement", "complaint"),
    [
        (Judgement(scores={"evidence": 1}), "no score for 'coverage'"),
        (Judgement(scores={"evidence": 1, "coverage": 7}), "1"),
        ("fine", "Judgement"),
    ],
)
async def test_what_is_no_judgement_is_a_failed_attempt(
    theatre: Theatre, judgement: Any, complaint: str
) -> None:
    ending = await theatre.run(_flow(), {"a": nothing, "judge": returns(judgement)})
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert complaint in ending.state.failure.message
    assert ending.state.tasks["work/evaluation"].failures == 3


async def test_scoring_what_is_not_in_the_rubric_is_refused(theatre: Theatre) -> None:
    refused: list[str] = []

    async def judge(ctx: Any) -> Judgement:
        try:
            await ctx.score("beauty", 1.0)
        except Exception as error:
            refused.append(str(error))
        return Judgement(scores={"evidence": 1, "coverage": 1})

    ending = await theatre.run(_flow(), {"a": nothing, "judge": judge})
    assert ending.kind == "completed"
    assert len(refused) == 1
    assert "beauty" in refused[0]


async def test_only_an_evaluator_scores(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        await ctx.score("evidence", 1.0)

    ending = await theatre.run(_flow(), {"a": agent, "judge": nothing})
    assert ending.kind == "failed"
    assert ending.state.evaluations.get("work") is None
