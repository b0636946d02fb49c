"""Conversations that grow too long: what the model sums up, what it sees from then on, and what is kept."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.codec.values import thaw
from orchestra.engine.atlas import Ending
from orchestra.model.state import State
from tests.llm.talk import Talk, decisions, open_talk

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
TOOLS = '''
def look(place: str) -> str:
    """Look somewhere."""
    return f"in {place} there is " + "much " * 80
'''
ASK = "Sum up the conversation"


def look(place: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"name": "look", "arguments": {"place": place}}], **more}


def script(*turns: Any, after: list[Any], summary: Any = None) -> dict[str, Any]:
    """A conversation, what its model says once it was compacted, and how it sums up.

    What comes `after` is found by how many of its own turns the model still sees.
    """
    return {
        "conversations": [
            {"name": "summary", "match": ASK, "turns": [summary or {"text": "MUCH WAS SEEN"}]},
            {"name": "after", "match": "MUCH WAS SEEN", "turns": after},
            {"name": "main", "turns": list(turns)},
        ]
    }


LONG = script(look("a"), look("b"), look("c"), after=[[], look("d"), {"text": "All was seen."}])
MARK = "compact_at: 320"


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _result(ending: Ending) -> Any:
    assert ending.kind == "completed", ending.state.failure
    value = ending.state.tasks["work/talk"].result
    assert value is not None
    return thaw(value)


def _summaries(state: State) -> dict[str, tuple[str, ...]]:
    return {name: each.stands_for for name, each in state.messages.items() if each.stands_for}


def _asked(talk: Talk) -> list[tuple[str, int]]:
    return [(each["conversation"], each["step"]) for each in talk.provider.ledger.begun()]


async def test_a_conversation_is_compacted_at_its_mark(open_with: Opener) -> None:
    async with open_with(LONG) as talk:
        talk.agent(MARK, tools=TOOLS)
        ending = await talk.play()
        assert _result(ending) == "All was seen."
        steps = [("main", 0), ("main", 1), ("main", 2), ("summary", 0), ("after", 1), ("after", 2)]
        assert _asked(talk) == steps, "each was asked once, and the newest exchange stayed"
        assert _summaries(ending.state) == {"work/talk#5": ("work/talk#2", "work/talk#3")}
        assert len(ending.state.tool_calls) == 4, "what was summed up is still there"
        (decision,) = [each for each in ending.state.decisions if each.kind == "conversation_compacted"]
        assert decision.description == "Compact the conversation: the model sums up 2 messages"
        assert "compact_at is 320" in decision.rationale
        assert decision.alternatives
        usage, metrics = talk.provider.ledger.usage(), ending.state.metrics
        assert (metrics.tokens_in, metrics.tokens_out) == (usage.input, usage.output)
        assert metrics.api_calls == 6, "the summary was paid for like any other answer"


async def test_a_compacted_conversation_is_played_again_as_it_was(open_with: Opener) -> None:
    async with open_with(LONG) as talk:
        talk.agent(f"{MARK}, risky: look", tools=TOOLS)
        await talk.play()
        answers = ["approve"] * 3
        ending = await talk.play(*answers)
        assert ending.kind == "waiting", "it asks about the call after the summary"
        asked = _asked(talk)
        for _ in range(2):
            assert (await talk.play()).kind == "waiting"
        assert _asked(talk) == asked, "nothing is asked again"
        ending = await talk.play("approve")
        assert _result(ending) == "All was seen."
        assert decisions(ending.state).count("conversation_compacted") == 1


async def test_another_mark_does_not_undo_what_was_compacted(open_with: Opener) -> None:
    async with open_with(LONG) as talk:
        talk.agent(f"{MARK}, risky: look", tools=TOOLS)
        await talk.play()
        await talk.play(*["approve"] * 3)
        talk.agent("compact_at: 330, risky: look", tools=TOOLS)
        ending = await talk.play("approve", accept_changes=True)
        assert _result(ending) == "All was seen."
        assert [each for each, _ in _asked(talk)].count("summary") == 1


async def test_a_summary_is_summed_up_in_turn(open_with: Opener) -> None:
    again = [{"text": "MUCH WAS SEEN"}, {"text": "AND MORE"}]
    said = script(
        look("a"), look("b"), look("c"), after=[[], look("d"), look("e"), look("f")], summary=again[0]
    )
    more = {"name": "more", "match": "AND MORE", "turns": [[], {"text": "All of it."}]}
    second = {"name": "second", "match": "summary of what came before", "turns": [again[1]]}
    said["conversations"] = [second, said["conversations"][0], more, *said["conversations"][1:]]
    async with open_with(said) as talk:
        talk.agent(MARK, tools=TOOLS)
        ending = await talk.play()
        assert _result(ending) == "All of it."
        first, last = _summaries(ending.state).items()
        assert first == ("work/talk#5", ("work/talk#2", "work/talk#3"))
        assert last[1][0] == "work/talk#5", "the first summary is among what the second one stands for"
        assert last[1][1] == "work/talk#4"


async def test_an_overflow_is_met_by_compaction_first(open_with: Opener) -> None:
    full = {"text": "never", "faults": [{"kind": "context_length", "times": None}]}
    said = script(look("a"), look("b"), look("c"), full, after=[[], {"text": "It fits."}])
    async with open_with(said) as talk:
        talk.agent("model: [openai-chat:small, openai-chat:big]", tools=TOOLS)
        ending = await talk.play()
        assert _result(ending) == "It fits."
        assert _asked(talk)[3:] == [("main", 3), ("summary", 0), ("after", 1)]
        assert decisions(ending.state).count("conversation_compacted") == 1
        assert "model_fallback" not in decisions(ending.state)


async def test_after_compaction_the_next_model_is_asked(open_with: Opener) -> None:
    full = {"text": "never", "faults": [{"kind": "context_length", "times": None}]}
    big = {"text": "It is big.", "faults": [{"kind": "context_length"}]}
    said = script(look("a"), look("b"), full, after=[[], big])
    async with open_with(said) as talk:
        talk.agent("model: [openai-chat:small, openai-chat:big]", tools=TOOLS)
        ending = await talk.play()
        assert _result(ending) == "It is big."
        assert _asked(talk)[2:] == [("main", 2), ("summary", 0), ("after", 1), ("after", 1)]
        assert [each for each in decisions(ending.state) if "_started" not in each][-2:] == [
            "conversation_compacted",
            "model_fallback",
        ]


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        ({"text": " "}, "the summary is empty"),
        (
            {"text": "never", "faults": [{"kind": "context_length", "times": None}]},
            "the model refused to sum it up: it is too long",
        ),
    ],
    ids=["empty", "too long"],
)
async def test_without_a_summary_it_goes_on_with_the_whole(open_with: Opener, summary: Any, why: str) -> None:
    said = script(look("a"), look("b"), look("c"), look("d"), {"text": "All."}, after=[], summary=summary)
    async with open_with(said) as talk:
        talk.agent(f"{MARK}, risky: look", tools=TOOLS)
        await talk.play()
        ending = await talk.play(*["approve"] * 4)
        assert _result(ending) == "All."
        assert [each for each, _ in _asked(talk)].count("summary") == 1, "it is tried once"
        (failed,) = [each for each in ending.state.decisions if each.kind == "compaction_failed"]
        assert failed.rationale == why


async def test_nothing_is_compacted_when_there_is_nothing_to_sum_up(open_with: Opener) -> None:
    fault = {"kind": "context_length", "times": None}
    async with open_with([look("a"), {"text": "never", "faults": [fault]}]) as talk:
        talk.agent("compact_at: 20", tools=TOOLS)
        ending = await talk.play()
        assert ending.kind == "failed"
        failure = ending.state.tasks["work/talk"].failure
        assert failure is not None
        assert failure.error == "ContextOverflow"
        assert len(talk.provider.ledger.begun()) == 2, "the same is not asked twice"


async def test_a_limit_counts_the_summary(open_with: Opener) -> None:
    async with open_with(LONG) as talk:
        talk.agent(f"{MARK}, limits: {{requests: 3}}", tools=TOOLS)
        ending = await talk.play()
        assert ending.kind == "failed"
        assert len(talk.provider.ledger.begun()) == 3


async def test_a_compacted_conversation_on_a_cassette(open_with: Opener) -> None:
    async with open_with(LONG) as talk:
        talk.agent(matter="compact_at: 320", tools=TOOLS)
        cassette = talk.folder / "answers.jsonl"
        first = await talk.play(record=cassette)
        asked = _asked(talk)
        ending = await Talk(folder=talk.folder, provider=talk.provider).play(replay=cassette)
        assert _result(ending) == _result(first) == "All was seen."
        assert _asked(talk) == asked
        assert _summaries(ending.state) == _summaries(first.state)


ROUNDS = """
name: talk
agents:
  clerk: {path: clerk.md, compact_at: 320}
  judge: judge.py
phases:
  work:
    specialists:
      talk: {agent: clerk, task: "Do what is to be done."}
    evaluate: {agent: judge, rubric: {depth: 1}, revise: 1}
"""
JUDGE = """
async def agent(ctx):
    await ctx.score("depth", 0.1 if ctx.round == 1 else 0.9, feedback="Deeper.")
"""


async def test_the_next_round_goes_on_from_the_summary(open_with: Opener) -> None:
    said = script(look("a"), look("b"), look("c"), after=[[], {"text": "A draft."}, {"text": "Better."}])
    async with open_with(said) as talk:
        talk.agent(tools=TOOLS)
        talk.write(flow__yaml=ROUNDS, judge__py=JUDGE)
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert _asked(talk)[3:] == [("summary", 0), ("after", 1), ("after", 2)]
        result = ending.state.tasks["work/talk~2"].result
        assert result is not None
        assert thaw(result) == "Better."


async def test_what_earlier_rounds_said_is_summed_up_too(open_with: Opener) -> None:
    said = script(look("a"), look("b"), {"text": "A draft."}, look("c"), after=[[], {"text": "Better."}])
    async with open_with(said) as talk:
        talk.agent(tools=TOOLS)
        talk.write(flow__yaml=ROUNDS, judge__py=JUDGE)
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert _asked(talk)[3:] == [("summary", 0), ("after", 1)]
        gone = ("work/talk#1", "work/talk#2", "work/talk#3")
        assert _summaries(ending.state) == {"work/talk~2#0": gone}
