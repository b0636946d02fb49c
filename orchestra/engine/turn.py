"""What one turn gathers: events, the state they lead to, and who waits for them to be durable."""

import asyncio
from typing import Any

from orchestra.engine.board import Board
from orchestra.engine.moves import Rollback
from orchestra.engine.view import View
from orchestra.model import events as ev
from orchestra.model.apply import change
from orchestra.model.draft import Draft


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
