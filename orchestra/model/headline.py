"""`headline(event)`: an event in one line, for a snapshot's header and for people.

Every turn makes a line of each of its events: lines that come again in every run of a workflow are kept.
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
    """The events of one turn in a line each, the rest counted in one; `state` is the one after the turn."""
    lines = [_LINES[type(event)](event, state) for event in events[:HEADLINE_EVENTS]]
    if len(events) > HEADLINE_EVENTS:
        lines.append(Headline(kind="more", figures=(("events", len(events) - HEADLINE_EVENTS),)))
    return tuple(lines)


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
    return () if figure is None else ((name, figure),)


def _with_reason(first: str, more: str) -> str:
    return f"{first}: {more}" if more else first


def _agent_of(task: str, state: State) -> str | None:
    held = state.tasks.get(task)
    return None if held is None else held.agent


def _speaker_of(message: str, state: State) -> str | None:
    held = state.messages.get(message)
    return None if held is None else held.agent


def _message_text(event: ev.MessagePosted) -> str:
    """A message by role and name; what a model says, or is about to, with its status and the model before."""
    facts = f"{event.status} {event.model} " if event.model else ""
    return f"{event.role} {facts}{event.message}"


_LINES: Final[dict[Any, Callable[[Any, State], Headline]]] = {
    ev.TaskPlanned: lambda e, _: _line(e, e.agent, e.task),
    ev.AgentLaunched: lambda e, _: _line(e, e.agent, e.task, (("attempt", e.attempt),)),
    ev.TaskCompleted: lambda e, state: _line(
        e, _agent_of(e.task, state), e.task, _figure("confidence", e.confidence)
    ),
    ev.TaskFailed: lambda e, state: _line(
        e, _agent_of(e.task, state), f"{e.task}: {e.failure.error}: {e.failure.message}"
    ),
    ev.TaskRetired: lambda e, state: _line(e, _agent_of(e.task, state), f"{e.task}: {e.outcome}"),
    ev.DecisionMade: lambda e, _: _line(
        e, e.decision.agent, e.decision.description, _figure("confidence", e.decision.confidence)
    ),
    ev.MilestoneReached: lambda e, _: _line(e, e.agent, e.step or "", _figure("progress", e.progress)),
    ev.TextEmitted: lambda e, _: _line(e, e.agent, "", (("characters", len(e.text)),)),
    ev.ConfidenceReported: lambda e, _: _line(e, e.agent, "", (("confidence", e.value),)),
    ev.Spent: lambda e, _: _line(
        e, e.agent, "", (("tokens", e.tokens_in + e.tokens_out), ("api_calls", e.api_calls))
    ),
    ev.MessagePosted: lambda e, _: _line(
        e, e.agent, _message_text(e), _figure("step", e.step_number if e.model else None)
    ),
    ev.MessageStreamed: lambda e, state: _line(
        e, _speaker_of(e.message, state), e.message, (("characters", len(e.text)),)
    ),
    ev.ToolCallChanged: lambda e, _: _line(
        e,
        e.record.agent,
        _with_reason(f"{e.record.tool}: {e.record.status}", e.record.error),
        _figure("attempt", e.record.attempts if e.record.attempts > 1 else None),
    ),
    ev.ContextContributed: lambda e, _: _line(e, e.agent, e.name),
    ev.OutputWritten: lambda e, _: _line(e, e.output.agent, e.path, (("bytes", e.output.size),)),
    ev.CriterionScored: lambda e, _: _line(e, e.agent, e.score.criterion, (("score", e.score.score),)),
    ev.EvaluationCompleted: lambda e, _: _line(e, e.agent, e.verdict.kind, (("score", e.verdict.score),)),
    ev.WaitOpened: lambda e, _: _line(e, e.agent, f"{e.waits_for}: {e.text}"),
    ev.WaitClosed: lambda e, _: _line(e, None, e.wait),
    ev.EffectIntended: lambda e, state: _line(e, _agent_of(e.details.task, state), e.details.name),
    ev.EffectSettled: lambda e, _: _line(e, None, f"{e.effect}: {e.status}"),
    ev.LimitCrossed: lambda e, _: _line(e, None, f"{e.phase or 'run'}: {e.limit} {e.allowed:g}: {e.course}"),
    ev.RunStarted: lambda e, _: _line(e, None, e.workflow.name),
    ev.PhaseStarted: lambda e, _: _line(e, None, e.phase, _figure("visit", e.visit if e.visit > 1 else None)),
    ev.PhaseCompleted: lambda e, _: _line(e, None, e.phase),
    ev.RoundStarted: lambda e, _: _line(e, None, e.phase, (("round", e.round),)),
    ev.SnapshotRequested: lambda e, _: _line(e, None, _with_reason(e.why, e.note)),
    ev.RunPaused: lambda e, _: _line(e, None, e.reason),
    ev.RunWaiting: lambda e, _: _line(e, None, e.reason),
    ev.RunResumed: lambda e, _: _line(e, None, e.reason),
    ev.RolledBack: lambda e, _: _line(e, None, e.reason, (("from", e.from_seq), ("to", e.to_seq))),
    ev.Forked: lambda e, _: _line(e, None, f"{e.from_run}@{e.from_seq}"),
    ev.DefinitionAccepted: lambda e, _: _line(e, None, e.changes),
    ev.StateEdited: lambda e, _: _line(e, None, e.path),
    ev.RunEnded: lambda e, _: _line(e, None, _with_reason(e.outcome, e.reason)),
}
assert set(_LINES) == set(get_args(ev.Event)), "BUG: every event has a line"
