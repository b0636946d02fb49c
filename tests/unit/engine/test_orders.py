"""Orders, slots and outcomes."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from orchestra.engine.orders import ORDER_KINDS, Order, read_order, refusal, refusal_reason, write_order
from orchestra.engine.stage import Slots
from orchestra.engine.start import definition_changes
from orchestra.errors import BadOrder, StoreFailed
from orchestra.ids import RunId
from orchestra.model.events import SnapshotRequested
from orchestra.model.headline import headline
from orchestra.stores.memory import MemoryStore
from orchestra.testing import Fault, FaultPlan, FaultyStore
from tests.outcome import outcome_digest
from tests.unit.engine.support import (
    Failing,
    Theatre,
    does,
    flow,
    nothing,
    phase,
    policy,
    result,
    returns,
    statuses,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ORDER_KINDS)
def test_orders_travel_as_bytes(kind: Any) -> None:
    order = Order(kind=kind, target="ä", value={"x": [1, None]}, reason="why")
    assert read_order(write_order(order)) == order


@pytest.mark.parametrize("value", [["\ud800"], {"\ud800": 1}, {1, 2}, b"x"])
def test_a_value_that_cannot_travel_is_refused(value: Any) -> None:
    with pytest.raises(BadOrder, match="its value cannot be sent"):
        write_order(Order(kind="answer", value=value))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"kind": "explode"}',
        b'{"kind": 3}',
        b'{"x": 1}',
        b"\xff",
        b'{"kind":"pause","target":7}',
        b'{"kind":"pause","reason":"\\ud800"}',
    ],
)
def test_what_is_no_order_is_refused(body: bytes) -> None:
    with pytest.raises(BadOrder):
        read_order(body)


async def test_what_was_given_up_can_be_wanted_after_all(theatre: Theatre) -> None:
    """While its siblings are still at work, and while nobody plays the run."""
    release = anyio.Event()

    async def slow(ctx: Any) -> None:
        await release.wait()

    functions: dict[str, Any] = {"slow": slow, "flaky": Failing(1, "at last")}
    workflow = flow(phase("work", does("slow"), does("flaky")), policy=policy("degrade"))
    found: list[Any] = []
    async with theatre.house(functions) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(workflow, run="run"))

        group.start_soon(play)
        await theatre.until(lambda turn: turn.state.tasks["work/flaky"].status == "skipped")
        with pytest.raises(BadOrder, match="running"):
            await house.order("run", Order(kind="retry", target="slow"))
        await house.order("run", Order(kind="retry", target="flaky"))
        await theatre.until(lambda turn: turn.state.tasks["work/flaky"].status == "completed")
        release.set()
    assert found[0].kind == "completed"
    assert result(found[0].state, "work/flaky") == "at last"


async def test_a_rollback_of_a_run_that_nobody_plays(theatre: Theatre) -> None:
    """CHECKLIST 000.4: told first, done then; the history stays."""
    stop = Failing(1)
    workflow = flow(phase("one", does("a"), next=["two"]), phase("two", does("stop")), policy=policy("fail"))
    functions: dict[str, Any] = {"a": Failing(0), "stop": stop}
    assert (await theatre.run(workflow, functions)).kind == "failed"
    async with theatre.house(functions) as house:
        plan = await house.rollback_plan("run", 0)
        assert (plan.to, plan.phase, plan.undone, plan.kept) == (0, "one", ("one/a",), ())
        before = len(theatre.turns)
        await house.order("run", Order(kind="rollback", target="0", reason="again"))
        state = (await house.manager.look("run")).state  # type: ignore[arg-type]
        assert (state.status, state.cursor.phase, state.generation) == ("paused", "one", 1)
        ending = await house.resume("run")
    assert (ending.kind, functions["a"].calls, stop.calls) == ("completed", 2, 2)
    assert [turn.header.seq for turn in theatre.turns] == list(range(len(theatre.turns)))
    assert len(theatre.turns) > before


async def test_a_rollback_into_the_middle_of_a_task_says_so_to_its_agent(theatre: Theatre) -> None:
    """CHECKLIST 000.37: it stands where it stood then, and is told in words."""
    told: list[tuple[int, bool, str, Any]] = []

    async def agent(ctx: Any) -> None:
        told.append((ctx.attempt, ctx.recovered, ctx.resume, ctx.private))
        if len(told) == 1:
            await ctx.save({"read": 3}, progress=0.25, step="read the files")
            await ctx.save({"read": 9}, progress=0.75, step="write them down")
            raise ValueError("the disk is full")

    functions = {"agent": agent}
    assert (await theatre.run(flow(phase("one", does("a", "agent")), policy=policy("fail")), functions)).kind
    seq = next(turn.header.seq for turn in theatre.turns if turn.state.agents["a"].step == "read the files")
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="rollback", target=str(seq)))
        assert (await house.resume("run")).kind == "completed"
    assert told[0] == (1, False, "", None)
    attempt, recovered, resume, state = told[1]
    assert (attempt, recovered, state) == (1, True, {"read": 3})
    assert "- Progress: 25%" in resume
    assert "Continue with: read the files" in resume
    assert "Reason" not in resume


def test_places_are_given_out_in_turn() -> None:
    slots, order = Slots(1), list[str]()
    for name in "abc":
        slots.ask(lambda name=name: order.append(name))  # type: ignore[misc]
    assert order == ["a"]
    slots.give()
    assert order == ["a", "b"]
    slots.give()
    slots.give()
    assert order == ["a", "b", "c"]


def test_who_stops_waiting_for_a_place_takes_none() -> None:
    slots, order = Slots(1), list[str]()

    def first() -> None:
        order.append("first")

    def second() -> None:
        order.append("second")

    slots.ask(first)
    slots.ask(second)
    assert slots.withdraw(second)
    assert not slots.withdraw(first)
    slots.give()
    slots.ask(first)
    assert order == ["first", "first"]


def test_who_stands_still_lends_its_place() -> None:
    slots, order = Slots(1), list[str]()
    slots.ask(lambda: order.append("first"))
    slots.give()
    slots.ask(lambda: order.append("second"))
    slots.take()
    slots.give()
    slots.ask(lambda: order.append("third"))
    assert order == ["first", "second"]
    slots.give()
    assert order == ["first", "second", "third"]


async def test_an_outcome_is_what_was_found_not_when_or_where(theatre: Theatre) -> None:
    work = flow(
        phase("work", does("a", into="it")), context={"it": "append"}, policy=policy("restart", attempts=3)
    )
    digests = []
    for run, agent in (("one", returns(1)), ("two", Failing(2, 1)), ("three", returns(2))):
        ending = await theatre.run(work, {"a": agent}, run=run)
        digests.append(outcome_digest(ending.state))
    assert digests[0] == digests[1] != digests[2]


async def test_results_outputs_and_verdicts_count(theatre: Theatre, tmp_path: Path) -> None:
    async def writes(ctx: Any) -> None:
        await ctx.write("a.md", ctx.run)

    work = flow(phase("work", does("a")))
    one = await theatre.run(work, {"a": nothing}, run="one")
    two = await theatre.run(work, {"a": writes}, run="two")
    three = await theatre.run(work, {"a": writes}, run="three")
    assert len({outcome_digest(each.state) for each in (one, two, three)}) == 3


def test_changes_are_told_by_place() -> None:
    before = {"phases": [{"id": "a", "task": "x"}, {"id": "b"}], "name": "n"}
    after = {"phases": [{"id": "new"}, {"id": "a", "task": "y"}], "name": "n"}
    assert definition_changes(before, after) == [
        "phases.a.task was 'x' and is 'y'",
        "phases.b is gone",
        "phases.new is new",
    ]
    assert definition_changes(before, before) == []


@pytest.mark.parametrize("target", ["99", "elsewhere"])
@pytest.mark.parametrize("played", ["here", "elsewhere", "by nobody"])
async def test_a_rollback_to_nowhere_is_refused_to_whoever_wants_it(
    theatre: Theatre, target: str, played: str
) -> None:
    """Wherever the run is played; nothing is written and the run goes on."""
    release, found = anyio.Event(), list[Any]()

    async def slow(ctx: Any) -> str:
        await release.wait()
        return "done"

    order = Order(kind="rollback", target=target)
    async with theatre.house({"slow": slow}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append(await house.run(flow(phase("work", does("slow"))), run="run"))

        if played == "by nobody":
            await house.run(flow(phase("work", does("slow"), breakpoint=True)), run="run")
            release.set()
        else:
            group.start_soon(play)
            await theatre.until(lambda turn: turn.run == "run")
        head = house.manager.archive.run(RunId("run")).head
        wanted = "is not the number" if target == "elsewhere" else "there is no snapshot 99"
        async with theatre.house() as other:
            with pytest.raises(BadOrder, match=wanted):
                await (other if played == "elsewhere" else house).order("run", order)
        assert house.manager.archive.run(RunId("run")).head == head
        release.set()
    assert played == "by nobody" or found[0].kind == "completed"


@pytest.mark.parametrize(
    ("reason", "told"),
    [("no open question fits: none", "no open question fits: none"), ("word " * 100, "word word")],
)
async def test_a_refusal_is_read_from_what_the_run_noted_down(
    theatre: Theatre, reason: str, told: str
) -> None:
    """A line of a snapshot has its limit; one that had to be cut says so."""
    await theatre.run(flow(phase("work", does("a"))), {"a": nothing})
    note = refusal(7, BadOrder(order="answer", reason=reason))
    event = SnapshotRequested(at=theatre.turns[-1].header.at, why="user_requested", note=note)
    line = headline(event, theatre.turns[-1].state)
    found = refusal_reason(7, [line])
    assert found is not None
    assert found.startswith(told)
    assert found.endswith("…") == (len(reason) > 200)
    assert refusal_reason(70, [line]) is None


@pytest.mark.parametrize("order", [Order(kind="snapshot"), Order(kind="rollback", target="0")])
async def test_whoever_orders_something_in_the_turn_in_which_the_store_fails_hears_of_it(
    tmp_path: Path, order: Order
) -> None:
    theatre = Theatre(tmp_path, FaultyStore(MemoryStore(), FaultPlan([Fault(methods={"commit"}, nth=1)])))

    async def slow(ctx: Any) -> None:
        await anyio.sleep_forever()

    async with theatre.house({"slow": slow}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            with pytest.raises(StoreFailed):
                await house.run(flow(phase("work", does("slow"))), run="run")

        group.start_soon(play)
        await theatre.until(lambda turn: turn.run == "run")
        with anyio.fail_after(180), pytest.raises(BadOrder, match="not played here any more"):
            await house.order("run", order)


async def test_nobody_waits_in_a_run_that_was_cancelled_and_a_fork_goes_on(theatre: Theatre) -> None:
    async def asks(ctx: Any) -> str:
        return str(await ctx.ask("Really?"))

    work = flow(phase("job", does("asks"), does("done")))
    await theatre.run(work, {"asks": asks, "done": returns("d")})
    async with theatre.house({"asks": returns("a")}) as house:
        await house.order("run", Order(kind="cancel"))
        state = (await house.manager.look(RunId("run"))).state
        assert (state.status, state.agents["asks"].status) == ("cancelled", "idle")
        assert statuses(state) == {"job/asks": "pending", "job/done": "completed"}
        ending = await house.resume(await house.fork("run"))
    assert (ending.kind, result(ending.state, "job/asks")) == ("completed", "a")


async def test_what_failed_has_failed_until_the_run_is_resumed(theatre: Theatre) -> None:
    work = flow(phase("job", does("flaky"), does("b")), policy=policy("fail"))
    functions: dict[str, Any] = {"flaky": Failing(1), "b": nothing}
    ending = await theatre.run(work, functions)
    assert (ending.kind, ending.state.tasks["job/flaky"].status) == ("failed", "failed")
    assert ending.state.agents["flaky"].status == "failed"
    ending = await theatre.resume(functions)
    assert (ending.kind, statuses(ending.state)) == (
        "completed",
        {"job/flaky": "completed", "job/b": "completed"},
    )
    resumed = next(turn.state for turn in theatre.turns if any(e.kind == "run_resumed" for e in turn.events))
    assert resumed.open_failures == 0


async def test_what_failed_and_is_in_the_workflow_no_more_is_retired(theatre: Theatre) -> None:
    work = flow(phase("job", does("flaky"), does("b")), policy=policy("fail"))
    await theatre.run(work, {"flaky": Failing(1), "b": nothing})
    changed = flow(phase("job", does("b")), policy=policy("fail"))
    ending = await theatre.resume({"b": nothing}, workflow=changed, accept_changes=True)
    assert (ending.kind, ending.state.tasks["job/flaky"].status) == ("completed", "retired")
