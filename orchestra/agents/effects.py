"""Effects on the outside world: done at most once, over all attempts, unless declared repeatable.

The intent is durable before the effect is tried, and its outcome before anything follows from it.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

import attrs

from orchestra.agents.failures import message_of, misbehaviour
from orchestra.agents.reports import make
from orchestra.errors import AgentFailed
from orchestra.ids import AgentId
from orchestra.ports.agent import EffectBegun, EffectEnded, Link

Waiting: TypeAlias = Callable[[Awaitable[Any]], Awaitable[Any]]


@attrs.frozen(kw_only=True)
class EffectCall:
    """What is to be done, and what is known about doing it."""

    agent: AgentId
    name: str
    key: str  # its own idempotency key
    do: Callable[[str], Any]
    intent: Any = None
    risky: bool = False
    repeatable: bool = False
    harmless: tuple[type[Exception], ...] = ()  # errors after which nothing has happened


async def carry_out(effect: EffectCall, link: Link, wait: Waiting) -> Any:
    """The effect's outcome, from an earlier attempt if one has done it. `wait` is for one that is async."""
    before = await link.call(make(EffectBegun, name=effect.name, intent=effect.intent, risky=effect.risky))
    status = before["status"] if before else None
    if status == "done":
        return before.get("outcome")
    if status in ("intended", "unknown") and not effect.repeatable:
        raise _unknown(effect)
    try:
        outcome = await _done(effect, wait)
    except Exception as error:
        ended = make(EffectEnded, name=effect.name, status=_after(effect, error), outcome=_noted(error))
        await link.call(ended)
        raise
    await link.call(make(EffectEnded, name=effect.name, status="done", outcome=outcome))
    return outcome


async def _done(effect: EffectCall, wait: Waiting) -> Any:
    outcome = effect.do(effect.key)
    return await wait(outcome) if inspect.isawaitable(outcome) else outcome


def _after(effect: EffectCall, error: Exception) -> Literal["failed", "unknown"]:
    """An error says that something went wrong, not that nothing happened."""
    return "failed" if effect.repeatable or isinstance(error, effect.harmless) else "unknown"


def _noted(error: Exception) -> dict[str, str]:
    return {"error": type(error).__name__, "message": message_of(error)}


def _unknown(effect: EffectCall) -> AgentFailed:
    return misbehaviour(
        effect.agent,
        "OutcomeUnknown",
        f"the outcome of {effect.name!r} is unknown: an earlier attempt began it and never said how it went. "
        "Look whether it happened; declare it repeatable=True if doing it twice does no harm",
        recoverable=False,
        details={"effect": effect.name, "key": effect.key},
    )
