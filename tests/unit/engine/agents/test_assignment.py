"""What a run is given beside its definition, and what agents say that counts later."""

import time
from typing import Any

import anyio
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.engine.redact import REDACTED
from orchestra.errors import BadInput, RunExists
from orchestra.ids import AgentId
from orchestra.model.workflow import (
    ConfidencePolicy,
    Criterion,
    Evaluate,
    Fail,
    Input,
    RecoveryPolicy,
    Spawn,
)
from orchestra.ports.agent import Judgement, Result
from tests.unit.engine.support import Theatre, does, flow, nothing, phase, policy, result

pytestmark = pytest.mark.anyio
SECRET = "hunter2hunter2"


async def test_a_secret_input_reaches_the_agent_and_not_the_state(theatre: Theatre) -> None:
    seen: list[str] = []

    async def agent(ctx: Any) -> int:
        seen.append(ctx.inputs["word"])
        return len(ctx.inputs["word"])

    workflow = flow(phase("work", does("agent")), inputs=[Input(name="word", secret=True)])
    ending = await theatre.run(workflow, {"agent": agent}, {"word": SECRET})
    assert seen == [SECRET]
    assert result(ending.state, "work/agent") == len(SECRET)
    async with theatre.house() as house:
        assert house.manager.archive.value(ending.state.inputs) == {"word": REDACTED}  # type: ignore[arg-type]


async def test_a_secret_input_is_let_go_when_a_run_does_not_get_to_play(theatre: Theatre) -> None:
    """It failed as it began, or did not begin at all."""
    work = phase("work", does("agent", foreach="inputs.number"))
    secret, number = Input(name="word", secret=True), Input(name="number", type="integer")
    async with theatre.house({"agent": nothing}) as house:
        given = {"word": SECRET, "number": 7}
        assert (await house.run(flow(work, inputs=[secret, number]), given, run="run")).kind == "failed"
        with pytest.raises(RunExists):
            await house.run(flow(work, inputs=[secret, number]), given, run="run")
        assert SECRET not in repr({name: part for name, part in vars(house).items() if name != "_redactor"})


async def test_a_secret_input_is_asked_for_again_when_a_run_is_resumed(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def agent(ctx: Any) -> str:
        await ctx.ask("Go on?")
        return "x" * len(ctx.inputs["word"])

    workflow = flow(phase("work", does("agent")), inputs=[Input(name="word", secret=True)])
    async with theatre.house({"agent": agent}) as house:
        assert (await house.run(workflow, {"word": SECRET}, run="run")).kind == "waiting"
        with pytest.raises(BadInput, match="it is secret"):
            await house.resume("run", workflow=workflow)
        monkeypatch.setenv("ORCHESTRA_INPUT_WORD", SECRET)
        assert (await house.resume("run", workflow=workflow)).kind == "waiting"
        monkeypatch.delenv("ORCHESTRA_INPUT_WORD")
        assert (await house.resume("run", workflow=workflow, inputs={"word": SECRET})).kind == "waiting"


async def test_feedback_given_with_a_criterion_goes_back_to_the_specialists(theatre: Theatre) -> None:
    heard: list[tuple[str, ...]] = []

    async def worker(ctx: Any) -> int:
        heard.append(ctx.feedback)
        return int(ctx.round)

    async def judge(ctx: Any) -> Judgement:
        await ctx.score("depth", 0.1 if ctx.round == 1 else 1.0, feedback="go deeper")
        return Judgement(feedback="and be quick" if ctx.round == 1 else "")

    evaluate = Evaluate(agent=AgentId("judge"), rubric=(Criterion(name="depth"),), rounds=1)
    await theatre.run(
        flow(phase("work", does("worker"), evaluate=evaluate)), {"worker": worker, "judge": judge}
    )
    assert heard == [(), ("go deeper\nand be quick",)]


async def test_a_key_that_is_simply_set_ends_the_wait_for_it(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEATHER_KEY", raising=False)

    async def agent(ctx: Any) -> int:
        return len(await ctx.require("WEATHER_KEY"))

    workflow = flow(phase("work", does("agent")))
    async with theatre.house({"agent": agent}) as house:
        assert (await house.run(workflow, run="run")).kind == "waiting"
        monkeypatch.setenv("WEATHER_KEY", SECRET)
        ending = await house.resume("run", workflow=workflow)
    assert ending.kind == "completed"
    assert [wait.status for wait in ending.state.waits.values()] == ["closed"]


async def test_a_confidence_said_on_the_way_counts_for_the_result(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> int:
        ctx.confidence(0.9)
        ctx.confidence(0.4)
        return 1

    limits = policy(confidence=ConfidencePolicy(threshold=0.5))
    workflow = flow(phase("work", does("agent"), on_low_confidence=(Fail(),)), policy=limits)
    ending = await theatre.run(workflow, {"agent": agent})
    assert ending.state.tasks["work/agent"].confidence == 0.4
    assert ending.state.failure is not None
    assert "confidence (0.4) below threshold (0.5)" in ending.state.failure.message


async def test_an_evaluator_sees_what_additional_specialists_found(theatre: Theatre) -> None:
    seen: list[dict[str, Any]] = []

    async def agent(ctx: Any) -> Result:
        return Result(output=ctx.name, confidence=0.9 if "+" in ctx.name else 0.1)

    async def judge(ctx: Any) -> Judgement:
        seen.append(dict(ctx.results))
        return Judgement(verdict="accept")

    work = phase(
        "work",
        does("agent"),
        on_low_confidence=(Spawn(specialist="agent"),),
        evaluate=Evaluate(agent=AgentId("judge")),
    )
    limits = policy(confidence=ConfidencePolicy(threshold=0.5))
    await theatre.run(flow(work, policy=limits), {"agent": agent, "judge": judge})
    assert seen == [{"agent": "agent", "agent+1": "agent+1"}]


async def test_rules_for_recovery_from_outside_take_the_place_of_the_workflow_s(theatre: Theatre) -> None:
    async def agent(ctx: Any) -> None:
        raise RuntimeError("never")

    workflow = flow(phase("work", does("agent")), policy=policy("fail"))
    rules = RecoveryPolicy(on_failure=("degrade",))
    async with Orchestra(
        theatre.store, functions={"agent": agent}, project=theatre.folder, recovery=rules
    ) as house:
        ending = await house.run(workflow)
    assert ending.kind == "completed"
    assert ending.state.tasks["work/agent"].status == "skipped"


async def test_a_key_comes_from_the_key_file_and_is_not_stored(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEATHER_KEY", raising=False)
    file = theatre.folder / "keys.env"
    file.write_text(f"# mine\nOTHER=x\nWEATHER_KEY = {SECRET}\n")
    monkeypatch.setenv("ORCHESTRA_KEYS", str(file))

    async def agent(ctx: Any) -> str:
        return f"got {await ctx.require('WEATHER_KEY')}"

    ending = await theatre.run(flow(phase("job", does("agent"))), {"agent": agent})
    assert result(ending.state, "job/agent") == f"got {REDACTED}"


async def test_a_key_file_that_cannot_be_read_is_as_none(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEATHER_KEY", raising=False)
    monkeypatch.setenv("ORCHESTRA_KEYS", str(theatre.folder / "nowhere"))

    async def agent(ctx: Any) -> None:
        await ctx.require("WEATHER_KEY")

    assert (await theatre.run(flow(phase("job", does("agent"))), {"agent": agent})).kind == "waiting"


async def test_a_name_that_chance_gave_twice_is_made_anew(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the run that has it is under way in the same process."""
    drawn = iter([b"aaaa", b"aaaa", b"aaaa", b"bbbb", b"cccc"])
    monkeypatch.setattr("secrets.token_bytes", lambda _size: next(drawn))
    stands = time.time_ns()
    monkeypatch.setattr("time.time_ns", lambda: stands)
    release, began = anyio.Event(), anyio.Event()

    async def waits(ctx: Any) -> None:
        began.set()
        await release.wait()

    work = flow(phase("work", does("a")))
    found: list[str] = []
    async with theatre.house({"a": waits}) as house, anyio.create_task_group() as group:

        async def play() -> None:
            found.append((await house.run(work)).run)

        group.start_soon(play)
        await began.wait()
        began = anyio.Event()
        group.start_soon(play)
        await began.wait()
        release.set()
    assert len(set(found)) == 2
