"""Effects and outputs: done once, reported when nobody knows, found by digest."""

from pathlib import Path
from typing import Any

import pytest

from orchestra.codec.values import thaw
from orchestra.errors import IllegalEvent
from orchestra.ports.agent import Wrote
from tests.unit.engine.support import Theatre, does, flow, kinds, phase, policy, result, triggers

pytestmark = pytest.mark.anyio
TWICE = policy("restart", "fail", attempts=3)


async def test_an_effect_that_was_done_is_not_repeated(theatre: Theatre) -> None:
    done: list[str] = []

    def pay(key: str) -> str:
        done.append(key)
        return "receipt"

    async def agent(ctx: Any) -> Any:
        found = await ctx.effect("pay", pay, risky=True)
        if ctx.attempt == 1:
            raise RuntimeError("after it was done")
        return found

    ending = await theatre.run(flow(phase("job", does("a", "agent")), policy=TWICE), {"agent": agent})
    assert result(ending.state, "job/a") == "receipt"
    assert done == ["run/job/1/a/0/pay"]
    assert any("before_risky_operation" in each for each in triggers(theatre.store))


async def test_an_effect_of_which_nobody_knows_is_reported(theatre: Theatre) -> None:
    done: list[str] = []

    async def agent(ctx: Any) -> None:
        def pay(key: str) -> None:
            done.append(key)
            raise ConnectionError("the line went dead")

        await ctx.effect("pay", pay)

    ending = await theatre.run(flow(phase("job", does("a", "agent")), policy=TWICE), {"agent": agent})
    assert (ending.kind, len(done)) == ("failed", 1)
    assert ending.state.failure is not None
    assert ending.state.failure.error == "OutcomeUnknown"
    (effect,) = ending.state.effects.values()
    assert effect.status == "unknown"


async def test_an_effect_that_failed_harmlessly_is_intended_anew(theatre: Theatre) -> None:
    """Else a death in its second try would look like the failure of the first, and it would be done twice."""
    tries = 0

    async def agent(ctx: Any) -> Any:
        def pay(key: str) -> str:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise ValueError("refused")
            return "receipt"

        return await ctx.effect("pay", pay, harmless=(ValueError,))

    ending = await theatre.run(flow(phase("job", does("a", "agent")), policy=TWICE), {"agent": agent})
    assert (ending.kind, tries) == ("completed", 2)
    told = [kind for kind in kinds(theatre.events) if kind.startswith("effect")]
    assert told == ["effect_intended", "effect_settled"] * 2


def _content(path: str) -> bytes:
    return Path(path).read_bytes()


async def test_outputs_are_found_by_people_and_by_digest(theatre: Theatre) -> None:
    paths: list[str] = []

    async def agent(ctx: Any) -> None:
        paths.append(await ctx.write("deep/report.md", "# Report"))
        paths.append(await ctx.write("data.bin", b"\x00\x01"))

    work = phase("job", does("a", "agent", outputs=("deep/report.md",)))
    ending = await theatre.run(flow(work), {"agent": agent})
    report = ending.state.outputs["job/deep/report.md"]
    assert (report.media_type, report.size, report.task) == ("text/markdown", 8, "job/a")
    assert report.content is not None
    assert thaw(report.content) == b"# Report"
    assert [_content(each) for each in paths] == [b"# Report", b"\x00\x01"]
    completed = next(event for event in theatre.events if event.kind == "phase_completed")
    assert completed.deliverables == ("job/deep/report.md", "job/data.bin")
    assert ending.state.agents["a"].output == "job/data.bin"


async def test_an_agent_is_not_known_by_an_output_that_was_refused(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        await ctx.write("good.md", "taken")
        unchecked = Wrote(path="bad.md", content=b"refused", media_type="text/\ud800")
        with pytest.raises(IllegalEvent):
            await ctx._link.call(unchecked)  # as a runner does that looks at nothing

    ending = await theatre.run(flow(phase("job", does("a", "agent"))), {"agent": agent})
    assert ending.kind == "completed"
    assert list(ending.state.outputs) == ["job/good.md"]
    assert ending.state.agents["a"].output == "job/good.md"


async def test_an_agent_is_known_by_what_an_earlier_attempt_wrote(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        if ctx.attempt == 1:
            await ctx.write("report.md", "whole")
            raise ValueError("after it was written")

    work = phase("job", does("a", "agent", outputs=("report.md",)))
    ending = await theatre.run(flow(work, policy=TWICE), {"agent": agent})
    assert ending.kind == "completed"
    assert ending.state.agents["a"].output == "job/report.md"


async def test_siblings_may_write_the_same_output(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        for _ in range(5):
            await ctx.write("same.md", f"written by {ctx.index}" * 1000)

    work = phase("job", does("a", "agent", foreach="[0, 1, 2, 3, 4, 5, 6, 7]"))
    ending = await theatre.run(flow(work, policy=policy("fail")), {"agent": agent})
    assert ending.kind == "completed"
    content = _content(str(theatre.folder / "outputs/run/job/same.md")).decode()
    assert content in [f"written by {index}" * 1000 for index in range(8)]
    assert [each.name for each in (theatre.folder / "outputs/run/job").iterdir()] == ["same.md"]


async def test_a_promise_that_is_not_kept_is_a_failure(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        if ctx.attempt > 2:
            await ctx.write("report.md", "late")

    work = phase("job", does("a", "agent", outputs=("report.md",)))
    ending = await theatre.run(flow(work, policy=TWICE), {"agent": agent})
    assert ending.kind == "completed"
    failures = [event.failure.message for event in theatre.events if event.kind == "task_failed"]
    assert failures == ["it promised 'report.md' and did not write it"] * 2


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../b", "", "a\\b", "a\nb"])
async def test_an_output_stays_in_its_folder(theatre: Theatre, name: str) -> None:
    async def agent(ctx: Any) -> None:
        await ctx.write(name, "x")

    ending = await theatre.run(
        flow(phase("job", does("a", "agent")), policy=policy("fail")), {"agent": agent}
    )
    assert ending.kind == "failed"
    assert not ending.state.outputs
