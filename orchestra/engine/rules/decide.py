"""`decide(view, board, now)`: what Atlas does next. Pure: a state, its workflow and the time in, a move out.

It is asked again and again until it has nothing more to say; each answer is applied before the next is asked
for. The rules below are tried in order, and the first that has something to do wins.
"""

from collections.abc import Callable
from typing import Final

import attrs

from orchestra.engine.board import Board
from orchestra.engine.rules.errands import outdated_errands
from orchestra.engine.rules.failure import failures
from orchestra.engine.rules.kept_items import outdated_items
from orchestra.engine.rules.launch import breakpoint_events, errand_launches, launches
from orchestra.engine.rules.moves import HOLD, NOTHING, Move, failed_end
from orchestra.engine.rules.phase_end import close, leave
from orchestra.engine.view import View
from orchestra.ids import Instant
from orchestra.model import events as ev

Rule = Callable[[View, Board, Instant], Move]


def decide(view: View, board: Board, now: Instant) -> Move:
    """The next move; an empty one when there is nothing to do but wait."""
    if view.state.status != "running":
        return NOTHING
    board.refresh(view)
    wake: Instant | None = None
    for rule in RULES:
        move = rule(view, board, now)
        if move is NOTHING:
            continue
        wake = _sooner(wake, move.wake)
        if move.events or move.rollback or move.hold:
            return move if wake == move.wake else attrs.evolve(move, wake=wake)
    return NOTHING if wake is None else Move(wake=wake)


def _sooner(one: Instant | None, other: Instant | None) -> Instant | None:
    return one if other is None else other if one is None else min(one, other)


def enter(view: View, _board: Board, now: Instant) -> Move:
    """A run begins with the first phase."""
    if view.phase is not None:
        return NOTHING
    return Move(events=(ev.PhaseStarted(at=now, phase=view.workflow.phases[0].id),))


def timers(view: View, board: Board, now: Instant) -> Move:
    """Waits that end by themselves end when their time has come."""
    if not board.open_waits:
        return NOTHING
    wake: Instant | None = None
    events: list[ev.Event] = []
    for name in board.open_waits:
        wait = view.state.waits[name]
        if wait.until is None:
            continue
        if wait.until <= now or now < wait.opened_at:  # a clock that was set back must not prolong it
            events.append(ev.WaitClosed(at=now, wait=name))
        else:
            wake = _sooner(wake, wait.until)
    return Move(events=tuple(events), wake=wake)


def phase_limit(view: View, board: Board, now: Instant) -> Move:
    """A phase that takes longer than it may ends the run."""
    phase, path = view.phase, view.state.path
    if phase is None or phase.timeout_us is None or not path:
        return NOTHING
    started = path[len(path) - 1].started_at
    if not board.since <= started <= now:  # time in which nobody played, or told by another clock
        started = board.since
    due = Instant(started + phase.timeout_us)
    if due > now:
        return Move(wake=due)
    reason = f"phase {phase.id} took longer than {phase.timeout_us / 1_000_000:g} s"
    return Move(events=(failed_end(now, reason, error="PhaseTimeout"),))


def breakpoints(view: View, board: Board, now: Instant) -> Move:
    """A run waits at a breakpoint before a phase until somebody lets it go on."""
    if view.phase is None or not view.phase.breakpoint:
        return NOTHING
    opened = breakpoint_events(view, board, now, before=f"phase {view.phase.id}")
    return NOTHING if opened is None else Move(events=opened) if opened else HOLD


RULES: Final[tuple[Rule, ...]] = (
    enter,
    leave,
    timers,
    phase_limit,
    breakpoints,
    outdated_errands,
    errand_launches,
    failures,
    outdated_items,
    launches,
    close,
)
