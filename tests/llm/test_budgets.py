"""Budgets of phases and runs, over all their agents; prices that a workflow sets and a run remembers."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from orchestra.app.orchestra import Orchestra
from orchestra.errors import BadWorkflow
from orchestra.model.records import Decision, TokenPrice
from orchestra.model.state import State
from tests.llm.talk import MODEL, Talk, open_talk

pytestmark = pytest.mark.anyio
Opener = Callable[[Any], AbstractAsyncContextManager[Talk]]
FLOW: Final = """
name: talk
agents:
  clerk: {path: clerk.md, model: [%s]%s}
phases:
  work:
    specialists:
      first: {agent: clerk, task: "Be first."}
      second: {agent: clerk, task: "Be second."}
%s
"""
SAID: Final = [{"text": "There."}]
NOTED: Final = [{"calls": [{"name": "note", "arguments": {}}]}, {"text": "Noted."}]
TOOLS: Final = 'def note() -> str:\n    """Note something."""\n    return "noted"\n'
OF_RUN: Final = "policy: {retry: {attempts: 1}, limits: {%s}}"
OF_PHASE: Final = "    limits: {%s}"
PRICES: Final = (
    'prices: {"openai-chat:dear": {input: 1000, output: 2000}, "openai-chat:*": {input: 1, output: 2}}'
)


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    return partial(open_talk, folder=tmp_path, monkeypatch=monkeypatch)


def _write(talk: Talk, *rest: str, model: str = MODEL, options: str = "") -> None:
    talk.write(
        flow__yaml=FLOW % (model, f", {options}" if options else "", "\n".join(rest)),
        clerk__md="---\nname: clerk\ntools: tools.py\n---\nYou are a clerk.\n",
        tools__py=TOOLS,
    )


def _budget_decisions(state: State) -> list[Decision]:
    return [each for each in state.decisions if each.kind == "budget"]


@pytest.mark.parametrize(("limits", "owner"), [(OF_RUN, "the run"), (OF_PHASE, "phase work")])
async def test_a_limit_holds_for_all_agents_together(open_with: Opener, limits: str, owner: str) -> None:
    async with open_with(NOTED) as talk:
        _write(talk, limits % "requests: 3")
        ending = await talk.play()
        assert ending.kind == "failed"
        assert len(talk.provider.ledger.begun()) == 3
        (chosen,) = _budget_decisions(ending.state)
        what = f"Ask and call nothing more: a limit of {owner} would be passed (requests: 4 of 3)"
        assert (chosen.description, chosen.rationale) == (what, "on_limit is stop")
        assert chosen.alternatives == ("ask", "proceed", "cheaper")
        failures = [each.failure for each in ending.state.tasks.values() if each.failure is not None]
        assert {each.error for each in failures} == {"BudgetExceeded"}


async def test_what_was_spent_stays_spent(open_with: Opener) -> None:
    async with open_with(NOTED) as talk:
        _write(talk, OF_PHASE % "requests: 3")
        assert (await talk.play()).kind == "failed"
        ending = await talk.play()
        assert ending.kind == "failed"
        assert len(_budget_decisions(ending.state)) == 1, "it was decided already"
        async with Orchestra(talk.store, project=talk.folder) as house:
            await house.rollback("talk", to=0)
        ending = await talk.play()
        assert ending.state.metrics.rollbacks == 1
        assert len(talk.provider.ledger.begun()) == 3
        assert ending.state.spending["work"].requests == ending.state.metrics.api_calls == 3
        _write(talk, OF_PHASE % "requests: 30")
        assert (await talk.play(accept_changes=True)).kind == "completed"


@pytest.mark.parametrize(("limits", "wait"), [(OF_RUN, "run"), (OF_PHASE, "work")])
async def test_a_person_is_asked_once_for_all(open_with: Opener, limits: str, wait: str) -> None:
    async with open_with(NOTED) as talk:
        _write(talk, limits % "requests: 2, on_limit: ask")
        ending = await talk.play()
        assert ending.kind == "waiting"
        assert list(ending.state.waits) == [f"{wait}!limit:requests=2"]
        assert (await talk.play()).kind == "waiting"
        ending = await talk.play("proceed")
        assert ending.kind == "completed", ending.state.failure
        (chosen,) = _budget_decisions(ending.state)
        assert chosen.rationale == "on_limit is ask; a person said proceed"


async def test_a_person_may_say_no(open_with: Opener) -> None:
    async with open_with(NOTED) as talk:
        _write(talk, OF_PHASE % "tool_calls: 1, on_limit: ask")
        assert (await talk.play()).kind == "waiting"
        ending = await talk.play("stop")
        assert ending.kind == "failed"
        assert ending.state.metrics.tool_calls == ending.state.spending["work"].tool_calls == 1


async def test_going_on_is_decided_once(open_with: Opener) -> None:
    async with open_with(NOTED) as talk:
        _write(talk, OF_RUN % "tokens: 1, on_limit: proceed")
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        assert len(_budget_decisions(ending.state)) == 1


async def test_what_is_under_way_counts_with_what_it_may_use(open_with: Opener) -> None:
    async with open_with([{"text": "There.", "gates": [{"name": "gate", "times": 1}]}]) as talk:
        _write(talk, OF_PHASE % "tokens: 7000", options="max_tokens: 4000")
        endings = []

        async def play() -> None:
            endings.append(await talk.play())

        async with anyio.create_task_group() as group:
            group.start_soon(play)
            await talk.provider.wait_for("gate")
            async with Orchestra(talk.store, project=talk.folder) as _:
                assert len(talk.provider.ledger.begun()) == 1, "both together might use 8,000"
            talk.provider.open_gate("gate")
        (ending,) = endings
        assert ending.kind == "completed", ending.state.failure
        assert len(talk.provider.ledger.begun()) == 2
        assert _budget_decisions(ending.state) == [], "there was room, as the first used less than it might"


async def test_a_cheaper_model_takes_over_for_all(open_with: Opener) -> None:
    async with open_with(NOTED) as talk:
        _write(
            talk,
            OF_PHASE % "cost: 0.35, on_limit: cheaper",
            PRICES,
            model="openai-chat:dear, openai-chat:cheap",
            options="max_tokens: 100",
        )
        ending = await talk.play()
        assert ending.kind == "completed", ending.state.failure
        (chosen,) = _budget_decisions(ending.state)
        assert chosen.description.startswith(
            "Ask cheaper models: a limit of phase work would be passed (cost: "
        )
        generations = [each.generation for each in ending.state.messages.values() if each.generation]
        assert {each.model for each in generations} == {"openai-chat:dear", "openai-chat:cheap"}
        cheap = next(each for each in generations if each.model == "openai-chat:cheap")
        assert cheap.price == TokenPrice(input=1_000_000, output=2_000_000)
        assert cheap.cost_micros == cheap.tokens_in + 2 * cheap.tokens_out
        assert (
            ending.state.metrics.cost_micros == sum(each.cost_micros or 0 for each in generations) <= 350_000
        )


async def test_a_run_remembers_the_prices_it_was_counted_with(open_with: Opener) -> None:
    async with open_with(SAID) as talk:
        _write(talk, PRICES, model="openai-chat:dear")
        ending = await talk.play()
        (first, _) = [each.generation for each in ending.state.messages.values() if each.generation]
        assert first.price == TokenPrice(input=1_000_000_000, output=2_000_000_000)
        assert first.cost_micros == 1000 * first.tokens_in + 2000 * first.tokens_out
        assert (first.most_tokens, first.most_micros) == (0, None)


@pytest.mark.parametrize("limits", [OF_RUN, OF_PHASE])
async def test_money_needs_a_price_or_a_limit_on_tokens(open_with: Opener, limits: str) -> None:
    async with open_with(SAID) as talk:
        _write(talk, limits % "cost: 1")
        with pytest.raises(
            BadWorkflow, match=r"flow\.yaml:4:\d+: .* has no price that is known: set `tokens`"
        ):
            await talk.play()
        _write(talk, limits % "cost: 1, tokens: 100000")
        assert (await talk.play()).kind == "completed"


async def test_a_price_that_is_written_is_known(open_with: Opener) -> None:
    async with open_with(SAID) as talk:
        _write(talk, OF_RUN % "cost: 1", PRICES)
        assert (await talk.play()).kind == "completed"


async def test_a_price_that_is_none_is_a_mistake(open_with: Opener) -> None:
    async with open_with(SAID) as talk:
        _write(talk, "prices: {x: {input: -1, outptu: 1}}")
        with pytest.raises(BadWorkflow) as caught:
            await talk.play()
        assert "flow.yaml:10" in str(caught.value)
