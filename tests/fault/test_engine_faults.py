"""What agents, clocks, stores and people do to a run that plays (FAULTS 6, 17, 26, 27, 28, 29, 38)."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.engine.atlas import Ending
from orchestra.engine.orders import Order, write_order
from orchestra.errors import BadOrder, RunOwned, StoreFull
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import Instant, RunId
from orchestra.model.workflow import Retry, Workflow
from orchestra.ports.store import RowQuery
from orchestra.stores.memory import MemoryStore
from orchestra.stores.sqlite import SqliteStore
from orchestra.testing.faulty import Fault, FaultPlan, FaultyStore
from tests.fault.support.engine_work import RUN, WORKFLOW, Cast, digest_of, play
from tests.fault.support.work import manager_of
from tests.outcome import outcome_digest
from tests.unit.engine.support import (
    Failing,
    Theatre,
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


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


class Ends(BaseException):
    """Something no agent should raise."""


async def _swallows(ctx: Any) -> str:
    while True:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return "swallowed"


async def _raises_late(ctx: Any) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        raise ValueError("in finally")


def _raising(error: BaseException) -> Any:
    async def agent(ctx: Any) -> None:
        raise error

    return agent


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (_swallows, None),
        (_raises_late, None),
        (_raising(Ends("bye")), "Ends"),
        (_raising(SystemExit(3)), "SystemExit"),
        (_raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (_raising(ExceptionGroup("both", [ValueError("one"), KeyError("two")])), "ExceptionGroup"),
        (_raising(asyncio.CancelledError()), "CancelledError"),
    ],
)
async def test_an_agent_that_misbehaves_is_one_stored_failure(
    theatre: Theatre, bad: Any, error: str | None
) -> None:
    """FAULTS 27: siblings keep what they finished, and so does the run."""
    limit = Retry(
        attempts=1, timeout_us=100_000 if error is None else None
    )  # those who do not end by themselves
    workflow = flow(phase("work", does("good"), does("bad", retry=limit)), policy=policy("fail"))
    ending = await theatre.run(workflow, {"good": returns("kept"), "bad": bad})
    assert ending.kind == "failed"
    failures = [event.failure for event in theatre.events if event.kind == "task_failed"]
    assert len(failures) == 1
    assert error is None or failures[0].error == error
    assert result(ending.state, "work/good") == "kept"
    assert (await theatre.resume({"good": nothing, "bad": nothing})).kind == "completed"


async def test_a_thread_that_hangs_is_recorded_and_others_go_on(theatre: Theatre) -> None:
    """FAULTS 26: a blocking call cannot be stopped; its run fails by name, other runs do not notice."""
    release = threading.Event()

    def stuck(ctx: Any) -> None:
        release.wait(60)

    limit = Retry(attempts=1, timeout_us=50_000)
    hanging = flow(phase("work", does("stuck", retry=limit)), policy=policy("fail"))
    found: dict[str, Ending] = {}
    async with theatre.house({"stuck": stuck, "good": nothing}) as house, anyio.create_task_group() as group:

        async def played(workflow: Workflow, run: str) -> None:
            found[run] = await house.run(workflow, run=run)

        group.start_soon(played, hanging, "hanging")
        for number in range(5):
            await played(flow(phase("work", does("good"))), f"other-{number}")
    release.set()
    assert {run: ending.kind for run, ending in found.items() if run != "hanging"} == {
        f"other-{number}": "completed" for number in range(5)
    }
    failure = found["hanging"].state.failure
    assert failure is not None
    assert failure.error == "Abandoned"
    assert "thread" in failure.message
    assert "took longer than" in failure.message


async def test_a_run_that_kills_its_processes_is_parked(theatre: Theatre) -> None:
    """FAULTS 6: after three recoveries it is left alone, other runs go on, and by hand it can be resumed."""
    work = flow(phase("work", does("deadly")))

    async def dies() -> None:
        """A process that is gone in the middle: what it held is free, and nothing was said."""
        started = anyio.Event()

        async def deadly(ctx: Any) -> None:
            started.set()
            await anyio.sleep_forever()

        async with theatre.house({"deadly": deadly}) as house, anyio.create_task_group() as group:
            known = theatre.store.run(RunId("run")) is not None
            group.start_soon(
                lambda: house.resume("run", by_hand=False) if known else house.run(work, run="run")
            )
            await started.wait()
            group.cancel_scope.cancel()

    for _ in range(4):
        await dies()
    ending = await theatre.resume({"deadly": nothing}, by_hand=False)
    assert ending.kind == "failed"
    assert ending.state.failure is not None
    assert ending.state.failure.error == "Parked"
    assert ending.state.metrics.recoveries == 3
    other = await theatre.run(flow(phase("work", does("good"))), {"good": nothing}, run="other")
    assert other.kind == "completed"
    assert (await theatre.resume({"deadly": nothing})).kind == "completed"


@pytest.mark.parametrize("jump", [3600.0, -3600.0, -1_700_000_000.0], ids=["forward", "back", "1970"])
async def test_the_clock_may_jump(theatre: Theatre, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    """FAULTS 17: in a process and between two, nothing times out early, waits for ever or loses order."""
    real, offset = time.time_ns, [0.0]
    monkeypatch.setattr(time, "time_ns", lambda: real() + int(offset[0] * 1e9))
    calls: list[int] = []

    async def flaky(ctx: Any) -> str:
        calls.append(ctx.attempt)
        if ctx.attempt == 1:
            offset[0] = jump
            await ctx.save("before the jump")
            raise RuntimeError("once more")
        if ctx.attempt == 2:
            await ctx.limited(30, "a wait told by the clock of before")
        return "done"

    retry = Retry(attempts=3, backoff_us=20_000, timeout_us=600_000_000)
    workflow = flow(
        phase("work", does("flaky", retry=retry), timeout_us=600_000_000), policy=policy("restart", "fail")
    )
    async with theatre.house({"flaky": flaky}) as house, anyio.create_task_group() as group:
        group.start_soon(lambda: house.run(workflow, run="run"))
        await theatre.until(lambda turn: bool(turn.state.waits))
        house.drain()
    offset[0] = jump * 2
    with anyio.fail_after(180):
        ending = await theatre.resume({"flaky": flaky})
    assert (ending.kind, calls) == ("completed", [1, 2, 3])
    rows = theatre.store.rows(RowQuery(run=RunId("run")))
    assert [row.seq for row in rows] == list(range(len(rows)))


async def test_cancelling_the_process_at_every_point_leaves_a_legal_prefix(tmp_path: Path) -> None:
    """FAULTS 28: 50 points; what is stored is whole, and the run ends as it would have."""
    async with Orchestra(MemoryStore(), functions=Cast(tmp_path).functions(), project=tmp_path) as house:
        undisturbed = digest_of(await house.run(WORKFLOW, run=RUN))
    cut = 0
    for point in range(50):
        store = MemoryStore()
        with anyio.CancelScope() as scope:
            await _cancelled_after(store, tmp_path, point, scope)
        cut += scope.cancelled_caught
        assert not verify_store(manager_of(store).archive).findings
        assert digest_of(await play(store, tmp_path)) == undisturbed
    assert cut >= 25


async def _cancelled_after(store: MemoryStore, folder: Path, commits: int, scope: anyio.CancelScope) -> None:
    class Watch:
        seen = 0

        def notice(self, notice: Any) -> None:
            if notice.kind == "turn_recorded":
                self.seen += 1
                if self.seen > commits:
                    scope.cancel()

    functions = Cast(folder).functions()
    async with Orchestra(store, functions=functions, project=folder, sinks=[Watch()]) as house:
        await house.run(WORKFLOW, run=RUN)


async def test_a_time_limit_does_not_reach_a_snapshot_that_is_written(theatre: Theatre) -> None:
    """FAULTS 29: an agent times out while its milestone is committed; that is written whole all the same."""

    async def saver(ctx: Any) -> None:
        number = (ctx.private or 0) + 1
        while True:
            await ctx.save(number)
            number += 1

    limit = Retry(attempts=3, backoff_us=0, timeout_us=30_000)
    workflow = flow(phase("work", does("saver", retry=limit)), policy=policy("restart", "fail"))
    ending = await theatre.run(workflow, {"saver": saver})
    assert ending.kind == "failed"
    assert kinds(theatre.events).count("task_failed") == 3
    saved = [event.private for event in theatre.events if event.kind == "milestone_reached"]
    assert len(saved) == len(set(saved)), "each went on from what the one before had saved last"
    assert not verify_store(manager_of(theatre.store).archive).findings


async def test_a_rollback_while_the_run_is_writing(theatre: Theatre) -> None:
    """FAULTS 38: it goes to whoever plays the run; somebody else cannot take the run meanwhile."""
    second = anyio.Event()

    async def saver(ctx: Any) -> str:
        number = 0
        while not second.is_set():
            number += 1
            await ctx.save(number)
            if ctx.effect_key.endswith("/1"):
                return "second time"
        return "too late"

    found: list[Ending] = []
    functions = {"a": returns("a"), "saver": saver}
    workflow = flow(phase("one", does("a"), next=["two"]), phase("two", does("saver")))
    async with theatre.house(functions) as house, anyio.create_task_group() as group:

        async def played() -> None:
            found.append(await house.run(workflow, run="run"))

        group.start_soon(played)
        await theatre.until(lambda turn: turn.header.seq >= 20)
        async with theatre.house(functions) as other:
            with pytest.raises(RunOwned):
                await other.resume("run")
        await house.order("run", Order(kind="rollback", target="0", reason="from the start"))
    assert found[0].kind == "completed"
    assert result(found[0].state, "two/saver") == "second time"
    (record,) = found[0].state.rollbacks
    assert (record.to_seq, record.reason, record.undone) == (0, "from the start", ("one/a",))
    assert not verify_store(manager_of(theatre.store).archive).findings


async def test_a_store_that_is_full_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    """At every commit: the error reaches the caller as itself, and the run goes on when there is room."""
    async with Orchestra(MemoryStore(), functions=Cast(tmp_path).functions(), project=tmp_path) as house:
        undisturbed = digest_of(await house.run(WORKFLOW, run=RUN))
    nth = 0
    while True:
        inner = MemoryStore()
        plan = FaultPlan([Fault(methods={"commit"}, nth=nth, kind=StoreFull)])
        try:
            ending = await play(FaultyStore(inner, plan), tmp_path)
        except StoreFull:
            assert digest_of(await play(inner, tmp_path)) == undisturbed
            nth += 1
        else:  # there are not so many commits
            assert digest_of(ending) == undisturbed
            break
    assert nth > 15


async def test_an_order_taken_by_another_process_reaches_the_one_that_plays(tmp_path: Path) -> None:
    """Through the store: an answer, and a rollback to a snapshot that is not there.

    Who asks for the latter is told so; one that was left in the store all the same is noted and taken out.
    """

    async def asks(ctx: Any) -> Any:
        return await ctx.ask("Which?")

    found: list[Ending] = []
    with (
        SqliteStore(tmp_path / "o.db", create=True) as one,
        SqliteStore(tmp_path / "o.db", create=False) as two,
    ):
        here, there = Theatre(tmp_path, one), Theatre(tmp_path, two)
        async with (
            here.house({"a": asks}) as house,
            there.house() as other,
            anyio.create_task_group() as group,
        ):

            async def played() -> None:
                found.append(await house.run(flow(phase("work", does("a"))), run="run", wait=True))

            group.start_soon(played)
            await here.until_waiting()
            nowhere = Order(kind="rollback", target="999")
            with pytest.raises(BadOrder, match="there is no snapshot 999"):
                await other.order("run", nowhere)
            two.send(RunId("run"), write_order(nowhere), Instant(1))
            await other.order("run", Order(kind="answer", value="this"))
    assert (found[0].kind, result(found[0].state, "work/a")) == ("completed", "this")
    notes = [event.note for event in here.events if event.kind == "snapshot_requested"]
    assert len(notes) == 1
    assert "999" in notes[0]


async def test_many_runs_at_once_and_a_poisoned_one(tmp_path: Path) -> None:
    """500 small runs over one SQLite store; one that fails in every way disturbs none of them."""
    work = flow(phase("one", does("a"), does("b"), next=["two"]), phase("two", does("a")))
    bad = flow(phase("one", does("bad")), policy=policy("restart", "rollback", "fail", attempts=2))
    found: dict[str, Ending] = {}
    with SqliteStore(tmp_path / "orchestra.db", create=True) as store:
        theatre = Theatre(tmp_path, store)
        functions: dict[str, Any] = {"a": returns("a"), "b": returns("b"), "bad": Failing(99)}
        async with theatre.house(functions) as house, anyio.create_task_group() as group:

            async def played(workflow: Workflow, run: str) -> None:
                found[run] = await house.run(workflow, run=run)

            group.start_soon(played, bad, "poisoned")
            for number in range(500):
                group.start_soon(played, work, f"run-{number}")
    endings = [ending for run, ending in found.items() if run != "poisoned"]
    assert len(endings) == 500
    assert {ending.kind for ending in endings} == {"completed"}
    assert len({outcome_digest(ending.state) for ending in endings}) == 1
    assert found["poisoned"].kind == "failed"
    assert statuses(endings[0].state) == {"one/a": "completed", "one/b": "completed", "two/a": "completed"}
