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
from tests.llm.talk import Talk, open_talk

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
        print([(e["conversation"],e["step"],e["usage"]) for e in talk.provider.ledger.ended()])
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
