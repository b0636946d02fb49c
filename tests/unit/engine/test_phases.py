"""What a phase does: needs, conditions, lists, contributions, and how many work at once."""

from typing import Any

import anyio
import pytest

from orchestra.model.workflow import Input, Policy
from tests.unit.engine.support import (
    QUICK,
    Theatre,
    context,
    does,
    flow,
    kinds,
    nothing,
    path,
    phase,
    result,
    returns,
    statuses,
)

pytestmark = pytest.mark.anyio


async def test_an_assignment_gets_its_task_inputs_and_needs(theatre: Theatre) -> None:
    seen: list[Any] = []

    async def second(ctx: Any) -> str:
        seen.append((ctx.task, ctx.needs, ctx.attempt, ctx.effect_key))
        return "b"

    workflow = flow(
        phase("job", does("first"), does("second", needs=("first",), task="after {{ needs.first }}"))
    )
    ending = await theatre.run(workflow, {"first": returns("a"), "second": second})
    assert ending.kind == "completed"
    assert seen == [("after a", {"first": "a"}, 1, "run/job/1/second/0")]


async def test_a_slow_sibling_delays_only_those_that_need_it(theatre: Theatre) -> None:
    third_ran = anyio.Event()

    async def slow(ctx: Any) -> None:
        await third_ran.wait()

    async def third(ctx: Any) -> None:
        third_ran.set()

    workflow = flow(phase("job", does("slow"), does("quick"), does("third", needs=("quick",))))
    ending = await theatre.run(workflow, {"slow": slow, "quick": nothing, "third": third})
    assert ending.kind == "completed"


async def test_contributions_enter_in_the_order_of_declaration(theatre: Theatre) -> None:
    """Whatever the order of arrival, so that parallel runs agree."""
    gates = {name: anyio.Event() for name in "abc"}

    async def late(ctx: Any) -> str:
        await gates[ctx.name].wait()
        before = {"b": "a", "c": "b"}.get(ctx.name)
        if before is not None:
            gates[before].set()
        return str(ctx.name)

    gates["c"].set()
    work = phase("job", *[does(name, "late", into="found") for name in "abc"])
    ending = await theatre.run(flow(work, context={"found": "append"}), {"late": late})
    finished = [event.task for event in theatre.events if event.kind == "task_completed"]
    assert finished == ["job/c", "job/b", "job/a"]
    assert context(ending.state) == {"found": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("reducer", "values", "wanted"),
    [
        ("replace", ["x", "y"], "y"),
        ("append", ["x", ["y", "z"]], ["x", "y", "z"]),
        ("merge", [{"a": 1, "b": 1}, {"b": 2}], {"a": 1, "b": 2}),
        ("sum", [3, 4], 7),
        ("max", [5, 4], 5),
    ],
)
async def test_results_enter_through_the_reducer(
    theatre: Theatre, reducer: str, values: list[Any], wanted: Any
) -> None:
    work = phase("job", does("one", into="it"), does("two", into="it"))
    functions = {"one": returns(values[0]), "two": returns(values[1])}
    ending = await theatre.run(flow(work, context={"it": reducer}), functions)
    assert context(ending.state) == {"it": wanted}


async def test_an_assignment_sees_the_context_of_before_and_what_it_needs(theatre: Theatre) -> None:
    """Not what its siblings contributed, however early they were."""
    seen: dict[str, Any] = {}
    told = anyio.Event()

    async def teller(ctx: Any) -> str:
        return "told"

    async def looker(ctx: Any) -> None:
        if ctx.name == "apart":
            await told.wait()
        else:
            told.set()
        seen[ctx.name] = ctx.context["found"]

    work = phase(
        "job",
        does("teller", into="found"),
        does("apart", "looker"),
        does("after", "looker", needs=("teller",)),
        next=["later"],
    )
    workflow = flow(work, phase("later", does("later", "looker")), context={"found": "append"})
    await theatre.run(workflow, {"teller": teller, "looker": looker})
    assert seen == {"apart": [], "after": ["told"], "later": ["told"]}


async def test_one_assignment_for_each_item(theatre: Theatre) -> None:
    async def each(ctx: Any) -> str:
        return f"{ctx.item}/{ctx.index}/{ctx.task}"

    work = phase(
        "job",
        does("list"),
        does("each", needs=("list",), foreach="needs.list", task="look at {{ item }}", into="found"),
    )
    workflow = flow(work, context={"found": "append"}, policy=Policy(concurrency=2, retry=QUICK))
    ending = await theatre.run(workflow, {"list": returns(["p", "q", "r"]), "each": each})
    wanted = ["p/0/look at p", "q/1/look at q", "r/2/look at r"]
    assert context(ending.state) == {"found": wanted}


async def test_an_empty_list_releases_those_that_need_it(theatre: Theatre) -> None:
    """Also when they are declared before it and it became empty only during the phase."""
    work = phase(
        "job",
        does("after", needs=("each",)),
        does("each", needs=("list",), foreach="needs.list"),
        does("list"),
    )
    ending = await theatre.run(flow(work), {"list": returns([]), "each": nothing, "after": returns(1)})
    assert ending.kind == "completed", ending.state.failure
    assert result(ending.state, "job/after") == 1


async def test_what_is_no_list_fails_the_assignment(theatre: Theatre) -> None:
    work = phase("job", does("each", foreach="inputs"))
    ending = await theatre.run(flow(work), {"each": nothing})
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert "foreach needs a list" in ending.state.failure.message


async def test_a_condition_that_does_not_hold_skips(theatre: Theatre) -> None:
    work = phase(
        "job", does("no", when="visit == 2", into="found"), does("after", needs=("no",), task="go on")
    )
    ending = await theatre.run(
        flow(work, context={"found": "append"}), {"no": returns("never"), "after": nothing}
    )
    assert ending.kind == "completed"
    assert statuses(ending.state) == {"job/no": "skipped", "job/after": "completed"}
    assert context(ending.state) == {}


async def test_a_skipped_list_is_one_skipped_assignment(theatre: Theatre) -> None:
    work = phase("job", does("each", when="false", foreach="[1, 2]"), does("other"))
    ending = await theatre.run(flow(work), {"each": nothing, "other": nothing})
    assert ending.kind == "completed"
    assert statuses(ending.state)["job/each[0]"] == "skipped"


@pytest.mark.parametrize("limit", [1, 3])
async def test_only_so_many_work_at_once(theatre: Theatre, limit: int) -> None:
    working, most = 0, 0

    async def worker(ctx: Any) -> None:
        nonlocal working, most
        working += 1
        most = max(most, working)
        await ctx.save({}, progress=0.5)
        working -= 1

    work = phase("job", does("worker", foreach="[1, 2, 3, 4, 5, 6, 7]"))
    ending = await theatre.run(flow(work, policy=Policy(concurrency=limit, retry=QUICK)), {"worker": worker})
    assert ending.kind == "completed"
    assert most == limit


async def test_a_task_that_makes_no_sense_fails_the_run_by_name(theatre: Theatre) -> None:
    """In the very first turn, so that there is no snapshot to go back to: it fails, it does not crash."""
    workflow = flow(phase("job", does("a", task="{{ inputs.it.is.not.there }}")))
    ending = await theatre.run(workflow, {"a": nothing})
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert "is.not.there" in ending.state.failure.message


async def test_a_task_that_made_no_sense_is_rendered_anew(theatre: Theatre) -> None:
    """It must never reach an agent as it stands in the file."""
    seen: list[str] = []

    async def agent(ctx: Any) -> None:
        seen.append(ctx.task)

    workflow = flow(
        phase("job", does("a", "agent", task="{{ context.it.is.not.there }}")), context={"it": "replace"}
    )
    assert (await theatre.run(workflow, {"agent": agent})).kind == "failed"
    assert (await theatre.resume({"agent": agent})).kind == "failed"
    async with theatre.house({"agent": agent}) as house:
        forked = await house.fork("run", values={"context.it": {"is": {"not": {"there": "found"}}}})
        ending = await house.resume(forked)
    assert ending.kind == "completed"
    assert seen == ["found"]


async def test_a_phase_without_specialists_is_passed(theatre: Theatre) -> None:
    ending = await theatre.run(flow(phase("empty", next=["job"]), phase("job", does("a"))), {"a": nothing})
    assert path(ending.state) == ["empty", "job"]


async def test_results_that_cannot_join_fail_the_run(theatre: Theatre) -> None:
    """A contribution that its reducer refuses is a failure with a name, not the end of the process."""
    work = phase("job", does("a", "big", into="total"), does("b", "big", into="total"))
    ending = await theatre.run(
        flow(work, context={"total": "sum"}), {"big": returns(2**1024 - 1)}, run="other"
    )
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert "bits" in ending.state.failure.message


@pytest.mark.parametrize(("reducer", "value"), [("sum", "text"), ("max", [1]), ("merge", 7)])
async def test_a_result_its_reducer_cannot_take_is_a_failed_attempt(
    theatre: Theatre, reducer: str, value: Any
) -> None:
    """Of whoever made it, and not of those who need it."""
    work = phase("job", does("a", into="it", on_failure=("degrade",)), does("b", needs=("a",)))
    ending = await theatre.run(flow(work, context={"it": reducer}), {"a": returns(value), "b": nothing})
    assert ending.kind == "completed"
    assert statuses(ending.state) == {"job/a": "skipped", "job/b": "completed"}
    failures = [event.failure for event in theatre.events if event.kind == "task_failed"]
    assert "context.it" in failures[0].message


async def test_a_list_whose_sum_is_too_large_fails_the_run(theatre: Theatre) -> None:
    work = phase("job", does("a", foreach="[1, 2]", into="it"))
    ending = await theatre.run(flow(work, context={"it": "sum"}), {"a": returns(2**1024 - 1)})
    assert ending.kind == "failed"


async def test_one_row_holds_what_a_turn_did(theatre: Theatre) -> None:
    """The end of one phase and the beginning of the next are one snapshot."""
    await theatre.run(flow(phase("one", does("a"), next=["two"]), phase("two", does("a"))), {"a": nothing})
    turn = next(turn for turn in theatre.turns if "phase_completed" in kinds(turn.events))
    assert [kind for kind in kinds(turn.events) if kind != "spent"] == [
        "task_completed",
        "phase_completed",
        "phase_started",
        "task_planned",
        "agent_launched",
    ]


@pytest.mark.parametrize(
    "task",
    ["x" * 900_000, "{{ inputs.text }}" + "x" * 900_000],
    ids=["by itself", "with its input"],
)
async def test_a_first_task_that_is_too_long_fails_a_run_that_is_on_record(
    theatre: Theatre, task: str
) -> None:
    """As a later one does; it can be looked at, and resumed with a workflow that was mended."""
    inputs = [Input(name="text", type="text")]
    ending = await theatre.run(
        flow(phase("one", does("a", task=task)), inputs=inputs), {"a": nothing}, {"text": "y" * 900_000}
    )
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert "one/a" in ending.state.failure.message
    assert "characters" in ending.state.failure.message
    mended = flow(phase("one", does("a", task="short")), inputs=inputs)
    ending = await theatre.resume({"a": nothing}, workflow=mended, accept_changes=True)
    assert (ending.kind, path(ending.state)) == ("completed", ["one"])
