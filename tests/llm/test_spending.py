"""What was used stays counted, once: over resumes, rollbacks and forks, and in what people are shown."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.cli.render.summary import spending, state_json
from orchestra.history.archive import Archive
from orchestra.history.glance import spent_by
from orchestra.history.story import DecisionCount
from orchestra.ids import AgentId, RunId
from orchestra.model.records import Metrics
from orchestra.telemetry.overview import overview
from tests.llm.talk import Talk, open_talk

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
NOTE = {"calls": [{"name": "note", "arguments": {"text": "one"}}]}
TOOLS = '''
def note(text: str) -> str:
    """Note something."""
    return "noted"
'''


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    monkeypatch.setattr("orchestra.agents.llm.model.LLM_BACKOFF_SECONDS", 0.001)
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _spent(metrics: Metrics | None) -> tuple[int, int, int]:
    assert metrics is not None
    return metrics.api_calls, metrics.tokens_in, metrics.tokens_out


def _served(talk: Talk) -> tuple[int, int, int]:
    """What the provider has counted: its answers, and what they took."""
    usage = talk.provider.ledger.usage()
    return len(talk.provider.ledger.completed()), usage.input, usage.output


async def test_a_resumed_run_has_spent_what_the_provider_counted(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done.", "faults": [{"kind": "context_length"}]}]) as talk:
        talk.agent(tools=TOOLS)
        failed = await talk.play()
        assert failed.kind == "failed"
        assert _spent(failed.state.metrics) == _served(talk)
        ended = await talk.play()
        assert ended.kind == "completed"
        assert _spent(ended.state.metrics) == _served(talk)
        assert ended.state.metrics.api_calls == 2, "the first answer came from the record"


async def test_a_rollback_takes_nothing_back_and_a_fork_counts_its_own(open_with: Opener) -> None:
    async with open_with([NOTE, {"text": "Done.", "faults": [{"kind": "context_length"}]}]) as talk:
        talk.agent(tools=TOOLS)
        once = _spent((await talk.play()).state.metrics)
        async with Orchestra(talk.store, project=talk.folder) as house:
            await house.rollback("talk", to=0)
            back = await house.resume("talk")
            assert (back.kind, back.state.metrics.rollbacks) == ("completed", 1)
            assert back.state.metrics.api_calls == once[0] + 2, "the first answer was paid twice"
            assert _spent(back.state.metrics) == _served(talk)
            await house.fork("talk", 0, new="other")
            archive = Archive(talk.store)
            assert _spent(spent_by(archive, RunId("other"))) == (0, 0, 0)
            other = await house.resume("other")
        forked = _spent(other.state.metrics)
        assert (other.kind, forked[0]) == ("completed", 2)
        total = overview(archive, talk.folder / "outputs").total
        assert (total.api_calls, total.tokens_in, total.tokens_out) == _served(talk)
        told = state_json(other.state, DecisionCount(told=0, undone=0), "outputs")["metrics"]
        assert (told["api_calls"], told["tokens_in"], told["tokens_out"]) == forked
        assert spending(other.state.metrics) == f"{forked[1]} tokens in, {forked[2]} out, 2 calls"


async def test_a_fork_shares_a_conversation_that_its_origin_paid(open_with: Opener) -> None:
    async with open_with([{"text": "Done."}]) as talk:
        talk.agent()
        ended = await talk.play()
        async with Orchestra(talk.store, project=talk.folder) as house:
            await house.fork("talk", 2, new="other")  # its answer is there, its end is not
            forked = (await house.manager.look(RunId("other"))).state
        assert forked.metrics == Metrics()
        assert ended.state.agents[AgentId("talk")].tokens > 0
        assert forked.agents[AgentId("talk")].tokens == 0
        assert len(forked.messages) == len(ended.state.messages), "the conversation is shared all the same"
