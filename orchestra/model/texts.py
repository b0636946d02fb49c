"""Texts inside a state are bounded: a leaf of 32 of them must fit into one stored node."""

from collections.abc import Iterator
from typing import Final

from orchestra.errors import IllegalEvent
from orchestra.limits import TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.state import State


def check_texts(state: State, event: ev.Event) -> None:
    """Raise `IllegalEvent` when an event would make a text of the state too long."""
    planned = type(event) is ev.TaskPlanned  # the most common by far
    size = len(event.description) if planned else sum(map(len, _texts(state, event)))  # type: ignore[union-attr]
    if size > TEXT_CHARS:
        what = f"the task of {event.task}" if planned else "a text"  # type: ignore[union-attr]
        limit = f"the limit is {TEXT_CHARS:,}; use a value or an output"
        reason = f"{what} would have {size:,} characters and {limit}"
        raise IllegalEvent(kind=event.kind, run=state.run, reason=reason)


WITH_TEXTS: Final = frozenset(
    {
        ev.DecisionMade,
        ev.TaskPlanned,
        ev.TextEmitted,
        ev.MessagePosted,
        ev.MessageStreamed,
        ev.TaskFailed,
        ev.RunEnded,
        ev.CriterionScored,
        ev.WaitOpened,
    }
)
"""The events that bring texts; the others need no check."""


def _texts(state: State, event: ev.Event) -> Iterator[str]:
    """The texts that would stand together in one item of the state."""
    match event:
        case ev.DecisionMade(decision=decision):
            yield from (decision.description, decision.rationale, *decision.alternatives)
        case ev.TextEmitted():
            agent = state.agents.get(event.agent)
            yield from (agent.partial if agent is not None else "", event.text)
        case ev.MessagePosted():
            yield from (part.text for part in event.parts)
        case ev.MessageStreamed():
            held = state.messages.get(event.message)
            yield from (part.text for part in (*(held.parts if held is not None else ()), *event.parts))
            yield event.text
        case ev.TaskFailed(failure=failure):
            yield from (failure.message, failure.stack)
        case ev.RunEnded(failure=failure) if failure is not None:
            yield from (failure.message, failure.stack)
        case ev.CriterionScored():
            evaluation = state.evaluations.get(event.evaluation)
            yield from (evaluation.feedback if evaluation is not None else "", event.feedback)
        case ev.WaitOpened():
            yield from (event.text, *event.choices)
        case _:
            return
