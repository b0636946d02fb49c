"""What one turn gathers: events, what is decided because of them, and who waits for them to be durable."""

import asyncio
from collections.abc import Callable
from typing import Any

from orchestra.engine.board import Board
from orchestra.engine.rules.decide import decide
from orchestra.engine.rules.moves import NOTHING, Move, Rollback, failed_end, only_launches
from orchestra.engine.view import View
from orchestra.errors import BadExpression, ValueRefused
from orchestra.ids import Instant
from orchestra.limits import TURN_MOVES
from orchestra.model import events as ev
from orchestra.model.apply.apply import change
from orchestra.model.state import Draft


class Turn:
    """What one turn gathers."""

    def __init__(self, view: View, board: Board) -> None:
        """`view` is of the state before the turn."""
        self.state = Draft.of(view.state)
        self.view = view.of(self.state)  # as it is now
        self.events: list[ev.Event] = []
        self.answers: list[tuple[asyncio.Future[Any], Any]] = []
        self.consumed: list[int] = []
        self.rollback: Rollback | None = None
        self.board = board

    def add(self, *events: ev.Event) -> None:
        """Things happened: the state and the board follow; raises `IllegalEvent` and changes nothing."""
        change(self.state, events)
        self.events.extend(events)
        self.board.note(events)
        if self.state.cursor is not self.view.cursor:
            self.view = self.view.of(self.state)


def settle(turn: Turn, now: Callable[[], Instant]) -> Move:
    """Decide and apply until there is nothing more to decide, or the run is to go back; the last move."""
    for _ in range(TURN_MOVES):
        if turn.rollback is not None:
            return NOTHING
        try:
            move = decide(turn.view, turn.board, now())
            turn.rollback = move.rollback
            turn.add(*move.events)
        except (ValueRefused, BadExpression) as error:
            # What was decided cannot be: no reason to crash. The run is on record, and can be resumed.
            turn.add(failed_end(now(), str(error), error=type(error).__name__))
            return NOTHING
        if not move.events:
            return move
        if only_launches(move.events):
            return NOTHING if move.wake is None else Move(wake=move.wake)
    return Move(wake=now())
