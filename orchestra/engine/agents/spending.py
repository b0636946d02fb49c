"""Budgets of phases and of the run: whether one more request or tool call fits, and what is done if not.

What was spent stands in the state, over resumes and rollbacks. What is under way counts with the most that it
may use, which its record says; where only that leaves no room, the next one waits until it is known.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

import attrs

from orchestra.engine.rules.moves import decision
from orchestra.engine.view import View
from orchestra.errors import AgentFailed
from orchestra.ids import AgentId, Instant, PhaseId
from orchestra.model import events as ev
from orchestra.model.records import Account, Generation
from orchestra.model.state import WHOLE_RUN
from orchestra.model.workflow import LimitName, Limits, OnLimit
from orchestra.ports import agent as port

Course: TypeAlias = Literal["go", "hold", "other", "stop"]
_MICROS: Final = 1_000_000
_CHOICES: Final = ("proceed", "stop")


@attrs.frozen(kw_only=True)
class Need:
    """What a request or tool call may use at most."""

    requests: int = 0
    tokens: int = 0
    micros: int | None = 0  # None: nobody knows
    tool_calls: int = 0

    def __add__(self, other: "Need") -> "Need":
        return Need(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            micros=None if self.micros is None else self.micros + (other.micros or 0),
            tool_calls=self.tool_calls + other.tool_calls,
        )


@attrs.frozen(kw_only=True)
class Excess:
    """A limit that would be passed. When it `may_pass`, only what is under way stands in the way."""

    phase: PhaseId | None  # None: it is a limit of the run
    limit: LimitName
    allowed: float
    reached: float
    may_pass: bool = False
    on_limit: OnLimit

    def __str__(self) -> str:
        reached = "an unknown amount" if math.isinf(self.reached) else f"{self.reached:g}"
        return f"{self.limit}: {reached} of {self.allowed:g}"

    @property
    def owner(self) -> str:
        """Whose limit it is."""
        return "the run" if self.phase is None else f"phase {self.phase}"

    @property
    def wait(self) -> str:
        """The name of the question what to do about it."""
        return f"{self.phase or 'run'}!limit:{self.limit}={self.allowed:g}"


def need_of(report: port.Report, begun: bool) -> Need | None:
    """What a report says is about to be used, also by a call that has `begun`; None for nothing."""
    if isinstance(report, port.ToolReported):
        return Need(tool_calls=1) if begun else None
    last = report.messages[-1] if isinstance(report, port.Posted) and report.messages else None
    if last is None or last.status != "streaming" or last.generation is None:
        return None
    return need_of_request(last.generation)


def need_of_request(held: Generation | port.ChatGeneration) -> Need:
    """What a request that is under way may use."""
    return Need(requests=1, tokens=held.most_tokens, micros=held.most_micros)


def find_excess(view: View, need: Need, under_way: Iterable[Need]) -> Excess | None:
    """The limit that would be passed; one that is passed in any case comes first."""
    together = sum(under_way, Need())
    found = [*_excesses(view, need, together)]
    return next((each for each in found if not each.may_pass), found[0] if found else None)


def _excesses(view: View, need: Need, under_way: Need) -> Iterator[Excess]:
    metrics, spent = view.state.metrics, view.state.spending
    whole = spent.get(WHOLE_RUN) or Account()
    run = attrs.evolve(
        whole,
        requests=metrics.api_calls,
        tokens=metrics.tokens,
        cost_micros=metrics.cost_micros,
        tool_calls=metrics.tool_calls,
        elapsed_us=metrics.elapsed_us,
    )
    phase = view.phase
    if phase is not None and phase.limits is not None:
        yield from _over(phase.id, phase.limits, spent.get(phase.id) or Account(), need, under_way)
    if view.workflow.policy.limits is not None:
        yield from _over(None, view.workflow.policy.limits, run, need, under_way)


def _over(
    phase: PhaseId | None, limits: Limits, spent: Account, need: Need, under_way: Need
) -> Iterator[Excess]:
    """The limits of one owner that would be passed and that nobody has let pass."""
    cost, more = (math.inf if each.micros is None else each.micros for each in (need, under_way))
    if limits.tokens is not None:  # which bounds a model without a price
        cost, more = (0 if math.isinf(each) else each for each in (cost, more))
    amounts: tuple[tuple[LimitName, float, float, float], ...] = (
        ("requests", spent.requests, need.requests, under_way.requests),
        ("tokens", spent.tokens, need.tokens, under_way.tokens),
        ("cost", spent.cost_micros / _MICROS, cost / _MICROS, more / _MICROS),
        ("tool_calls", spent.tool_calls, need.tool_calls, 0),
        ("seconds", spent.elapsed_us / _MICROS, 0, 0),
    )
    passed = {
        each.limit
        for each in spent.crossed
        if each.course == "proceed" and each.allowed == getattr(limits, each.limit)
    }
    for name, used, wanted, others in amounts:
        allowed = getattr(limits, name)
        if allowed is None or name in passed or used + wanted + others <= allowed:
            continue
        if not wanted and name != "seconds":
            continue  # it uses none of that
        reached = used + wanted
        yield Excess(
            phase=phase,
            limit=name,
            allowed=allowed,
            reached=reached,
            may_pass=reached <= allowed,
            on_limit=limits.on_limit,
        )


def settle_excess(
    view: View, now: Instant, excess: Excess, *, has_other: bool
) -> tuple[Course, tuple[ev.Event, ...]]:
    """What to do about a limit that would be passed, and the events that say so, once."""
    if excess.may_pass:
        return "hold", ()
    held = view.state.spending.get(excess.phase or WHOLE_RUN) or Account()
    course = next(
        (
            each.course
            for each in held.crossed
            if (each.limit, each.allowed) == (excess.limit, excess.allowed)
        ),
        None,
    )
    if course is not None:
        return _as_course(course, has_other=has_other), ()
    if excess.on_limit == "ask":
        wait = view.state.waits.get(excess.wait)
        if wait is None:
            text = f"{excess.owner[0].upper()}{excess.owner[1:]} would pass its limit ({excess}). Go on?"
            asked = ev.WaitOpened(at=now, wait=excess.wait, waits_for="question", text=text, choices=_CHOICES)
            return "hold", (asked,)
        if wait.status == "open":
            return "hold", ()
        course = "proceed" if view.open_value(wait.answer) == "proceed" else "stop"
    elif excess.on_limit == "cheaper" and excess.limit != "cost":
        course = "stop"
    else:
        course = excess.on_limit
    return _as_course(course, has_other=has_other), _decided(view, now, excess, course)


def over_budget(agent: AgentId, excess: Excess) -> AgentFailed:
    """The failure of an agent that wanted more than there is."""
    details = {"limit": excess.limit, "allowed": excess.allowed, "of": excess.owner}
    if not math.isinf(excess.reached):
        details["reached"] = excess.reached
    message = f"a limit of {excess.owner} would be passed ({excess})"
    return AgentFailed.plain(agent, "BudgetExceeded", message, recoverable=False, details=details)


def _as_course(course: OnLimit, *, has_other: bool) -> Course:
    if course == "proceed":
        return "go"
    return "other" if course == "cheaper" and has_other else "stop"


def _decided(view: View, now: Instant, excess: Excess, course: OnLimit) -> tuple[ev.Event, ...]:
    said = {
        "stop": f"Ask and call nothing more: a limit of {excess.owner} would be passed ({excess})",
        "proceed": f"Go on over a limit of {excess.owner} ({excess})",
        "cheaper": f"Ask cheaper models: a limit of {excess.owner} would be passed ({excess})",
        "ask": "",
    }[course]
    why = f"on_limit is {excess.on_limit}"
    if excess.on_limit == "ask":
        why += f"; a person said {course}"
    others = [each for each in ("stop", "ask", "proceed", "cheaper") if each != course]
    crossed = ev.LimitCrossed(
        at=now,
        limit=excess.limit,
        allowed=excess.allowed,
        reached=None if math.isinf(excess.reached) else excess.reached,
        course=course,
        phase=excess.phase,
    )
    return decision(view, now, "budget", said, why, others), crossed
