"""Atlas, Mercury and Apollo together: the behaviour of CHECKLIST 000 and 001, through the public API."""

from pathlib import Path
from typing import Any

import pytest

from orchestra import Judgement, Orchestra, Result
from orchestra.codec.values import thaw
from orchestra.engine.orders import Order
from orchestra.errors import NotResumable
from orchestra.ids import AgentId, RunId
from orchestra.model.workflow import ConfidencePolicy, Criterion, Evaluate
from orchestra.stores.memory import MemoryStore
from tests.unit.engine.support import (
    Failing,
    Theatre,
    decisions,
    does,
    flow,
    nothing,
    phase,
    policy,
    result,
    returns,
)

pytestmark = pytest.mark.anyio
TRIGGERS = frozenset(
    {
        "agent_launched",
        "before_risky_operation",
        "completed",
        "confidence_threshold_crossed",
        "debug_breakpoint",
        "decision",
        "dependency_request",
        "error_encountered",
        "evaluation_completed",
        "milestone",
        "paused",
        "phase_completed",
        "phase_start",
        "rate_limited",
        "run_started",
        "specialist_finished",
        "user_question",
        "user_requested",
    }
)


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


async def _everything(ctx: Any) -> Result:
    """An agent that uses every verb there is."""
    await ctx.save({"at": 1}, progress=0.5, step="half way", blockers=[{"by": "rain", "reason": "wet"}])
    ctx.confidence(0.4)
    ctx.spent(tokens_in=100, tokens_out=20, calls=1, cost=0.25)
    await ctx.decide("take the bridge", rationale="shorter", confidence=0.88, alternatives=["ferry"])
    await ctx.effect("cross", lambda key: "crossed", risky=True)
    await ctx.write("report.md", "# Report")
    if ctx.attempt == 1:
        raise RuntimeError("slipped")
    await ctx.limited(0.01, "slow down")
    await ctx.require("THE_BRIDGE_KEY")
    await ctx.ask("Which side?", ["left", "right"])
    return Result(output="over", confidence=0.9)


async def _judge(ctx: Any) -> Judgement:
    return Judgement(scores={"safety": 1.0}, issues=({"description": "wet"},), feedback="fine")


def _flow() -> Any:
    evaluate = Evaluate(agent=AgentId("judge"), rubric=(Criterion(name="safety"),))
    return flow(
        phase(
            "cross", does("walker", outputs=("report.md",)), evaluate=evaluate, breakpoint=True, next=["end"]
        ),
        policy=policy("restart", "fail", attempts=3, confidence=ConfidencePolicy(watch=(0.5,))),
    )


async def test_every_reason_for_a_snapshot(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    """000.5 to 000.13, 001.22, 001.23, 001.32 to 001.34: each trigger, with what belongs to it."""
    monkeypatch.delenv("THE_BRIDGE_KEY", raising=False)
    functions = {"walker": _everything, "judge": _judge}
    assert (await theatre.run(_flow(), functions)).kind == "waiting"
    assert (await theatre.resume(functions)).kind == "waiting"
    async with theatre.house(functions) as house:
        await house.order("run", Order(kind="snapshot", reason="just so"))
        await house.order("run", Order(kind="pause", reason="User requested pause"))
        monkeypatch.setenv("THE_BRIDGE_KEY", "under-the-mat")
        await house.order("run", Order(kind="provide", target="THE_BRIDGE_KEY"))
        assert (await house.resume("run")).kind == "waiting"
        await house.order("run", Order(kind="answer", value="left"))
        ending = await house.resume("run")
    assert ending.kind == "completed"
    seen = {trigger for turn in theatre.turns for trigger in turn.header.triggers}
    assert seen >= TRIGGERS
    completed = next(event for event in theatre.events if event.kind == "phase_completed")
    assert completed.deliverables == ("cross/report.md",)
    failure = next(event.failure for event in theatre.events if event.kind == "task_failed")
    assert (failure.message, failure.recoverable) == ("slipped", True)
    assert "RuntimeError" in failure.stack
    waits = {wait.kind: wait.text for wait in ending.state.waits.values()}
    assert waits["dependency"] == "THE_BRIDGE_KEY"
    assert waits["question"] == "Which side?"
    assert waits["rate_limit"] == "slow down"


async def test_the_last_snapshot_has_everything_and_is_not_resumable(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """000.14, 000.15, 001.2 to 001.5, 001.24, 001.30: agents, decisions, outputs, figures, confidence."""
    monkeypatch.setenv("THE_BRIDGE_KEY", "under-the-mat")

    async def walker(ctx: Any) -> Result:
        await ctx.save({"at": 1}, progress=0.5, step="half way", blockers=[{"by": "rain", "reason": "wet"}])
        ctx.spent(tokens_in=100, tokens_out=20, calls=1, cost=0.25)
        await ctx.decide("take the bridge", rationale="shorter", confidence=0.88, alternatives=["ferry"])
        await ctx.write("report.md", "# Report")
        return Result(output="over", confidence=0.9)

    work = flow(phase("cross", does("walker")))
    ending = await theatre.run(work, {"walker": walker})
    state = ending.state
    assert (state.status, state.is_resumable) == ("completed", False)
    agent = state.agents["walker"]
    assert (agent.status, agent.confidence, agent.tokens, agent.step) == ("completed", 0.9, 120, "half way")
    assert agent.private is not None
    assert thaw(agent.private) == {"at": 1}
    assert [(each.by, each.reason) for each in agent.blockers] == [("rain", "wet")]
    (made,) = state.decisions
    assert (made.agent, made.description, made.rationale, made.confidence, made.alternatives) == (
        "walker",
        "take the bridge",
        "shorter",
        0.88,
        ("ferry",),
    )
    figures = state.metrics
    assert (figures.api_calls, figures.tokens, figures.cost_micros) == (1, 120, 250_000)
    assert figures.elapsed_us > 0
    assert figures.memory_peak_bytes > 0
    assert list(state.outputs) == ["cross/report.md"]
    assert state.environment.version
    with pytest.raises(NotResumable):
        await theatre.resume({"walker": walker})


async def test_a_restarted_agent_is_told_where_it_was(theatre: Theatre) -> None:
    """000.38, 001.36, 001.37: in words that a model can use as they are, and as data."""
    told: list[Any] = []

    async def agent(ctx: Any) -> None:
        told.append((ctx.resume, ctx.progress, ctx.private))
        ctx.spent(tokens_in=70)
        await ctx.save([1, 2], progress=0.4, step="reading chapter 3")
        if ctx.attempt == 1:
            raise RuntimeError("the light went out")

    work = flow(phase("read", does("a", "agent")), policy=policy("restart", "fail", attempts=2))
    await theatre.run(work, {"agent": agent})
    assert told[0] == ("", 0.0, None)
    assert told[1][1:] == (0.4, [1, 2])
    assert told[1][0].splitlines() == [
        "# Resuming from Checkpoint",
        "",
        "## Previous State",
        "- Phase: read",
        "- Step: reading chapter 3",
        "- Progress: 40%",
        "- Tokens Used: 70",
        "",
        "Checkpoint Type: error",
        "Reason: RuntimeError: the light went out",
        "",
        "## Instructions",
        "Resume from where you left off. Do not repeat completed work.",
        "Continue with: reading chapter 3",
    ]


async def test_a_partial_failure_from_beginning_to_end(theatre: Theatre) -> None:
    """000.41, 001.26: detected, snapshot with its context, restart, rollback, confidence adjusted."""
    flaky = Failing(3, Result(output="x", confidence=0.8))
    workflow = flow(
        phase("work", does("sure"), does("flaky")),
        policy=policy(
            "restart", "rollback", "fail", attempts=2, confidence=ConfidencePolicy(rollback_factor=0.9)
        ),
    )
    sure = returns(Result(output="s", confidence=0.8))
    ending = await theatre.run(workflow, {"sure": sure, "flaky": flaky})
    assert (ending.kind, flaky.calls) == ("completed", 4)
    order = [
        kind
        for turn in theatre.turns
        for kind in turn.header.triggers
        if kind in ("error_encountered", "rolled_back", "completed")
    ]
    assert order == ["error_encountered"] * 2 + ["rolled_back", "error_encountered", "completed"]
    assert ending.state.confidence.overall == pytest.approx(0.8 * 0.9)
    assert "Roll back to snapshot 0" in [made.description for made in decisions(ending.state)]


async def test_a_run_goes_on_from_its_phase(theatre: Theatre) -> None:
    """001.16, 001.35, 000.32: the newest snapshot is loaded, and the phase it was in goes on."""
    calls: list[str] = []

    async def noting(ctx: Any) -> str:
        calls.append(ctx.task_id)
        if ctx.phase == "two" and len(calls) == 2:
            raise RuntimeError("broken")
        return "x"

    workflow = flow(
        phase("one", does("a", "noting"), next=["two"]),
        phase("two", does("a", "noting"), next=["three"]),
        phase("three", does("a", "noting")),
        policy=policy("fail"),
    )
    assert (await theatre.run(workflow, {"noting": noting})).kind == "failed"
    assert (await theatre.resume({"noting": noting})).kind == "completed"
    assert calls == ["one/a", "two/a", "two/a", "three/a"]


async def test_the_shape_of_a_file_with_agents_in_files(tmp_path: Path) -> None:
    """001.1: a workflow in YAML, async and plain agents in files, an evaluator, a second round, a report."""
    (tmp_path / "find.py").write_text(
        "from orchestra import Result\n"
        "async def agent(ctx):\n"
        "    found = len(ctx.feedback) + 1\n"
        "    return Result(output=['x'] * found, confidence=0.6 + 0.1 * found)\n"
    )
    (tmp_path / "report.py").write_text(
        "def agent(ctx):\n"
        "    ctx.write('report.md', f\"# {ctx.inputs['title']}: {len(ctx.context['found'])}\")\n"
    )
    (tmp_path / "judge.py").write_text(
        "from orchestra import Judgement\n"
        "async def agent(ctx):\n"
        "    enough = len(ctx.results['find']) >= 2\n"
        "    return Judgement(scores={'depth': 1.0 if enough else 0.2}, feedback='find more')\n"
    )
    file = tmp_path / "team.yaml"
    file.write_text(
        "name: team\n"
        "inputs: {title: {type: text, default: Findings}}\n"
        "context: {found: {reducer: append}}\n"
        "agents: {find: find.py, report: report.py, judge: judge.py}\n"
        "policy: {confidence: {threshold: 0.75}}\n"
        "phases:\n"
        "  look:\n"
        "    specialists: {find: {task: Find it, into: found}}\n"
        "    evaluate: {agent: judge, rubric: {depth: 1}, revise: {rounds: 2}}\n"
        "    on_low_confidence: [proceed]\n"
        "    next: [{to: write, when: evaluation.verdict == 'accept'}]\n"
        "  write:\n"
        "    specialists: {report: {task: Write it, outputs: [report.md]}}\n"
    )
    async with Orchestra(MemoryStore(), project=tmp_path) as house:
        ending = await house.run(file, run="run")
        assert (await house.manager.look(RunId("run"))).state == ending.state
    assert ending.kind == "completed", ending.state.failure
    content = ending.state.outputs["write/report.md"].content
    assert content is not None
    assert thaw(content) == b"# Findings: 2"
    low = [made.rationale for made in decisions(ending.state, "workflow_adjustment")]
    assert low == ["Mercury find confidence (0.7) below threshold (0.75)"]
    assert result(ending.state, "look/find~2") == ["x", "x"]


async def test_a_person_may_ask_for_a_snapshot_of_a_run_that_waits(theatre: Theatre) -> None:
    """000.12, 001.23: with the reason that was given."""

    async def asks(ctx: Any) -> Any:
        return await ctx.ask("?")

    await theatre.run(flow(phase("work", does("a", "asks"), does("b"))), {"asks": asks, "b": nothing})
    async with theatre.house({"asks": asks}) as house:
        await house.order("run", Order(kind="snapshot", reason="before lunch"))
    turn = theatre.turns[-1]
    assert "user_requested" in turn.header.triggers
    assert turn.header.events[0].what == "user_requested: before lunch"
    assert turn.state.status == "waiting"
