"""What is done about assignments that fail, step by step."""

from typing import Any

import anyio
import pytest

from orchestra.engine.orders import Order
from orchestra.model.events import RolledBack
from orchestra.model.records import Task
from orchestra.model.workflow import ConfidencePolicy, Retry
from orchestra.ports.agent import Result
from tests.unit.engine.support import (
    Failing,
    Theatre,
    context,
    decisions,
    does,
    flow,
    kinds,
    nothing,
    phase,
    policy,
    result,
    returns,
    statuses,
)

pytestmark = pytest.mark.anyio


def _task(theatre: Theatre, name: str) -> Task:
    return theatre.turns[-1].state.tasks[name]


async def test_a_restart_goes_on_from_the_last_milestone(theatre: Theatre) -> None:
    seen: list[Any] = []

    async def agent(ctx: Any) -> Any:
        seen.append((ctx.attempt, ctx.private, ctx.step, ctx.recovered, ctx.effect_key, bool(ctx.resume)))
        if ctx.attempt < 3:
            await ctx.save({"at": ctx.attempt}, step=f"step {ctx.attempt}", progress=0.1)
            raise RuntimeError("once more")
        return ctx.private

    workflow = flow(phase("job", does("a", "agent")), policy=policy("restart", "fail", attempts=3))
    ending = await theatre.run(workflow, {"agent": agent})
    key = "run/job/1/a/0"
    assert seen == [
        (1, None, None, False, key, False),
        (2, {"at": 1}, "step 1", True, key, True),
        (3, {"at": 2}, "step 2", True, key, True),
    ]
    assert result(ending.state, "job/a") == {"at": 2}
    assert ending.state.open_failures == 0


def test_back_off_doubles_up_to_its_limit() -> None:
    retry = Retry(backoff_us=10, max_backoff_us=35)
    assert [retry.wait_us(failed) for failed in range(6)] == [0, 10, 20, 35, 35, 35]


async def test_a_restart_waits_its_time(theatre: Theatre) -> None:
    patient = Retry(attempts=2, backoff_us=40_000)
    workflow = flow(phase("job", does("a", retry=patient)), policy=policy("restart", "fail"))
    await theatre.run(workflow, {"a": Failing(1)})
    failed = next(event.at for event in theatre.events if event.kind == "task_failed")
    again = [event.at for event in theatre.events if event.kind == "agent_launched"][1]
    assert again - failed >= 40_000


async def test_a_failure_keeps_everything_that_is_known(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        ctx.fail("it broke", details={"line": 7})

    ending = await theatre.run(
        flow(phase("job", does("a", "agent")), policy=policy("fail")), {"agent": agent}
    )
    assert ending.kind == "failed"
    failure = ending.state.failure
    assert failure is not None
    assert (failure.message, failure.recoverable) == ("it broke", True)
    assert ending.state.has_open_failure
    (made,) = decisions(ending.state, "failure_handling")
    assert made.description == "Fail the run"
    assert made.rationale == "job/a failed once: Failed: it broke"


async def test_what_cannot_be_recovered_is_not_restarted(theatre: Theatre) -> None:
    calls = 0

    async def agent(ctx: Any) -> None:
        nonlocal calls
        calls += 1
        ctx.fail("no key", recoverable=False)

    workflow = flow(phase("job", does("a", "agent")), policy=policy("restart", "fail", attempts=5))
    assert (await theatre.run(workflow, {"agent": agent})).kind == "failed"
    assert calls == 1


async def test_a_substitute_takes_over_without_what_the_first_saved(theatre: Theatre) -> None:
    seen: list[Any] = []

    async def broken(ctx: Any) -> None:
        await ctx.save("mine")
        raise RuntimeError("broken")

    async def spare(ctx: Any) -> str:
        seen.append((ctx.private, ctx.attempt, ctx.effect_key))
        return "saved"

    work = phase("job", does("a", "broken", substitute="spare", on_failure=("restart", "substitute", "fail")))
    ending = await theatre.run(flow(work, policy=policy(attempts=2)), {"broken": broken, "spare": spare})
    assert result(ending.state, "job/a") == "saved"
    assert seen == [(None, 1, "run/job/1/a/0")]
    (made,) = decisions(ending.state, "failure_handling")
    assert made.description == "Let spare do job/a instead of broken"
    assert made.alternatives == ("fail",)


async def test_a_substitute_that_fails_too_leads_to_the_next_step(theatre: Theatre) -> None:
    work = phase("job", does("a", substitute="b", on_failure=("substitute", "degrade")))
    ending = await theatre.run(flow(work, policy=policy()), {"a": Failing(9), "b": Failing(9)})
    assert ending.kind == "completed"
    assert statuses(ending.state) == {"job/a": "skipped"}
    made = [each.description for each in decisions(ending.state)]
    assert made == ["Let b do job/a instead of a", "Go on without job/a"]


async def test_degrading_goes_on_without_its_contribution(theatre: Theatre) -> None:
    work = phase("job", does("a", into="it"), does("b", into="it"), does("c", needs=("a",)))
    workflow = flow(work, context={"it": "append"}, policy=policy("degrade"))
    ending = await theatre.run(workflow, {"a": Failing(9), "b": returns("b"), "c": nothing})
    assert ending.kind == "completed"
    assert context(ending.state) == {"it": ["b"]}
    assert ending.state.open_failures == 0


async def test_a_run_that_fails_keeps_what_its_siblings_were_doing(theatre: Theatre) -> None:
    failed = anyio.Event()

    async def slow(ctx: Any) -> str:
        await failed.wait()
        await ctx.save("still at it")
        return "paid for"

    async def broken(ctx: Any) -> None:
        failed.set()
        raise RuntimeError("broken")

    work = phase("job", does("slow"), does("broken"), does("later", "slow", needs=("slow",)))
    ending = await theatre.run(flow(work, policy=policy("fail")), {"slow": slow, "broken": broken})
    assert ending.kind == "failed"
    assert result(ending.state, "job/slow") == "paid for"
    assert "job/later" not in ending.state.tasks


async def test_a_failed_run_is_resumed_by_hand_with_what_it_has(theatre: Theatre) -> None:
    done = Failing(0, "kept")
    flaky = Failing(1, "at last")
    workflow = flow(phase("job", does("done"), does("flaky")), policy=policy("fail"))
    assert (await theatre.run(workflow, {"done": done, "flaky": flaky})).kind == "failed"
    ending = await theatre.resume({"done": done, "flaky": flaky})
    assert ending.kind == "completed"
    assert (done.calls, flaky.calls) == (1, 2)
    assert ending.state.failure is None


# Rollback.


async def test_a_rollback_keeps_what_it_does_not_blame(theatre: Theatre) -> None:
    """What the failed one needed is blamed, as it was made from that; the generation grows."""
    keys: list[str] = []
    counts = {"apart": Failing(0, "apart"), "before": Failing(0, "before")}

    class Flaky(Failing):
        async def __call__(self, ctx: Any) -> Any:
            keys.append(ctx.effect_key)
            return await super().__call__(ctx)

    flaky = Flaky(1, "late")
    work = phase("job", does("apart"), does("before"), does("flaky", needs=("before",)))
    workflow = flow(work, policy=policy("rollback", "fail"))
    ending = await theatre.run(workflow, {**counts, "flaky": flaky})
    assert ending.kind == "completed"
    assert (counts["apart"].calls, counts["before"].calls, flaky.calls) == (1, 2, 2)
    assert keys == ["run/job/1/flaky/0", "run/job/1/flaky/1"]
    back = next(event for event in theatre.events if isinstance(event, RolledBack))
    assert (back.kept, back.undone, back.generation) == (("job/apart",), ("job/before",), 1)
    (record,) = ending.state.rollbacks
    assert "job/flaky failed once" in record.reason
    assert ending.state.metrics.rollbacks == 1
    assert any("Roll back to snapshot" in made.description for made in decisions(ending.state))
    (told,) = (turn.header.events for turn in theatre.turns if "rolled_back" in turn.header.triggers)
    assert [line.kind for line in told[:2]] == ["decision_made", "rolled_back"]


async def test_what_is_kept_keeps_its_outputs_and_effects(theatre: Theatre) -> None:
    done: list[str] = []

    async def writer(ctx: Any) -> str:
        await ctx.write("report.md", "# kept")
        await ctx.effect("publish", done.append)
        return "written"

    async def flaky(ctx: Any) -> None:
        if ctx.effect_key.endswith("/0"):
            await theatre.until(lambda turn: turn.state.tasks["job/writer"].status == "completed")
            raise RuntimeError("broken")

    work = phase(
        "job", does("writer", outputs=("report.md",)), does("flaky", needs=("first",)), does("first")
    )
    ending = await theatre.run(
        flow(work, policy=policy("rollback", "fail")), {"writer": writer, "flaky": flaky, "first": nothing}
    )
    assert ending.kind == "completed"
    assert list(ending.state.outputs) == ["job/report.md"]
    assert [effect.status for effect in ending.state.effects.values()] == ["done"]
    assert len(done) == 1


async def test_of_a_list_only_the_item_that_failed_is_done_again(theatre: Theatre) -> None:
    calls: list[int] = []

    async def each(ctx: Any) -> int:
        calls.append(ctx.item)
        if ctx.item == 2 and ctx.effect_key.endswith("/0"):
            await theatre.until(lambda turn: turn.state.completed_tasks == 3)
            raise RuntimeError("broken")
        return int(ctx.item)

    work = phase("job", does("each", foreach="[0, 1, 2, 3]", into="found"))
    workflow = flow(work, context={"found": "append"}, policy=policy("rollback", "fail"))
    ending = await theatre.run(workflow, {"each": each})
    assert (ending.kind, context(ending.state)) == ("completed", {"found": [0, 1, 2, 3]})
    assert sorted(calls) == [0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("lists", "redone", "found"),
    [
        ([[0, 1, 2, 3]] * 2, [2], [0, 1, 2, 3]),
        ([[0, 1, 2, 3], [0, 1, 2]], [0, 1, 2], [0, 1, 2]),
        ([[0, 1, 2, 3], [2]], [2], [2]),
        ([[0, 1, 2, 3], []], [], []),
        ([[0, 1, 2, 3], [5, 2, 0, 1, 3, 4]], [5, 2, 0, 1, 3, 4], [5, 2, 0, 1, 3, 4]),
    ],
    ids=["the same again", "shorter", "only the one that failed", "empty", "longer"],
)
async def test_items_made_from_the_same_are_kept_when_that_is_made_again(
    theatre: Theatre, lists: list[list[int]], redone: list[int], found: list[int]
) -> None:
    """What the item needed is blamed and done again; with the same result nothing else has to be."""
    given, calls = iter(lists), list[tuple[int, str]]()

    async def lister(ctx: Any) -> list[int]:
        return next(given)

    async def each(ctx: Any) -> int:
        generation = ctx.effect_key.rpartition("/")[2]
        calls.append((ctx.item, generation))
        if ctx.item == 2 and generation == "0":
            await theatre.until(lambda turn: turn.state.completed_tasks == 4)
            raise RuntimeError("broken")
        return int(ctx.item)

    async def last(ctx: Any) -> list[int]:
        return list(ctx.needs["each"])

    work = phase(
        "job",
        does("list", "lister"),
        does("each", needs=("list",), foreach="needs.list", into="found"),
        does("last", needs=("each",)),
    )
    workflow = flow(work, context={"found": "append"}, policy=policy("rollback", "fail"))
    ending = await theatre.run(workflow, {"lister": lister, "each": each, "last": last})
    assert (ending.kind, context(ending.state).get("found", [])) == ("completed", found)
    assert [item for item, generation in calls if generation == "1"] == redone
    assert result(ending.state, "job/last") == found
    assert not [name for name, status in statuses(ending.state).items() if status in ("pending", "running")]


async def test_a_kept_item_is_looked_at_again_by_another_process(theatre: Theatre) -> None:
    """Stopped before what it needs was there again: whoever goes on uses nothing that is outdated."""
    given, calls = iter([[1, 2], [1, 3]]), list[int]()

    async def lister(ctx: Any) -> list[int]:
        made = next(given)
        if ctx.effect_key.endswith("/1"):
            houses[0].drain()
        return made

    async def each(ctx: Any) -> int:
        calls.append(ctx.item)
        if ctx.item == 2:
            await theatre.until(lambda turn: turn.state.completed_tasks == 2)
            raise RuntimeError("broken")
        return int(ctx.item)

    work = phase(
        "job", does("list", "lister"), does("each", needs=("list",), foreach="needs.list", into="found")
    )
    workflow = flow(work, context={"found": "append"}, policy=policy("rollback", "fail"))
    functions = {"lister": lister, "each": each}
    async with theatre.house(functions) as house:
        houses = [house]
        ending = await house.run(workflow, run="run")
    assert ending.kind == "interrupted"
    given = iter([[1, 3]])
    ending = await theatre.resume(functions)
    assert (ending.kind, context(ending.state)) == ("completed", {"found": [1, 3]})


async def test_rollbacks_are_counted_and_end(theatre: Theatre) -> None:
    flaky = Failing(99)
    steps = ("restart", *["rollback"] * 9, "fail")
    workflow = flow(phase("job", does("flaky")), policy=policy(*steps, attempts=2, recoveries=3))
    ending = await theatre.run(workflow, {"flaky": flaky})
    assert ending.kind == "failed"
    assert ending.state.metrics.rollbacks == 3
    assert flaky.calls == 2 * 4
    assert ending.state.generation == 3


async def test_each_rollback_makes_the_run_less_sure(theatre: Theatre) -> None:
    """The factor is not lost when the specialists are asked how sure they are again."""
    sure = Result(output="x", confidence=0.8)
    work = phase("job", does("sure"), does("flaky"))
    limits = policy("rollback", "rollback", "fail", confidence=ConfidencePolicy(rollback_factor=0.5))
    ending = await theatre.run(flow(work, policy=limits), {"sure": returns(sure), "flaky": Failing(2, sure)})
    assert ending.kind == "completed"
    assert ending.state.confidence.overall == pytest.approx(0.8 * 0.5 * 0.5)


@pytest.mark.parametrize(
    ("steps", "rollbacks", "calls", "status"),
    [
        (("restart", "rollback", "degrade"), 1, 4, "skipped"),
        (("restart", "rollback", "rollback", "degrade"), 2, 6, "skipped"),
        (("rollback", "fail"), 1, 2, "failed"),
        (("substitute", "rollback", "degrade"), 1, 2, "skipped"),
        (("rollback", "substitute", "degrade"), 1, 2, "skipped"),
    ],
)
async def test_each_step_is_tried_once_and_then_the_next(
    theatre: Theatre, steps: tuple[str, ...], rollbacks: int, calls: int, status: str
) -> None:
    flaky, spare = Failing(99), Failing(99)
    work = phase("job", does("flaky", substitute="spare", on_failure=steps))
    ending = await theatre.run(
        flow(work, policy=policy("fail", attempts=2)), {"flaky": flaky, "spare": spare}
    )
    assert (ending.state.metrics.rollbacks, flaky.calls) == (rollbacks, calls)
    assert spare.calls == int("substitute" in steps)
    assert statuses(ending.state) == {"job/flaky": status}
    assert [record.blamed for record in ending.state.rollbacks] == ["job/flaky"] * rollbacks
    back = [made for made in decisions(ending.state) if made.description.startswith("Roll back")]
    assert back[-1].alternatives == steps[len(steps) - steps[::-1].index("rollback") :]


async def test_another_visit_climbs_the_ladder_anew(theatre: Theatre) -> None:
    work = phase("job", does("flaky"), next=[("job", "visit < 2"), "end"])
    ending = await theatre.run(flow(work, policy=policy("rollback", "degrade")), {"flaky": Failing(99)})
    assert (ending.kind, ending.state.metrics.rollbacks) == ("completed", 2)
    assert [record.blamed for record in ending.state.rollbacks] == ["job/flaky", "job.2/flaky"]


async def test_a_rollback_waits_for_siblings_it_does_not_blame(theatre: Theatre) -> None:
    """They are not started again: the run goes back once their results are there to be kept."""
    calls, is_broken = list[str](), anyio.Event()

    async def slow(ctx: Any) -> None:
        calls.append(ctx.effect_key)
        await theatre.until(lambda turn: turn.state.open_failures == 1)
        is_broken.set()

    async def item(ctx: Any) -> None:
        calls.append(ctx.effect_key)
        await is_broken.wait()

    work = phase("job", does("slow"), does("item", foreach="[1]"), does("flaky"))
    functions: dict[str, Any] = {"slow": slow, "item": item, "flaky": Failing(1)}
    ending = await theatre.run(flow(work, policy=policy("rollback", "fail")), functions)
    assert ending.kind == "completed"
    assert sorted(calls) == ["run/job/1/item[0]/0", "run/job/1/slow/0"]
    (record,) = ending.state.rollbacks
    assert sorted(record.kept) == ["job/item[0]", "job/slow"]


async def test_a_sibling_that_asks_is_not_asked_again_because_of_a_rollback(theatre: Theatre) -> None:
    """Cut off while it waits and taken up again: it goes on with its answer first, then the run goes back."""
    asked = list[str]()

    async def asks(ctx: Any) -> str:
        asked.append(ctx.effect_key)
        return str(await ctx.ask("Really?"))

    functions: dict[str, Any] = {"asks": asks, "flaky": Failing(1)}
    work = flow(phase("job", does("asks"), does("flaky")), policy=policy("rollback", "fail"))
    assert (await theatre.run(work, functions)).kind == "waiting"
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="answer", value="yes"))
        ending = await house.resume("run")
    assert (ending.kind, result(ending.state, "job/asks")) == ("completed", "yes")
    assert (asked, ending.state.metrics.rollbacks) == (["run/job/1/asks/0"] * 2, 1)
    assert kinds(theatre.events).count("wait_opened") == 1


async def test_a_rollback_cancels_siblings_and_refuses_what_they_still_say(
    theatre: Theatre,
) -> None:
    """What both are made from is made again, so the sibling is, too."""
    stopped: list[str] = []
    started = anyio.Event()

    async def slow(ctx: Any) -> str:
        if ctx.effect_key.endswith("/0"):
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                stopped.append(ctx.effect_key)
        return "second time"

    async def flaky(ctx: Any) -> None:
        await started.wait()
        if ctx.effect_key.endswith("/0"):
            raise RuntimeError("broken")

    work = phase("job", does("first"), does("slow", needs=("first",)), does("flaky", needs=("first",)))
    workflow = flow(work, policy=policy("rollback", "fail"))
    ending = await theatre.run(workflow, {"first": nothing, "slow": slow, "flaky": flaky})
    assert (ending.kind, stopped) == ("completed", ["run/job/1/slow/0"])
    assert result(ending.state, "job/slow") == "second time"


# Asking a person.


async def _waiting(theatre: Theatre, functions: dict[str, Any], steps: tuple[str, ...] = ("ask",)) -> str:
    workflow = flow(phase("job", does("a"), does("b")), policy=policy(*steps))
    ending = await theatre.run(workflow, functions)
    assert ending.kind == "waiting"
    (name,) = [name for name, wait in ending.state.waits.items() if wait.status == "open"]
    return name


@pytest.mark.parametrize(
    ("answer", "kind", "calls"), [("retry", "completed", 2), ("skip", "completed", 1), ("fail", "failed", 1)]
)
async def test_a_person_says_what_to_do(theatre: Theatre, answer: str, kind: str, calls: int) -> None:
    functions: dict[str, Any] = {"a": Failing(1), "b": returns("b")}
    question = await _waiting(theatre, functions)
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="answer", target=question, value=answer))
        ending = await house.resume("run")
    assert (ending.kind, functions["a"].calls) == (kind, calls)
    assert result(ending.state, "job/b") == "b"


async def test_every_failure_is_asked_about_anew(theatre: Theatre) -> None:
    """An answer counts for one failure; taking it for the next would retry for ever."""
    functions: dict[str, Any] = {"a": Failing(2), "b": nothing}
    await _waiting(theatre, functions)
    endings = []
    for _ in range(2):
        async with theatre.house(functions) as house:
            await house.order("run", Order(kind="answer", value="retry"))
            endings.append((await house.resume("run")).kind)
    assert endings == ["waiting", "completed"]
    assert kinds(theatre.events).count("wait_opened") == 2
