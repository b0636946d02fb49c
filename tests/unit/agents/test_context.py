"""The verbs of both contexts end in the same reports, and what was handed over is private."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.agents.context import BlockingContext, Context
from orchestra.agents.reports import FIELDS, REPORTS
from orchestra.errors import AgentFailed, StoreFull
from orchestra.ports.agent import Assignment, Result, Saved, Wrote
from tests.unit.agents.support import Recorder, run_function

pytestmark = pytest.mark.anyio


async def _says_everything(ctx: Context) -> list[Any]:
    await ctx.save({"at": 1}, progress=0.5, step="half", step_number=1, blockers=[{"by": "x", "reason": "y"}])
    ctx.emit("text")
    await ctx.decide("left", rationale="shorter", confidence=0.9, alternatives=["right"], kind="route")
    ctx.confidence(1)
    answer = await ctx.ask("Go on?", ["yes", "no"])
    key = await ctx.require("KEY", "to pay")
    await ctx.limited(0.5, "too many")
    done = await ctx.effect("post", lambda key: key, intent={"to": "x"}, risky=True)
    ctx.spent(tokens_in=3, tokens_out=4, calls=1, cost=0.25)
    await ctx.score("depth", 1, rationale="deep", issues=[{"description": "d"}], feedback="f")
    path = await ctx.write("a.md", "text")
    return [answer, key, done, path]


def _says_everything_blocking(ctx: BlockingContext) -> list[Any]:
    ctx.save({"at": 1}, progress=0.5, step="half", step_number=1, blockers=[{"by": "x", "reason": "y"}])
    ctx.emit("text")
    ctx.decide("left", rationale="shorter", confidence=0.9, alternatives=["right"], kind="route")
    ctx.confidence(1)
    answer = ctx.ask("Go on?", ["yes", "no"])
    key = ctx.require("KEY", "to pay")
    ctx.limited(0.5, "too many")
    done = ctx.effect("post", lambda key: key, intent={"to": "x"}, risky=True)
    ctx.spent(tokens_in=3, tokens_out=4, calls=1, cost=0.25)
    ctx.score("depth", 1, rationale="deep", issues=[{"description": "d"}], feedback="f")
    path = ctx.write("a.md", "text")
    return [answer, key, done, path]


@pytest.mark.parametrize("agent", [_says_everything, _says_everything_blocking])
async def test_every_verb_is_reported(agent: Callable[..., Any]) -> None:
    link = Recorder({"Go on?": "yes", "KEY": "k-1"})
    result = await run_function(agent, link)
    assert result == Result(output=["yes", "k-1", "demo_1/job/1/one/0/post", "outputs/a.md"])
    assert set(link.kinds()) == set(REPORTS)
    assert link.reports[0] == Saved(
        private={"at": 1},
        progress=0.5,
        step="half",
        step_number=1,
        blockers=({"by": "x", "reason": "y"},),
    )
    assert link.reports[-1] == Wrote(path="a.md", content=b"text")


async def test_both_ways_say_the_same() -> None:
    one, other = Recorder({"Go on?": "yes", "KEY": 1}), Recorder({"Go on?": "yes", "KEY": 1})
    await run_function(_says_everything, one)
    await run_function(_says_everything_blocking, other)
    assert one.reports == other.reports


def test_both_contexts_have_the_same_names() -> None:
    def names(cls: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(cls) if not name.startswith("_")}

    assert names(Context) == names(BlockingContext)


def test_every_field_of_every_report_has_a_check() -> None:
    for cls, checks in FIELDS.items():
        assert {field.name for field in attrs.fields(cls)} - {"kind"} == set(checks)


async def test_everything_of_an_assignment_can_be_read() -> None:
    seen: dict[str, Any] = {}

    async def agent(ctx: Context) -> None:
        talk = {"messages", "calls", "earlier_messages", "earlier_calls", "prices", "agents"}  # for models
        for field in attrs.fields(Assignment):
            if field.name in talk:
                continue
            name = {"description": "task", "task": "task_id"}.get(field.name, field.name)
            seen[name] = getattr(ctx, name)

    await run_function(agent, workspace="w", project="p", inputs={"a": 1}, private=[1])
    assert seen["task"] == "Do it"
    assert seen["workspace"] == Path("w")
    assert seen["inputs"] == {"a": 1}
    assert seen["private"] == [1]


async def test_what_an_agent_was_given_is_its_own() -> None:
    given = {"list": [1, {"deep": (1, [2])}]}

    async def agent(ctx: Context) -> Any:
        for held in (ctx.inputs, ctx.context, ctx.needs, ctx.settings, ctx.results):
            held["list"].append("mine")
            held["list"][1]["deep"][1].append("mine")
        ctx.item.append("mine")
        ctx.private["x"].append("mine")
        return ctx.inputs["list"]

    result = await run_function(
        agent,
        inputs=given,
        context=given,
        needs=given,
        settings=given,
        results=given,
        item=given["list"],
        private={"x": given["list"]},
    )
    assert isinstance(result, Result)
    assert result.output[-1] == "mine"
    assert given == {"list": [1, {"deep": (1, [2])}]}


async def test_what_an_agent_changes_later_does_not_reach_the_run() -> None:
    kept: list[Any] = []
    link = Recorder()

    async def agent(ctx: Context) -> Any:
        kept.append({"n": [1]})
        await ctx.save(kept[0])
        kept[0]["n"].append(2)
        return kept[0]

    result = await run_function(agent, link)
    kept[0]["n"].append(3)
    assert result == Result(output={"n": [1, 2]})
    assert link.reports == [Saved(private={"n": [1]})]


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        (lambda ctx: ctx.confidence(7), "value of confident must be a number from 0 to 1, not 7"),
        (lambda ctx: ctx.confidence(True), "a number from 0 to 1, not True"),
        (lambda ctx: ctx.confidence(float("nan")), "not nan"),
        (lambda ctx: ctx.confidence(10**400), "a number from 0 to 1"),
        (lambda ctx: ctx.emit(b"x"), "text of emitted must be text"),
        (lambda ctx: ctx.spent(calls=-1), "api_calls of used must be a whole number from 0 on"),
    ],
)
async def test_a_wrong_word_raises_where_it_is_said(verb: Callable[[Context], Any], words: str) -> None:
    async def agent(ctx: Context) -> None:
        verb(ctx)

    link = Recorder()
    with pytest.raises(AgentFailed) as caught:
        await run_function(agent, link)
    assert caught.value.data["error"] == "ValueError"
    assert words in str(caught.value)
    assert link.reports == []


async def test_a_failure_can_be_declared() -> None:
    async def agent(ctx: Context) -> None:
        ctx.fail("no such place", recoverable=False, details={"place": 1})

    with pytest.raises(AgentFailed) as caught:
        await run_function(agent)
    data = caught.value.data
    assert (data["message"], data["recoverable"], data["details"]) == ("no such place", False, {"place": 1})


async def test_progress_is_asked_for_and_a_bad_callback_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    link = Recorder()

    async def agent(ctx: Context) -> None:
        ctx.on_save(lambda: {"at": 3})
        ctx.on_save(lambda: Saved(private=1, progress=0.5))
        ctx.on_save(lambda: None)
        ctx.on_save(lambda: 1 / 0)
        ctx.on_save(lambda: Saved(private={}, progress="abc", step=5))  # type: ignore[arg-type]
        ctx.on_save(lambda: sys.exit(7))
        assert [ask() for ask in link.progress] == [
            Saved(private={"at": 3}),
            Saved(private=1, progress=0.5),
            None,
            None,
            None,
            None,
        ]

    await run_function(agent, link)
    assert "could not say how far it is" in caplog.text
    assert [ask() for ask in link.progress] == [None] * 6


async def test_nothing_is_taken_after_the_end() -> None:
    link = Recorder()
    contexts: list[Any] = []

    async def agent(ctx: Context) -> None:
        contexts.append(ctx)

    await run_function(agent, link)
    with pytest.raises(AgentFailed, match="is over; nothing more is taken"):
        contexts[0].emit("late")
    with pytest.raises(AgentFailed, match="is over; nothing more is taken"):
        await contexts[0].save(1)
    assert link.reports == []


def _emits(ctx: BlockingContext) -> None:
    ctx.emit("x")


async def _saves(ctx: Context) -> None:
    await ctx.save(1)


@pytest.mark.parametrize("agent", [_emits, _saves])
async def test_an_error_of_the_engine_is_not_blamed_on_the_agent(agent: Callable[..., Any]) -> None:
    with pytest.raises(StoreFull):
        await run_function(agent, Recorder(error=StoreFull(place="x", needed="1 MB")))
