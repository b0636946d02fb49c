"""The most that one assignment of a language model can use."""

from typing import Any

import pytest

from orchestra.agents.llm.forecast import most_spending
from orchestra.agents.llm.kind import LimitOptions, LlmOptions
from orchestra.agents.llm.markdown import AgentFile
from orchestra.agents.llm.prices import context_window, price_of
from orchestra.ports.agent_kind import Spending

GPT = "openai:gpt-5"
WINDOW = 400_000


def _most(
    *models: str, file: AgentFile | None = None, max_tokens: int | None = None, **limits: Any
) -> Spending:
    options = LlmOptions(model=models or (GPT,), max_tokens=max_tokens, limits=LimitOptions(**limits))
    return most_spending(file or AgentFile(), options)


def test_requests_bound_tokens_and_money_by_the_length_of_contexts() -> None:
    price = price_of(GPT)
    assert price is not None
    assert context_window(GPT) == WINDOW
    assert _most(requests=2) == Spending(
        models=(GPT,), requests=2, tokens=2 * WINDOW, cost_micros=2 * WINDOW * price.output // 1_000_000
    )


def test_steps_of_the_file_count_too() -> None:
    assert _most(file=AgentFile(max_steps=3), requests=9).requests == 3


def test_limits_bound_it_further_and_one_answer_may_pass_them() -> None:
    assert _most(tokens=1000).tokens == 1000 + WINDOW
    assert _most(tokens=1000, max_tokens=100).tokens == 1000
    assert _most(cost=0.5, max_tokens=100).cost_micros == 500_000


def test_a_model_in_this_process_costs_nothing() -> None:
    found = _most("test")
    assert (found.cost_micros, found.unknown) == (0, ())


def test_of_several_models_the_dearest_counts() -> None:
    assert _most("test", GPT).cost_micros == _most(GPT).cost_micros


def test_what_is_not_known_is_said() -> None:
    found = _most("openai:nobody-knows-it")
    assert (found.tokens, found.cost_micros) == (None, None)
    assert found.unknown[0] == "`openai:nobody-knows-it` has no price that is known"
    assert "`max_tokens` with `limits: {tokens: …}`" in found.unknown[1]
    found = _most("openai:nobody-knows-it", tokens=1000, max_tokens=10)
    assert (found.tokens, found.cost_micros) == (1000, None)


@pytest.mark.parametrize("course", ["proceed", "ask"])
def test_limits_that_may_be_passed_are_told(course: Any) -> None:
    found = _most(on_limit=course, requests=2)
    assert course in found.unknown[0]
    assert (found.requests is None) is (course == "proceed")


def test_without_a_model_nothing_is_asked() -> None:
    assert most_spending(AgentFile(), LlmOptions(model=("inherit",))).cost_micros == 0
