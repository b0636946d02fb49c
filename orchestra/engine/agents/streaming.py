"""Streaming: how much of what an agent streams a state keeps, and how it is said when that is not all of it.

A text inside a state is bounded (`TEXT_CHARS`). What goes past the bound is left out, and never in silence:
the text ends with a mark that says so, and a decision of Atlas's puts it on the record.
"""

from typing import Final

from orchestra.engine.rules.moves import decision
from orchestra.engine.view import View
from orchestra.ids import AgentId, Instant
from orchestra.limits import TEXT_CHARS
from orchestra.model import events as ev

CUT: Final = f"\n[cut here: of what an agent streams {TEXT_CHARS:,} characters are kept]"
"""The end of a streamed text that went on."""


def text_events(view: View, agent: AgentId, text: str, now: Instant) -> tuple[ev.Event, ...]:
    """Some streamed text as events: as much of it as is kept, and once, where it is not all, why."""
    held = view.state.agents.get(agent)
    size = 0 if held is None else len(held.partial)
    room = TEXT_CHARS - len(CUT) - size
    if len(text) <= room:
        return (ev.TextEmitted(at=now, agent=agent, text=text),)
    if size >= TEXT_CHARS:
        return ()  # it has been said
    kept = (text[: max(room, 0)] + CUT)[: TEXT_CHARS - size]
    return ev.TextEmitted(at=now, agent=agent, text=kept), _said(view, agent, now)


def _said(view: View, agent: AgentId, now: Instant) -> ev.DecisionMade:
    return decision(
        view,
        now,
        kind="text_cut",
        description=f"Keep no more of what {agent} streams",
        rationale=f"a text inside a state has at most {TEXT_CHARS:,} characters",
        alternatives=("write an output", "return it as the result", "save it in steps"),
    )
