"""The most that one assignment of a language model can use, told before anything is asked.

It follows from the limits of the agent, the lengths of the models' contexts and their prices. Limits are
looked at before a request with an estimate of its length, so that one answer may pass them where `max_tokens`
does not bound it: that answer is counted.
"""

from collections.abc import Iterable, Mapping

import attrs

from orchestra.agents.llm.kind import LimitOptions, LlmOptions, models_of, settings_of
from orchestra.agents.llm.markdown import AgentFile
from orchestra.agents.llm.models import full_name, is_free
from orchestra.agents.llm.prices import MILLION, Price, context_window, most_it_can_cost, price_of
from orchestra.ports.agent_kind import Spending


def most_spending(
    file: AgentFile, options: LlmOptions, prices: Mapping[str, Price] | None = None
) -> Spending:
    """The most that one assignment can spend, whichever of its models it asks; nothing where it has none."""
    names = models_of(options, file)
    if not names:
        return Spending(requests=0, tokens=0, cost_micros=0)
    limits = options.limits
    steps = min(limits.requests, file.max_steps or limits.requests)
    unknown = []
    if limits.on_limit == "proceed":
        unknown.append("`on_limit: proceed` lets it pass its limits")
        limits = LimitOptions()
    elif limits.on_limit == "ask":
        unknown.append("a person may let it pass its limits (`on_limit: ask`)")
    requests = None if options.limits.on_limit == "proceed" else steps
    max_tokens = settings_of(options, file).get("max_tokens")
    each = [_Forecast(full_name(name), requests, limits, max_tokens, prices or {}) for name in names]
    for forecast in each:
        unknown += forecast.unknown
    return Spending(
        models=tuple(forecast.model for forecast in each),
        requests=requests,
        tokens=_largest(forecast.tokens for forecast in each),
        cost_micros=_largest(forecast.cost_micros for forecast in each),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def _largest(found: Iterable[int | None]) -> int | None:
    """The largest of some amounts; None when one of them is not known."""
    known = list(found)
    return max((each for each in known if each is not None), default=None) if None not in known else None


@attrs.frozen
class _Forecast:
    """The most that an assignment can use of one model."""

    model: str
    requests: int | None  # None: as many as it likes
    limits: LimitOptions
    max_tokens: int | None
    prices: Mapping[str, Price]

    @property
    def _window(self) -> int | None:
        return context_window(self.model)

    @property
    def _answer(self) -> int | None:
        """How long one answer can be."""
        return self.max_tokens or self._window

    @property
    def _beyond(self) -> int | None:
        """How many tokens of an answer may pass a limit: none, where its length is looked at before."""
        return 0 if self.max_tokens else self._window

    @property
    def _price(self) -> Price | None:
        """The price of its longest requests."""
        found = price_of(self.model, self.prices)
        return found.higher[-1] if found is not None and found.higher else found

    @property
    def tokens(self) -> int | None:
        """All tokens, in and out."""
        found = []
        if self.requests is not None and self._window is not None:
            found.append(self.requests * self._window)
        if self.limits.tokens is not None and self._beyond is not None:
            found.append(self.limits.tokens + self._beyond)
        return min(found, default=None)

    @property
    def cost_micros(self) -> int | None:
        """All money; nothing for a model in this process."""
        if is_free(self.model):
            return 0
        price, window, answer, found = self._price, self._window, self._answer, list[int]()
        if price is None:
            return None
        if self.requests is not None and window is not None and answer is not None:
            longest = min(answer, window)
            found.append(self.requests * most_it_can_cost(price, window - longest, longest))
        if self.tokens is not None:
            found.append(
                max(most_it_can_cost(price, self.tokens, 0), most_it_can_cost(price, 0, self.tokens))
            )
        if self.limits.cost is not None and self._beyond is not None:
            found.append(round(self.limits.cost * MILLION) + most_it_can_cost(price, 0, self._beyond))
        return min(found, default=None)

    @property
    def unknown(self) -> list[str]:
        """Why something is not known."""
        if is_free(self.model):
            return []
        told = []
        if self._price is None:
            told.append(f"`{self.model}` has no price that is known")
        if self.tokens is None and self.requests is not None:
            told.append(
                f"how long requests to `{self.model}` can be is not known: "
                "`max_tokens` with `limits: {tokens: …}` bounds them"
            )
        return told
