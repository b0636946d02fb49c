"""What a request to a model costs, and the most it can cost before it is sent.

Money is counted in micros, millionths of the currency unit. Prices come from the data of the package
genai-prices, when it is installed, and from `prices:`, which is asked first. A model that is in neither has
no price: that is unknown and not nothing.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Protocol

import attrs

from orchestra.agents.llm.models import full_name, is_free
from orchestra.agents.llm.providers import GATEWAY, GATEWAY_PROVIDERS
from orchestra.errors import BadSetting
from orchestra.limits import AGENT_COUNT
from orchestra.model.records import TokenPrice
from orchestra.suggest import meant

MILLION: Final = 1_000_000
_KEYS: Final = ("input", "output", "cache_read", "cache_write")
_THEIR_KEYS: Final = {key: f"{key}_mtok" for key in _KEYS}
_THEIR_PROVIDERS: Final = {"azure-responses": "azure"}


class TokenUsage(Protocol):
    """How many tokens a request took. Those of the cache are among the input's."""

    @property
    def input_tokens(self) -> int:
        """All that went in."""

    @property
    def output_tokens(self) -> int:
        """All that came out."""

    @property
    def cache_read_tokens(self) -> int:
        """Went in, and were known already."""

    @property
    def cache_write_tokens(self) -> int:
        """Went in, and were put into the cache."""


@attrs.frozen(kw_only=True)
class Price:
    """What a million tokens cost, in micros."""

    input: int
    output: int
    cache_read: int | None = None  # None: as other input
    cache_write: int | None = None
    above: int = 0  # it holds for requests of more input tokens than this
    higher: tuple["Price", ...] = ()  # the prices of longer requests, the longest last

    def at(self, tokens_in: int) -> "Price":
        """The price of a request with so many input tokens."""
        return next((each for each in reversed(self.higher) if tokens_in > each.above), self)


FREE: Final = Price(input=0, output=0)


def price_of(
    name: str, prices: Mapping[str, Price] | None = None, *, at: datetime | None = None
) -> Price | None:
    """The price of a model, or None when nobody knows it.

    `prices` are those of `read_prices`. Some prices change on a date: `at` is the time of the request.
    """
    if is_free(name):
        return FREE
    whole = full_name(name)
    own = _own_price(whole, prices or {})
    return own if own is not None else _known_price(whole, at or datetime.now(UTC))


def context_window(name: str) -> int | None:
    """How many tokens a request to a model and its answer can have together; None when nobody knows."""
    found = _known_model(full_name(name))
    window: int | None = getattr(found, "context_window", None)
    return window


def cost_micros(price: Price, usage: TokenUsage) -> int:
    """What a request cost, rounded up to whole micros."""
    held = price.at(usage.input_tokens)
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    fresh = max(0, (usage.input_tokens or 0) - read - written)
    cache_read = held.input if held.cache_read is None else held.cache_read
    cache_write = held.input if held.cache_write is None else held.cache_write
    whole = fresh * held.input + read * cache_read + written * cache_write
    return _rounded(whole + (usage.output_tokens or 0) * held.output)


def token_price(price: Price, tokens_in: int | None) -> TokenPrice:
    """The price of one request, as it is recorded."""
    held = price.at(tokens_in or 0)
    return TokenPrice(
        input=held.input, output=held.output, cache_read=held.cache_read, cache_write=held.cache_write
    )


def most_it_can_cost(price: Price, tokens_in: int, max_tokens: int) -> int:
    """The most a request of so many input tokens, and at most so many output tokens, can cost."""
    held = price.at(tokens_in)
    dearest = max(held.input, held.cache_write or 0, held.cache_read or 0)
    return _rounded(tokens_in * dearest + max_tokens * held.output)


def read_prices(data: Any, setting: str = "prices") -> dict[str, Price]:
    """Prices as people write them, `{"openai:gpt-5": {input: 1.25, output: 10}}`; raises `BadSetting`.

    The numbers are currency units a million tokens. A name may end with `*` and then stands for many models.
    """
    if not isinstance(data, Mapping):
        raise BadSetting(setting=setting, value=data, reason="it is a mapping from models to their prices")
    return {full_name(str(name)): _read_price(f"{setting}.{name}", each) for name, each in data.items()}


def _read_price(setting: str, data: Any) -> Price:
    if not isinstance(data, Mapping):
        raise BadSetting(setting=setting, value=data, reason="a price is written `{input: 2.5, output: 10}`")
    for key in data:
        if key not in _KEYS:
            reason = f"a price has no `{key}`{meant(str(key), _KEYS)}"
            raise BadSetting(setting=setting, value=dict(data), reason=reason)
    for key in ("input", "output"):
        if data.get(key) is None:
            raise BadSetting(setting=setting, value=dict(data), reason=f"`{key}` is missing")
    given = {key: value for key, value in data.items() if value is not None}
    amounts: dict[str, Any] = {key: _read_amount(f"{setting}.{key}", each) for key, each in given.items()}
    return Price(**amounts)


def _read_amount(setting: str, value: Any) -> int:
    try:
        amount = Decimal(str(value)) if not isinstance(value, bool) else Decimal("nan")
    except InvalidOperation:
        amount = Decimal("nan")
    if not amount.is_finite() or not 0 <= amount * MILLION <= AGENT_COUNT:
        raise BadSetting(setting=setting, value=value, reason="it is a number from 0 on, such as 2.5")
    return int((amount * MILLION).to_integral_value())


def _own_price(name: str, prices: Mapping[str, Price]) -> Price | None:
    if name in prices:
        return prices[name]
    fitting = [each for each in prices if each.endswith("*") and name.startswith(each[:-1])]
    return prices[max(fitting, key=len)] if fitting else None


def _known_price(name: str, at: datetime) -> Price | None:
    found = _known_model(name)
    return None if found is None else _converted(found.get_prices(at))


def _known_model(name: str) -> Any:
    """What the package knows of a model; None when that is nothing."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    provider, _, model = name.partition(":")
    if provider.startswith(GATEWAY):
        upstream = provider.removeprefix(GATEWAY)
        provider = GATEWAY_PROVIDERS.get(upstream, upstream)
    try:
        _, found = get_snapshot().find_provider_model(
            model, provider=None, provider_id=_THEIR_PROVIDERS.get(provider, provider), provider_api_url=None
        )
    except LookupError:
        return None
    return found


def _converted(theirs: Any) -> Price | None:
    """A price of that package as ours. Its longer requests have prices of their own, for all their tokens."""
    amounts = {key: getattr(theirs, word, None) for key, word in _THEIR_KEYS.items()}
    if amounts["input"] is None or amounts["output"] is None:
        return None
    marks = {tier.start for each in amounts.values() for tier in getattr(each, "tiers", ())}
    higher = tuple(Price(**_micros_at(amounts, mark + 1), above=mark) for mark in sorted(marks))
    return Price(**_micros_at(amounts, 0), higher=higher)


def _micros_at(amounts: Mapping[str, Any], tokens_in: int) -> dict[str, Any]:
    return {key: _amount_at(each, tokens_in) for key, each in amounts.items() if each is not None}


def _amount_at(amount: Any, tokens_in: int) -> int:
    """An amount in micros, for a request of so many input tokens."""
    tiers = [tier.price for tier in getattr(amount, "tiers", ()) if tokens_in > tier.start]
    chosen = tiers[-1] if tiers else getattr(amount, "base", amount)
    return int((Decimal(chosen) * MILLION).to_integral_value())


def _rounded(millionths: int) -> int:
    return -(-millionths // MILLION)
