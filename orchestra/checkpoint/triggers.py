"""Triggers: why a snapshot was taken, worked out from the events of a turn."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.model import events as ev
from orchestra.model.apply.work import OVERALL
from orchestra.model.records import WaitKind
from orchestra.model.snapshot import TRIGGERS, Trigger
from orchestra.model.state import State

_BY_KIND: Final[dict[type[ev.Event], Trigger]] = {
    ev.RunStarted: "run_started",
    ev.PhaseStarted: "phase_start",
    ev.PhaseCompleted: "phase_completed",
    ev.AgentLaunched: "agent_launched",
    ev.MilestoneReached: "milestone",
    ev.TextEmitted: "milestone",
    ev.MessageStreamed: "milestone",
    ev.ToolCallChanged: "milestone",
    ev.TaskCompleted: "specialist_finished",
    ev.TaskFailed: "error_encountered",
    ev.CriterionScored: "evaluation_completed",
    ev.EvaluationCompleted: "evaluation_completed",
    ev.DecisionMade: "decision",
    ev.RunPaused: "paused",
    ev.RolledBack: "rolled_back",
    ev.Forked: "forked",
}
_BY_WAIT: Final[dict[WaitKind, Trigger]] = {
    "question": "user_question",
    "dependency": "dependency_request",
    "rate_limit": "rate_limited",
    "pause": "paused",
    "breakpoint": "debug_breakpoint",
}
_BY_CONTENT: Final[frozenset[type[ev.Event]]] = frozenset(
    {
        ev.WaitOpened,
        ev.EffectIntended,
        ev.MessagePosted,
        ev.ToolCallChanged,
        ev.SnapshotRequested,
        ev.RunResumed,
        ev.RunEnded,
    }
)
"""Events of which the kind alone does not tell the trigger."""
_ORDER: Final = {trigger: place for place, trigger in enumerate(TRIGGERS)}


def triggers_of(
    before: State | None, after: State, events: Sequence[ev.Event], settings: CheckpointSettings
) -> tuple[Trigger, ...]:
    """Every trigger of a turn, in the order of the list of triggers."""
    kinds = frozenset(map(type, events))
    found = set(_by_kind(kinds))
    if not _BY_CONTENT.isdisjoint(kinds):
        for event in events:
            found.update(_of_event(event))
    if before is not None:
        if _is_threshold_crossed(before, after):
            found.add("confidence_threshold_crossed")
        every = settings.interval
        if every > 0 and after.completed_tasks // every > before.completed_tasks // every:
            found.add("interval")
    return _sorted(frozenset(found))


@lru_cache(maxsize=1024)
def _by_kind(kinds: frozenset[type[ev.Event]]) -> frozenset[Trigger]:
    """The triggers of events of which the kind alone tells. There are few sets of kinds, in all turns."""
    return frozenset(_BY_KIND[kind] for kind in kinds if kind in _BY_KIND)


@lru_cache(maxsize=1024)
def _sorted(triggers: frozenset[Trigger]) -> tuple[Trigger, ...]:
    return tuple(sorted(triggers, key=_ORDER.__getitem__))


def is_marked(triggers: Sequence[Trigger], settings: CheckpointSettings) -> bool:
    """Whether a snapshot with these triggers is shown first and kept by retention."""
    return "interval" in triggers or not settings.on.isdisjoint(triggers)


def _of_event(event: ev.Event) -> Iterator[Trigger]:
    """The trigger of an event of which the kind alone does not tell it."""
    match event:
        case ev.WaitOpened() if event.waits_for in _BY_WAIT:
            yield _BY_WAIT[event.waits_for]
        case ev.EffectIntended() if event.details.risky:
            yield "before_risky_operation"
        case ev.MessagePosted() if event.generation is not None and event.status == "complete":
            yield "milestone"
        case ev.ToolCallChanged() if event.record.risky and event.record.status in ("waiting", "started"):
            yield "before_risky_operation"
        case ev.SnapshotRequested():
            yield event.why
        case ev.RunResumed() if event.recovered:
            yield "recovered"
        case ev.RunEnded():
            yield event.outcome
        case _:
            pass


def _is_threshold_crossed(before: State, after: State) -> bool:
    """Whether an agent's or the overall confidence passed a threshold; who said nothing yet is sure."""
    known = len(before.confidence.history)
    if not after.confidence.thresholds or len(after.confidence.history) <= known:
        return False
    last: dict[str, float] = {}
    for sample in after.confidence.history[known:]:
        earlier = last[sample.agent] if sample.agent in last else _confidence_before(before, sample.agent)
        if any((earlier < mark) != (sample.value < mark) for mark in after.confidence.thresholds):
            return True
        last[sample.agent] = sample.value
    return False


def _confidence_before(before: State, agent: str) -> float:
    held = before.agents.get(agent)
    said = before.confidence.overall if agent == OVERALL else held.confidence if held is not None else None
    return 1.0 if said is None else said
