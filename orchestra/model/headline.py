"""`headline(event)`: an event in one line, for a snapshot's header and for people.

Every turn makes a line of each of its events, so the way from an event to its line is a table, and lines
that come again and again, in every run of a workflow, are made once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, get_args

from orchestra.limits import HEADLINE_CHARS, HEADLINE_EVENTS
from orchestra.model import events as ev
from orchestra.model.frozen import maker
from orchestra.model.snapshot import Headline
from orchestra.model.state import State

Figures = tuple[tuple[str, int | float], ...]
_headline: Final = maker(Headline)


def headlines(events: tuple[ev.Event, ...], state: State) -> tuple[Headline, ...]:
    """The events of one turn in a line each; past the limit one line counts the rest.

    `state` is the one after the turn: it knows whose task a task is.
    """
    if len(events) <= HEADLINE_EVENTS:
        return tuple([_LINES[type(event)](event, state) for event in events])
    shown = [headline(event, state) for event in events[:HEADLINE_EVENTS]]
    rest = Headline(kind="more", figures=(("events", len(events) - HEADLINE_EVENTS),))
    return (*shown, rest)


def headline(event: ev.Event, state: State) -> Headline:
    """One event in one line."""
    return _LINES[type(event)](event, state)


def _line(event: Any, who: str | None, what: str, figures: Figures = ()) -> Headline:
    what = what if len(what) <= HEADLINE_CHARS else what[:HEADLINE_CHARS]
    if figures:
        return _headline(kind=event.kind, who=who, what=what, figures=figures)
    return _bare(event.kind, who, what)


@lru_cache(maxsize=4096)
def _bare(kind: str, who: str | None, what: str) -> Headline:
    """A line without figures. One with figures is not kept: 1 and 1.0 are equal, and stored differently."""
    return Headline(kind=kind, who=who, what=what)


def _figure(name: str, figure: int | float | None) -> Figures:
    """One figure, if there is one."""
    return () if figure is None else ((name, figure),)


def _said(first: str, more: str) -> str:
    return f"{first}: {more}" if more else first


# Work.


def _agent_of(task: str, state: State) -> str | None:
    held = state.tasks.get(task)
    return None if held is None else held.agent


def _completed(event: ev.TaskCompleted, state: State) -> Headline:
    who = _agent_of(event.task, state)
    return _line(event, who, event.task, _figure("confidence", event.confidence))


def _failed(event: ev.TaskFailed, state: State) -> Headline:
    what = f"{event.task}: {event.failure.error}: {event.failure.message}"
    return _line(event, _agent_of(event.task, state), what)


def _retired(event: ev.TaskRetired, state: State) -> Headline:
    return _line(event, _agent_of(event.task, state), f"{event.task}: {event.outcome}")


def _decided(event: ev.DecisionMade, _: State) -> Headline:
    decision = event.decision
    return _line(event, decision.agent, decision.description, _figure("confidence", decision.confidence))


def _intended(event: ev.EffectIntended, state: State) -> Headline:
    return _line(event, _agent_of(event.details.task, state), event.details.name)


def _spent(event: ev.Spent, _: State) -> Headline:
    tokens = event.tokens_in + event.tokens_out
    return _line(event, event.agent, "", (("tokens", tokens), ("api_calls", event.api_calls)))


# The run.


def _rolled_back(event: ev.RolledBack, _: State) -> Headline:
    return _line(event, None, event.reason, (("from", event.from_seq), ("to", event.to_seq)))


_LINES: Final[dict[Any, Callable[[Any, State], Headline]]] = {
    ev.TaskPlanned: lambda event, _: _line(event, event.agent, event.task),
    ev.AgentLaunched: lambda event, _: _line(event, event.agent, event.task, (("attempt", event.attempt),)),
    ev.TaskCompleted: _completed,
    ev.TaskFailed: _failed,
    ev.TaskRetired: _retired,
    ev.DecisionMade: _decided,
    ev.MilestoneReached: lambda event, _: _line(
        event, event.agent, event.step or "", _figure("progress", event.progress)
    ),
    ev.TextEmitted: lambda event, _: _line(event, event.agent, "", (("characters", len(event.text)),)),
    ev.ConfidenceReported: lambda event, _: _line(event, event.agent, "", (("confidence", event.value),)),
    ev.Spent: _spent,
    ev.MessagePosted: lambda event, _: _line(event, event.agent, f"{event.role} {event.message}"),
    ev.MessageStreamed: lambda event, _: _line(
        event, None, event.message, (("characters", len(event.text)),)
    ),
    ev.ContextContributed: lambda event, _: _line(event, event.agent, event.name),
    ev.OutputWritten: lambda event, _: _line(
        event, event.output.agent, event.path, (("bytes", event.output.size),)
    ),
    ev.CriterionScored: lambda event, _: _line(
        event, event.agent, event.score.criterion, (("score", event.score.score),)
    ),
    ev.EvaluationCompleted: lambda event, _: _line(
        event, event.agent, event.verdict.kind, (("score", event.verdict.score),)
    ),
    ev.WaitOpened: lambda event, _: _line(event, event.agent, f"{event.waits_for}: {event.text}"),
    ev.WaitClosed: lambda event, _: _line(event, None, event.wait),
    ev.EffectIntended: _intended,
    ev.EffectSettled: lambda event, _: _line(event, None, f"{event.effect}: {event.status}"),
    ev.RunStarted: lambda event, _: _line(event, None, event.workflow.name),
    ev.PhaseStarted: lambda event, _: _line(
        event, None, event.phase, _figure("visit", event.visit if event.visit > 1 else None)
    ),
    ev.PhaseCompleted: lambda event, _: _line(event, None, event.phase),
    ev.RoundStarted: lambda event, _: _line(event, None, event.phase, (("round", event.round),)),
    ev.SnapshotRequested: lambda event, _: _line(event, None, _said(event.why, event.note)),
    ev.RunPaused: lambda event, _: _line(event, None, event.reason),
    ev.RunWaiting: lambda event, _: _line(event, None, event.reason),
    ev.RunResumed: lambda event, _: _line(event, None, event.reason),
    ev.RolledBack: _rolled_back,
    ev.Forked: lambda event, _: _line(event, None, f"{event.from_run}@{event.from_seq}"),
    ev.DefinitionAccepted: lambda event, _: _line(event, None, event.changes),
    ev.StateEdited: lambda event, _: _line(event, None, event.path),
    ev.RunEnded: lambda event, _: _line(event, None, _said(event.outcome, event.reason)),
}
assert set(_LINES) == set(get_args(ev.Event)), "BUG: every event has a line"
