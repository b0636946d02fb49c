"""The shapes of answers to actions: what one would mean, and what came of it."""

from typing import Literal

from typing_extensions import TypedDict

from orchestra.web.shapes.common import PlaceOut


class PlannedOut(TypedDict):
    """What an action would mean."""

    action: Literal["fork", "resume", "rollback", "replay"]
    run: str
    at: int
    to: int | None
    phase: str | None
    undone: list[str]
    kept: list[str]
    again: list[str]
    effects: list[str]
    tokens: int
    cost_micros: int
    sentences: list[str]


class BegunOut(TypedDict):
    """A run, and whether it is played by this process."""

    run: str
    playing: bool


class WentBackOut(BegunOut):
    """A run that went back, and where to."""

    to: int


class OrderedOut(BegunOut):
    """A run after an order."""

    status: str
    standing: str


class PinnedOut(PlaceOut):
    """A snapshot and what its pin says, if it has one."""

    pin: str | None


class NotedOut(PlaceOut):
    """A snapshot and its note, if it has one."""

    note: str | None


class RestoredOut(TypedDict):
    """That a run was restored."""

    success: bool
    message: str


class NotRestoredOut(TypedDict):
    """That a run could not be restored."""

    error: str
