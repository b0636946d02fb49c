"""Where a run goes after a phase, and how it ends."""

from typing import Any

import pytest

from orchestra.codec.values import thaw
from orchestra.model.workflow import Policy
from orchestra.ports.agent import Result
from tests.unit.engine.support import (
    QUICK,
    Theatre,
    context,
    decisions,
    does,
    flow,
    nothing,
    path,
    phase,
    returns,
)

pytestmark = pytest.mark.anyio


async def test_the_first_that_holds_wins_and_all_are_on_record(theatre: Theatre) -> None:
    workflow = flow(
        phase(
            "ask",
            does("a", into="it"),
            next=[("no", "context.it == 2"), ("yes", "context.it == 1"), ("also", "true")],
        ),
        phase("no"),
        phase("yes"),
        phase("also"),
        context={"it": "replace"},
    )
    ending = await theatre.run(workflow, {"a": returns(1)})
    assert path(ending.state) == ["ask", "yes"]
    (made,) = decisions(ending.state, "transition")
    assert (made.description, made.rationale) == ("Go on with yes", "context.it == 1 holds")
    assert made.alternatives == ("no", "also")
    assert made.details is not None
    looked = [(each["to"], each["outcome"]) for each in thaw(made.details)["evaluated"]]
    assert looked == [("no", "does not hold"), ("yes", "holds")]


async def test_none_that_holds_fails_the_run(theatre: Theatre) -> None:
    workflow = flow(phase("ask", does("a"), next=[("ask", "false"), ("other", "false")]), phase("other"))
    ending = await theatre.run(workflow, {"a": nothing})
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert ending.state.failure.message == "no transition of ask holds"


async def test_a_loop_ends_when_its_condition_says_so(theatre: Theatre) -> None:
    async def count(ctx: Any) -> int:
        return int(ctx.context["n"] or 0) + 1

    workflow = flow(
        phase("loop", does("count", into="n"), next=[("loop", "context.n < 4"), "done"]),
        phase("done"),
        context={"n": "replace"},
    )
    ending = await theatre.run(workflow, {"count": count})
    assert path(ending.state) == ["loop"] * 4 + ["done"]
    assert ending.state.visits["loop"] == 4
    assert list(ending.state.tasks) == ["loop/count", "loop.2/count", "loop.3/count", "loop.4/count"]


async def test_max_visits_makes_the_next_one_win(theatre: Theatre) -> None:
    workflow = flow(phase("loop", does("a"), next=["loop", "out"], max_visits=3), phase("out"))
    ending = await theatre.run(workflow, {"a": nothing})
    assert path(ending.state) == ["loop", "loop", "loop", "out"]
    assert decisions(ending.state)[-1].rationale == "loop has had all its 3 visits (max_visits)"


@pytest.mark.parametrize(
    ("ways", "rationale"),
    [
        (
            [("loop", "visit < 9"), "out"],
            "visit < 9 holds, but loop has had all its 2 visits (max_visits)",
        ),
        (
            [("out", "false"), ("loop", "visit < 9"), ("out", "visit == 2")],
            "visit < 9 holds, but loop has had all its 2 visits (max_visits); visit == 2 holds",
        ),
        (
            [("out", "false"), ("loop", "visit < 9"), "out"],
            "visit < 9 holds, but loop has had all its 2 visits (max_visits); "
            "no other condition before it holds",
        ),
        ([("loop", "visit < 2"), "out"], "no condition before it holds"),
    ],
)
async def test_a_loop_is_left_for_the_reason_that_is_told(
    ways: list[Any], rationale: str, theatre: Theatre
) -> None:
    workflow = flow(phase("loop", does("a"), next=ways, max_visits=2), phase("out"))
    ending = await theatre.run(workflow, {"a": nothing})
    assert path(ending.state) == ["loop", "loop", "out"]
    assert decisions(ending.state, "transition")[-1].rationale == rationale


async def test_the_visits_of_a_phase_are_told(theatre: Theatre) -> None:
    """Also where several begin in one turn."""
    workflow = flow(phase("loop", next=["other"]), phase("other", next=[("loop", "visits.loop < 3"), "end"]))
    await theatre.run(workflow, {})
    lines = [line for turn in theatre.turns for line in turn.header.events if line.kind == "phase_started"]
    told = [(line.what, dict(line.figures).get("visit", 1)) for line in lines]
    assert told == [(name, visit) for visit in (1, 2, 3) for name in ("loop", "other")]


async def test_max_visits_without_another_way_fails(theatre: Theatre) -> None:
    ending = await theatre.run(flow(phase("loop", does("a"), next=["loop"], max_visits=2)), {"a": nothing})
    assert (ending.kind, path(ending.state)) == ("failed", ["loop", "loop"])
    assert ending.state.failure is not None
    told = "no transition of loop can be taken: loop has had all its 2 visits (max_visits)"
    assert ending.state.failure.message == told


async def test_max_iterations_stops_every_loop(theatre: Theatre) -> None:
    limits = Policy(max_iterations=5, retry=QUICK)
    ending = await theatre.run(flow(phase("loop", next=["loop"]), policy=limits), {})
    assert ending.kind == "failed"
    assert len(path(ending.state)) == 5
    assert ending.state.failure is not None
    assert ending.state.failure.error == "TooManyIterations"


async def test_several_exits_and_the_word_end(theatre: Theatre) -> None:
    workflow = flow(
        phase("a", does("a", into="it"), next=[("end", "context.it == 1"), "b"]),
        phase("b", next=[("a", "false"), "end"]),
        context={"it": "replace"},
    )
    early = await theatre.run(workflow, {"a": returns(1)}, run="early")
    late = await theatre.run(workflow, {"a": returns(2)}, run="late")
    assert (early.kind, path(early.state)) == ("completed", ["a"])
    assert (late.kind, path(late.state)) == ("completed", ["a", "b"])


async def test_a_condition_that_is_no_boolean_fails(theatre: Theatre) -> None:
    ending = await theatre.run(flow(phase("a", does("a"), next=[("a", "visit + 1")])), {"a": nothing})
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert ending.state.failure.error == "BadExpression"


async def test_conditions_see_results_and_confidence(theatre: Theatre) -> None:
    workflow = flow(
        phase("a", does("a"), next=[("end", "results.a == 7 and confidence < 0.5"), "b"]),
        phase("b"),
    )
    ending = await theatre.run(workflow, {"a": returns(Result(output=7, confidence=0.25))})
    assert path(ending.state) == ["a"]
    assert context(ending.state) == {}


async def test_what_has_no_order_is_told_with_its_place(theatre: Theatre) -> None:
    """Before, a text was more than any number, and the run went on there."""
    ways = [("end", "visit > 1"), ("other", "context.it > 0.5")]
    workflow = flow(phase("ask", does("a", into="it"), next=ways), phase("other"), context={"it": "replace"})
    for given, told in (("0.9", "compares a text with a number"), (float("nan"), "compares NaN")):
        ending = await theatre.run(workflow, {"a": returns(given)}, run=f"run-{told[9]}")
        assert (ending.kind, ending.state.failure and ending.state.failure.error) == (
            "failed",
            "BadExpression",
        )
        assert ending.state.failure is not None
        assert told in ending.state.failure.message
        assert ending.state.failure.message.endswith("at phases.ask.next[1].when.")


async def test_a_specialist_whose_condition_has_no_order(theatre: Theatre) -> None:
    ending = await theatre.run(flow(phase("ask", does("a", when="run > visit"))), {"a": nothing})
    assert ending.kind == "failed"
    failure = ending.state.tasks["ask/a"].failure
    assert failure is not None
    assert failure.message.endswith("compares a text with a number, at phases.ask.specialists.a.when.")
