"""Budgets: what a conversation may use, looked at before every request and tool call, not after."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from orchestra.agents.context import Context
from orchestra.agents.failures import misbehaviour
from orchestra.agents.llm.prices import Price, most_it_can_cost
from orchestra.model.workflow import Limits
from orchestra.ports.agent import ChatGeneration

_MICROS: Final = 1_000_000


@attrs.frozen(kw_only=True)
class Crossing:
    """A limit that the next request or call would pass: which, where it is, and what would be reached."""

    name: str
    limit: float
    reached: float

    def __str__(self) -> str:
        return f"{self.name}: {self.reached:g} of {self.limit:g}"


class Budget:
    """Counts what a conversation uses, over all its attempts, and stops it before it passes a limit."""

    def __init__(
        self,
        limits: Limits,
        ctx: Context,
        paid: Iterable[ChatGeneration],
        tool_calls: int,
        clock: Callable[[], float],
    ) -> None:
        self._limits, self._ctx, self._clock = limits, ctx, clock
        self._requests = self._tokens = self._cost_micros = 0
        self._tool_calls = tool_calls
        self._began = clock()
        self._allowed: set[str] = set()  # limits that were passed on purpose
        for each in paid:
            self.add(each)

    def add(self, generation: ChatGeneration) -> None:
        """Count a request that was answered."""
        self._requests += 1
        self._tokens += generation.tokens_in + generation.tokens_out
        self._cost_micros += generation.cost_micros or 0

    def next_crossing(self, price: Price | None, tokens_in: int, tokens_out: int | None) -> Crossing | None:
        """The limit that the next request may pass, with all that it may use; None when there is none."""
        limits = self._limits
        cost = self._cost_micros
        if price is None and limits.cost is not None and limits.tokens is None:
            return self._first([("cost", limits.cost, math.inf)])  # nothing else would bound it
        if price is not None:
            cost += most_it_can_cost(price, tokens_in, tokens_out or 0)
        found = (
            ("requests", limits.requests, self._requests + 1),
            ("tokens", limits.tokens, self._tokens + tokens_in + (tokens_out or 0)),
            ("cost", limits.cost, cost / _MICROS),
            ("seconds", limits.seconds, self._clock() - self._began),
        )
        return self._first(found)

    def _first(self, found: Iterable[tuple[str, float | None, float]]) -> Crossing | None:
        for name, limit, reached in found:
            if limit is not None and reached > limit and name not in self._allowed:
                return Crossing(name=name, limit=limit, reached=reached)
        return None

    async def count_tool_call(self) -> None:
        """Count a call that is about to be made; raises when it is one too many."""
        self._tool_calls += 1
        crossed = self._first([("tool_calls", self._limits.tool_calls, self._tool_calls)])
        if crossed is not None:
            await self.prefers_other(crossed, "", ())

    async def prefers_other(self, crossed: Crossing, model: str, others: Sequence[str]) -> bool:
        """Decide about a limit, on the record: ask another model (True), go on (False), or stop (raises)."""
        course = self._limits.on_limit
        if course == "cheaper" and not (others and crossed.name == "cost"):
            course = "stop"
        if course == "ask":
            question = f"{self._ctx.agent} would pass its limit ({crossed}). Go on?"
            answer = await self._ctx.ask(question, ["proceed", "stop"], key=f"limit:{crossed.name}")
            course = "proceed" if answer == "proceed" else "stop"
        said = {
            "stop": f"Stop: a limit would be passed ({crossed})",
            "proceed": f"Go on over a limit ({crossed})",
            "cheaper": f"Ask {others[0] if others else ''} instead of {model} ({crossed})",
        }[course]
        alternatives = [each for each in ("stop", "ask", "proceed", "cheaper") if each != course]
        why = f"on_limit is {self._limits.on_limit}"
        await self._ctx.decide(said, rationale=why, alternatives=alternatives, kind="budget")
        if course == "stop":
            details = {"limit": crossed.name, "allowed": crossed.limit, "reached": crossed.reached}
            raise misbehaviour(
                self._ctx.agent, "BudgetExceeded", f"its limit {crossed}", recoverable=False, details=details
            )
        if course == "proceed":
            self._allowed.add(crossed.name)
        return course == "cheaper"
