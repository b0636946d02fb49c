"""`headline(event)`: an event in one line, for a snapshot's header and for people."""

from typing import assert_never

from orchestra.limits import HEADLINE_CHARS, HEADLINE_EVENTS
from orchestra.model import events as ev
from orchestra.model.snapshot import Headline
from orchestra.model.state import State


def headlines(events: tuple[ev.Event, ...], state: State) -> tuple[Headline, ...]:
    """The events of one turn in a line each; past the limit one line counts the rest.

    `state` is the one after the turn: it knows whose task a task is.
    """
    shown = tuple([headline(event, state) for event in events[:HEADLINE_EVENTS]])
    if len(events) <= HEADLINE_EVENTS:
        return shown
    rest = Headline(kind="more", figures=(("events", len(events) - HEADLINE_EVENTS),))
    return (*shown, rest)


def headline(event: ev.Event, state: State) -> Headline:
    """One event in one line."""
    match event:
        case ev.DecisionMade():
            decision = event.decision
            return _line(event, decision.agent, decision.description, confidence=decision.confidence)
        case ev.TaskPlanned() | ev.AgentLaunched() | ev.TaskCompleted() | ev.TaskFailed() | ev.TaskRetired():
            return _work(event, state)
        case ev.MilestoneReached() | ev.TextEmitted() | ev.ConfidenceReported() | ev.Spent():
            return _report(event)
        case ev.MessagePosted() | ev.MessageStreamed() | ev.ContextContributed() | ev.OutputWritten():
            return _content(event)
        case ev.CriterionScored():
            return _line(event, event.agent, event.score.criterion, score=event.score.score)
        case ev.EvaluationCompleted():
            return _line(event, event.agent, event.verdict.kind, score=event.verdict.score)
        case ev.WaitOpened():
            return _line(event, event.agent, f"{event.waits_for}: {event.text}")
        case ev.WaitClosed():
            return _line(event, None, event.wait)
        case ev.EffectIntended():
            task = state.tasks.get(event.details.task)
            return _line(event, task.agent if task is not None else None, event.details.name)
        case ev.EffectSettled():
            return _line(event, None, f"{event.effect}: {event.status}")
        case _:
            return _run(event)


def _work(
    event: ev.TaskPlanned | ev.AgentLaunched | ev.TaskCompleted | ev.TaskFailed | ev.TaskRetired, state: State
) -> Headline:
    match event:
        case ev.TaskPlanned():
            return _line(event, event.agent, event.task)
        case ev.AgentLaunched():
            return _line(event, event.agent, event.task, attempt=event.attempt)
        case _:
            task = state.tasks.get(event.task)
            return _ended(event, task.agent if task is not None else None)


def _ended(event: ev.TaskCompleted | ev.TaskFailed | ev.TaskRetired, who: str | None) -> Headline:
    match event:
        case ev.TaskCompleted():
            return _line(event, who, event.task, confidence=event.confidence)
        case ev.TaskFailed():
            return _line(event, who, f"{event.task}: {event.failure.error}: {event.failure.message}")
        case ev.TaskRetired():
            return _line(event, who, f"{event.task}: {event.outcome}")
        case _:
            assert_never(event)


def _report(event: ev.MilestoneReached | ev.TextEmitted | ev.ConfidenceReported | ev.Spent) -> Headline:
    match event:
        case ev.MilestoneReached():
            return _line(event, event.agent, event.step or "", progress=event.progress)
        case ev.TextEmitted():
            return _line(event, event.agent, "", characters=len(event.text))
        case ev.ConfidenceReported():
            return _line(event, event.agent, "", confidence=event.value)
        case ev.Spent():
            tokens = event.tokens_in + event.tokens_out
            return _line(event, event.agent, "", tokens=tokens, api_calls=event.api_calls)
        case _:
            assert_never(event)


def _content(
    event: ev.MessagePosted | ev.MessageStreamed | ev.ContextContributed | ev.OutputWritten,
) -> Headline:
    match event:
        case ev.MessagePosted():
            return _line(event, event.agent, f"{event.role} {event.message}")
        case ev.MessageStreamed():
            return _line(event, None, event.message, characters=len(event.text))
        case ev.ContextContributed():
            return _line(event, event.agent, event.name)
        case ev.OutputWritten():
            return _line(event, event.output.agent, event.path, bytes=event.output.size)
        case _:
            assert_never(event)


def _run(
    event: ev.RunStarted
    | ev.PhaseStarted
    | ev.PhaseCompleted
    | ev.RoundStarted
    | ev.SnapshotRequested
    | ev.RunPaused
    | ev.RunWaiting
    | ev.RunResumed
    | ev.RolledBack
    | ev.Forked
    | ev.DefinitionAccepted
    | ev.StateEdited
    | ev.RunEnded,
) -> Headline:
    match event:
        case ev.RunStarted():
            return _line(event, None, event.workflow.name)
        case ev.PhaseStarted() | ev.PhaseCompleted():
            return _line(event, None, event.phase)
        case ev.SnapshotRequested():
            return _line(event, None, f"{event.why}: {event.note}" if event.note else event.why)
        case ev.RoundStarted():
            return _line(event, None, event.phase, round=event.round)
        case ev.RunPaused() | ev.RunWaiting() | ev.RunResumed():
            return _line(event, None, event.reason)
        case ev.RolledBack():
            return _line(event, None, event.reason, **{"from": event.from_seq, "to": event.to_seq})
        case ev.Forked():
            return _line(event, None, f"{event.from_run}@{event.from_seq}")
        case ev.DefinitionAccepted():
            return _line(event, None, event.changes)
        case ev.StateEdited():
            return _line(event, None, event.path)
        case ev.RunEnded():
            return _line(event, None, f"{event.outcome}: {event.reason}" if event.reason else event.outcome)
        case _:
            assert_never(event)


def _line(event: ev.Event, who: str | None, what: str, **figures: int | float | None) -> Headline:
    known = [(name, figure) for name, figure in figures.items() if figure is not None]
    return Headline(kind=event.kind, who=who, what=what[:HEADLINE_CHARS], figures=tuple(known))
