"""Costs are counted in whole micros, from prices that are known, written or both."""

import sys
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any

import attrs
import pytest
from genai_prices import calc_price
from pydantic_ai.usage import RequestUsage

from orchestra.agents.llm.prices import FREE, Price, cost_micros, most_it_can_cost, price_of, read_prices
from orchestra.errors import BadSetting

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["test", "local", "local:models/x.gguf"])
def test_models_in_this_process_cost_nothing(name: str) -> None:
    assert price_of(name, read_prices({"test": {"input": 5, "output": 5}})) == FREE


@pytest.mark.parametrize(
    "name", ["ollama:qwen3", "openai:there-is-none", "nobody:x", "nothing", "", "heroku:claude-3-7-sonnet"]
)
def test_an_unknown_price_is_not_nothing(name: str) -> None:
    assert price_of(name) is None


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("openai:gpt-5", "openai", "gpt-5"),
        ("openai-chat:gpt-4o", "openai", "gpt-4o"),
        ("azure-responses:gpt-4o", "azure", "gpt-4o"),
        ("gateway/chat:gpt-4o", "openai", "gpt-4o"),
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("google:gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("google-cloud:gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("xai:grok-4", "x-ai", "grok-4"),
    ],
)
@pytest.mark.parametrize(
    "usage",
    [
        RequestUsage(input_tokens=1000, output_tokens=500),
        RequestUsage(input_tokens=1001, output_tokens=7, cache_read_tokens=900),
        RequestUsage(input_tokens=300_000, output_tokens=5),
        RequestUsage(input_tokens=1, output_tokens=0),
        RequestUsage(),
    ],
    ids=range(5),
)
def test_costs_are_those_of_the_library(name: str, provider: str, model: str, usage: RequestUsage) -> None:
    price = price_of(name, at=NOW)
    assert price is not None
    theirs = calc_price(usage, model, provider_id=provider, genai_request_timestamp=NOW).total_price
    assert cost_micros(price, usage) == (theirs * 1_000_000).to_integral_value(ROUND_CEILING)


def test_cache_writes_have_their_price() -> None:
    price = price_of("anthropic:claude-sonnet-4-5", at=NOW)
    assert price is not None
    usage = RequestUsage(input_tokens=1000, output_tokens=0, cache_write_tokens=400)
    theirs = calc_price(usage, "claude-sonnet-4-5", provider_id="anthropic", genai_request_timestamp=NOW)
    assert Decimal(cost_micros(price, usage)) == theirs.total_price * 1_000_000


def test_long_requests_have_prices_of_their_own() -> None:
    price = Price(
        input=1_000_000, output=2_000_000, higher=(Price(input=3_000_000, output=4_000_000, above=100),)
    )
    assert cost_micros(price, RequestUsage(input_tokens=100, output_tokens=10)) == 120
    assert cost_micros(price, RequestUsage(input_tokens=101, output_tokens=10)) == 343
    assert most_it_can_cost(price, 100, 10) == 120
    assert most_it_can_cost(price, 101, 10) == 343


def test_parts_of_a_micro_are_rounded_up() -> None:
    price = Price(input=1, output=2)
    assert cost_micros(price, RequestUsage(input_tokens=1)) == 1
    assert cost_micros(price, RequestUsage(input_tokens=1_000_000, output_tokens=1)) == 2
    assert cost_micros(FREE, RequestUsage(input_tokens=10**9, output_tokens=10**9)) == 0


def test_a_cache_without_a_price_is_input() -> None:
    price = Price(input=1_000_000, output=0, cache_read=100_000)
    assert (
        cost_micros(price, RequestUsage(input_tokens=100, cache_read_tokens=50, cache_write_tokens=30))
        == 20 + 5 + 30
    )
    assert (
        cost_micros(price, RequestUsage(input_tokens=10, cache_read_tokens=50)) == 5
    )  # a provider that miscounts


@pytest.mark.parametrize("read", [0, 500, 1000])
@pytest.mark.parametrize("written", [0, 500])
@pytest.mark.parametrize("out", [0, 1, 2000])
@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5", "openai:gpt-5", "google:gemini-2.5-pro"])
def test_nothing_costs_more_than_the_most(name: str, read: int, written: int, out: int) -> None:
    price = price_of(name, at=NOW)
    assert price is not None
    usage = RequestUsage(
        input_tokens=1500, output_tokens=out, cache_read_tokens=read, cache_write_tokens=written
    )
    assert cost_micros(price, usage) <= most_it_can_cost(price, 1500, 2000)


def test_written_prices_come_first() -> None:
    prices = read_prices(
        {
            "openai:gpt-5": {"input": 2.5, "output": "10", "cache_read": 0.25, "cache_write": None},
            "ollama:*": {"input": 0, "output": 0},
            "ollama:big*": {"input": 1, "output": 1},
            "sonnet": {"input": 3, "output": 15},
        }
    )
    assert price_of("openai:gpt-5", prices) == Price(input=2_500_000, output=10_000_000, cache_read=250_000)
    assert price_of("gpt-5", prices) == price_of("openai:gpt-5", prices)
    assert price_of("ollama:qwen3", prices) == FREE
    assert price_of("ollama:bigger", prices) == Price(input=1_000_000, output=1_000_000)
    assert price_of("sonnet", prices) == Price(input=3_000_000, output=15_000_000)
    assert price_of("openai:gpt-4o", prices) == price_of("openai:gpt-4o")


@pytest.mark.parametrize(
    ("data", "setting", "reason"),
    [
        ([], "prices", "mapping from models"),
        ({"a:b": 5}, "prices.a:b", "{input: 2.5, output: 10}"),
        ({"a:b": {"input": 1}}, "prices.a:b", "`output` is missing"),
        ({"a:b": {"input": None, "output": 1}}, "prices.a:b", "`input` is missing"),
        ({"a:b": {"input": 1, "ouput": 1}}, "prices.a:b", "no `ouput`; did you mean `output`?"),
        ({"a:b": {"input": "cheap", "output": 1}}, "prices.a:b.input", "number from 0 on"),
        ({"a:b": {"input": True, "output": 1}}, "prices.a:b.input", "number from 0 on"),
        ({"a:b": {"input": [1], "output": 1}}, "prices.a:b.input", "number from 0 on"),
        ({"a:b": {"input": 1, "output": -1}}, "prices.a:b.output", "number from 0 on"),
        ({"a:b": {"input": 1, "output": float("inf")}}, "prices.a:b.output", "number from 0 on"),
        ({"a:b": {"input": 1, "output": "1e400"}}, "prices.a:b.output", "number from 0 on"),
        ({"a:b": {"input": 1, "output": float("nan")}}, "prices.a:b.output", "number from 0 on"),
    ],
)
def test_prices_that_cannot_be_read(data: Any, setting: str, reason: str) -> None:
    with pytest.raises(BadSetting) as caught:
        read_prices(data)
    assert caught.value.setting == setting
    assert reason in str(caught.value)


def test_without_the_data_only_written_prices_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert price_of("openai:gpt-5") is None
    assert price_of("openai:gpt-5", read_prices({"openai:gpt-5": {"input": 1, "output": 1}})) is not None


def test_prices_are_plain_data() -> None:
    price = price_of("google:gemini-2.5-pro", at=NOW)
    assert price is not None
    assert price.higher
    data = attrs.asdict(price)
    higher = tuple(Price(**each) for each in data.pop("higher"))
    assert Price(**data, higher=higher) == price
