"""Failures of which another attempt cannot make a success."""

from typing import Any

import pytest

from orchestra.ids import RunId
from tests.unit.engine.support import Theatre, does, flow, phase, policy

pytestmark = pytest.mark.anyio


async def test_what_cannot_recover_is_not_rolled_back(theatre: Theatre) -> None:
    paid: list[str] = []

    async def costly(ctx: Any) -> int:
        paid.append(ctx.name)
        return 1

    async def broken(ctx: Any) -> None:
        ctx.fail("there is no such module", recoverable=False)

    work = phase("job", does("costly"), does("broken", needs=("costly",)))
    workflow = flow(work, policy=policy("restart", "rollback", "fail", attempts=3))
    ending = await theatre.run(workflow, {"costly": costly, "broken": broken})
    assert (ending.kind, paid, ending.state.metrics.rollbacks) == ("failed", ["costly"], 0)
    assert ending.state.failure is not None
    assert ending.state.failure.message == "there is no such module"


async def test_a_task_that_makes_no_sense_is_told_as_it_is(theatre: Theatre) -> None:
    work = phase("job", does("a", task="{{ context.found[0].name }}"))
    workflow = flow(work, context={"found": "append"}, policy=policy("restart", "rollback", "fail"))
    ending = await theatre.run(workflow, {})
    assert (ending.kind, ending.state.metrics.rollbacks) == ("failed", 0)
    assert ending.state.failure is not None
    assert ending.state.failure.error == "BadExpression"


async def test_a_run_without_a_way_back_says_what_failed_and_then_why_it_stays(theatre: Theatre) -> None:
    async def broken(ctx: Any) -> None:
        await ctx.save({})
        theatre.store.prune(RunId("run"), [0])
        raise RuntimeError("it is broken")

    workflow = flow(phase("job", does("broken")), policy=policy("rollback", "fail", attempts=1))
    ending = await theatre.run(workflow, {"broken": broken})
    assert ending.state.failure is not None
    assert (ending.state.failure.error, ending.state.failure.message) == (
        "NoWayBack",
        "job/broken failed once: RuntimeError: it is broken; it cannot go back: "
        "there is no snapshot last-good: no phase boundary without an open failure",
    )
