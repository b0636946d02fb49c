"""`apply(state, event)`: the next state. Pure: no clock, no chance, no input or output.

An event that does not fit the state it meets raises `IllegalEvent` and changes nothing; that is how
a late result of a retired attempt is refused.
"""

from collections.abc import Iterable
from typing import assert_never

from orchestra.errors import IllegalEvent
from orchestra.model import apply_run, apply_work
from orchestra.model import events as ev
from orchestra.model.checked import check_event
from orchestra.model.evolve import evolve
from orchestra.model.state import State
from orchestra.model.texts import check_texts


def begin(event: ev.RunStarted) -> State:
    """The first state of a run."""
    check_event(event, event.run)
    return apply_run.started(event)


def apply(state: State, event: ev.Event) -> State:
    """The state after `event`; raises `IllegalEvent`."""
    return apply_all(state, (event,))


def apply_all(state: State, events: Iterable[ev.Event]) -> State:
    """The state after all `events`, in order; raises `IllegalEvent`."""
    at = state.updated_at
    for event in events:
        check_event(event, state.run)
        check_texts(state, event)
        state, at = _apply(state, event), event.at
    return state if state.updated_at == at else evolve(state, updated_at=at)


def _apply(state: State, event: ev.Event) -> State:
    match event:
        case ev.TaskPlanned() | ev.AgentLaunched() | ev.MilestoneReached() | ev.TextEmitted():
            return apply_work.agent_event(state, event)
        case ev.TaskCompleted() | ev.TaskFailed() | ev.TaskRetired():
            return apply_work.task_event(state, event)
        case ev.DecisionMade() | ev.ConfidenceReported() | ev.CriterionScored() | ev.EvaluationCompleted():
            return apply_work.judgement(state, event)
        case ev.MessagePosted() | ev.MessageStreamed() | ev.ContextContributed() | ev.OutputWritten():
            return apply_work.content(state, event)
        case ev.WaitOpened() | ev.WaitClosed() | ev.EffectIntended() | ev.EffectSettled():
            return apply_run.wait_or_effect(state, event)
        case (
            ev.PhaseStarted() | ev.PhaseCompleted() | ev.RoundStarted() | ev.Spent() | ev.SnapshotRequested()
        ):
            return apply_run.progress(state, event)
        case (
            ev.RunPaused() | ev.RunWaiting() | ev.RunResumed() | ev.RolledBack() | ev.Forked() | ev.RunEnded()
        ):
            return apply_run.life(state, event)
        case ev.DefinitionAccepted() | ev.StateEdited():
            return apply_run.edited(state, event)
        case ev.RunStarted():
            raise IllegalEvent(kind=event.kind, run=state.run, reason="the run has started already")
        case _:
            assert_never(event)
