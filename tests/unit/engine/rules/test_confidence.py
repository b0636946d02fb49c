"""Confidence: thresholds, crossings, and what is done about too little of it (CHECKLIST 001.31)."""

from typing import Any

import pytest

from orchestra.engine.orders import Order
from orchestra.ids import AgentId
from orchestra.model.workflow import Ask, ConfidencePolicy, Fail, Proceed, Reaction, Spawn, Workflow
from orchestra.ports.agent import Result
from tests.unit.engine.support import (
    Theatre,
    context,
    decisions,
    does,
    flow,
    nothing,
    phase,
    policy,
    returns,
    triggers,
)

pytestmark = pytest.mark.anyio
WHY = "Mercury structure confidence (0.73) below threshold (0.75)"


def _flow(*reactions: Reaction, watch: tuple[float, ...] = ()) -> Workflow:
    work = phase(
        "analyse",
        does("structure", into="found"),
        does("security", into="found"),
        on_low_confidence=reactions,
    )
    limits = policy(confidence=ConfidencePolicy(threshold=0.75, watch=watch))
    return flow(work, context={"found": "append"}, policy=limits)


def _functions(*structure: float, security: float = 0.9) -> dict[str, Any]:
    said = list(structure)

    async def agent(ctx: Any) -> Result:
        return Result(output=ctx.name, confidence=said.pop(0))

    return {"structure": agent, "security": returns(Result(output="security", confidence=security))}


async def test_an_additional_specialist_is_spawned(theatre: Theatre) -> None:
    """The sample of the main document: 0.73 below 0.75, so Atlas spawns another."""
    reactions = (Spawn(specialist="structure"), Ask(question="Go on?"), Proceed())
    ending = await theatre.run(_flow(*reactions), _functions(0.73, 0.8))
    assert ending.kind == "completed"
    (made,) = decisions(ending.state, "workflow_adjustment")
    assert made.description == "Spawn additional specialist structure+1 (structure)"
    assert made.rationale == WHY
    assert made.alternatives == ("request_human_review", "proceed_with_low_confidence")
    assert context(ending.state) == {"found": ["structure", "structure+1", "security"]}
    assert ending.state.confidence.overall == pytest.approx((0.8 + 0.9) / 2)


async def test_no_more_are_spawned_than_may_be(theatre: Theatre) -> None:
    ending = await theatre.run(
        _flow(Spawn(specialist="structure", max=2), Proceed()), _functions(0.73, 0.5, 0.6)
    )
    made = [each.description for each in decisions(ending.state, "workflow_adjustment")]
    assert made == [
        "Spawn additional specialist structure+1 (structure)",
        "Spawn additional specialist structure+2 (structure)",
        "Proceed with low confidence",
    ]
    assert ending.kind == "completed"


async def test_another_agent_may_be_spawned(theatre: Theatre) -> None:
    functions = _functions(0.73) | {"expert": returns(Result(output="expert", confidence=0.99))}
    ending = await theatre.run(_flow(Spawn(specialist="structure", agent=AgentId("expert"))), functions)
    assert context(ending.state) == {"found": ["structure", "expert", "security"]}
    assert ending.state.tasks["analyse/structure+1"].by == "expert"


async def test_everybody_who_is_unsure_is_reacted_to(theatre: Theatre) -> None:
    """Not only the first of them."""
    functions = _functions(0.5, 0.6) | {"security": returns(Result(output="s", confidence=0.4))}
    ending = await theatre.run(_flow(Spawn(specialist="structure"), Proceed()), functions | _spare())
    made = [each.description for each in decisions(ending.state, "workflow_adjustment")]
    assert made == [
        "Spawn additional specialist structure+1 (structure)",
        "Spawn additional specialist security+1 (structure)",
        "Proceed with low confidence",
        "Proceed with low confidence",
    ]


def _spare() -> dict[str, Any]:
    said = iter([0.5, 0.6, 0.3])

    async def agent(ctx: Any) -> Result:
        return Result(output=ctx.name, confidence=next(said))

    return {"structure": agent}


@pytest.mark.parametrize(
    ("answer", "kind", "last"),
    [("yes", "completed", "Proceed with low confidence"), ("no", "failed", "Fail the run")],
)
async def test_a_person_is_asked(theatre: Theatre, answer: str, kind: str, last: str) -> None:
    functions = _functions(0.73)
    ending = await theatre.run(_flow(Ask(question="Accept this result?")), functions)
    assert ending.kind == "waiting"
    (wait,) = ending.state.waits.values()
    assert wait.text == f"Accept this result? {WHY}."
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="answer", value=answer))
        ending = await house.resume("run")
    assert ending.kind == kind
    made = decisions(ending.state, "workflow_adjustment")[-1]
    assert made.description == last
    assert made.rationale == f"{WHY}; a person answered {answer!r}"


async def test_a_low_confidence_may_fail_the_run(theatre: Theatre) -> None:
    ending = await theatre.run(_flow(Fail()), _functions(0.73))
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert (ending.state.failure.error, ending.state.failure.message) == ("LowConfidence", WHY)


async def test_without_reactions_it_goes_on_and_says_so(theatre: Theatre) -> None:
    ending = await theatre.run(_flow(), _functions(0.73))
    (made,) = decisions(ending.state, "workflow_adjustment")
    assert (ending.kind, made.description, made.alternatives) == (
        "completed",
        "Proceed with low confidence",
        ("fail",),
    )


async def test_enough_confidence_is_no_reason_for_anything(theatre: Theatre) -> None:
    ending = await theatre.run(_flow(Fail()), _functions(0.75))
    assert (ending.kind, decisions(ending.state)) == ("completed", [])


async def test_a_specialist_may_have_a_threshold_of_its_own(theatre: Theatre) -> None:
    work = phase("work", does("a", threshold=0.5), on_low_confidence=(Fail(),))
    limits = policy(confidence=ConfidencePolicy(threshold=0.9))
    ending = await theatre.run(flow(work, policy=limits), {"a": returns(Result(confidence=0.6))})
    assert ending.kind == "completed"


async def test_of_a_list_the_mean_counts(theatre: Theatre) -> None:
    async def each(ctx: Any) -> Result:
        return Result(confidence=ctx.item)

    work = phase("work", does("each", foreach="[0.2, 0.8]"), on_low_confidence=(Fail(),))
    limits = policy(confidence=ConfidencePolicy(threshold=0.6))
    ending = await theatre.run(flow(work, policy=limits), {"each": each})
    assert ending.state.failure is not None
    assert "confidence (0.5) below threshold (0.6)" in ending.state.failure.message


async def test_crossing_a_watched_threshold_is_a_trigger_either_way(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        for value in (0.8, 0.6, 0.55, 0.7):
            ctx.confidence(value)
            await ctx.save(value)

    limits = policy(confidence=ConfidencePolicy(watch=(0.65,)))
    ending = await theatre.run(flow(phase("work", does("a", "agent")), policy=limits), {"agent": agent})
    crossed = ["confidence_threshold_crossed" in each for each in triggers(theatre.store)]
    samples = [sample.value for sample in ending.state.agents["a"].history]
    assert samples == [0.8, 0.6, 0.55, 0.7]
    assert sum(crossed) == 2


async def test_a_dip_within_a_turn_is_a_crossing_too(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        for value in (0.95, 0.6, 0.55, 0.7, 0.9, 0.8):
            ctx.confidence(value)

    limits = policy(confidence=ConfidencePolicy(watch=(0.65,)))
    ending = await theatre.run(flow(phase("work", does("a", "agent")), policy=limits), {"agent": agent})
    assert sum("confidence_threshold_crossed" in each for each in triggers(theatre.store)) == 1
    for history in (ending.state.agents["a"].history, ending.state.confidence.history[:3]):
        assert [sample.value for sample in history] == [0.95, 0.55, 0.8]


async def test_how_sure_an_agent_was_outlives_its_attempt(theatre: Theatre) -> None:
    """CHECKLIST 001.37: the next attempt begins with it, and adds to it."""

    async def agent(ctx: Any) -> None:
        ctx.confidence(0.6 if ctx.attempt == 1 else 0.8)
        await ctx.save(ctx.attempt)
        if ctx.attempt == 1:
            raise RuntimeError("once more")

    workflow = flow(phase("work", does("a", "agent")), policy=policy("restart", "fail", attempts=2))
    ending = await theatre.run(workflow, {"agent": agent})
    launched = [turn.state.agents["a"] for turn in theatre.turns if "agent_launched" in turn.header.triggers]
    assert [(held.attempts, held.confidence) for held in launched] == [(1, None), (2, 0.6)]
    assert [sample.value for sample in launched[1].history] == [0.6]
    assert ending.state.agents["a"].confidence == 0.8
    assert [sample.value for sample in ending.state.agents["a"].history] == [0.6, 0.8]


async def test_silence_is_not_a_low_confidence(theatre: Theatre) -> None:
    functions = {"structure": nothing, "security": nothing}
    ending = await theatre.run(_flow(Fail()), functions)
    assert (ending.kind, ending.state.confidence.overall) == ("completed", None)
