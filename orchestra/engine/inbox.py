"""The inbox of a run: what has arrived since its last turn, in order of arrival."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any, TypeAlias

import attrs

from orchestra.limits import STREAM_SECONDS, TEXT_CHARS
from orchestra.ports.agent import Confident, Emitted, Judgement, Report, Result


@attrs.frozen
class Said:
    """An agent reported something; `answer` is who waits for it to be taken in."""

    attempt: Any
    report: Report
    answer: "asyncio.Future[Any] | None" = None
    is_held: bool = False  # it was looked at before, and waits


@attrs.frozen
class Finished:
    """An attempt ended: with a result, with the error it ended with, or because it was stopped."""

    attempt: Any
    outcome: Result | Judgement | BaseException | None


@attrs.frozen
class Ordered:
    """A person wants something of the run."""

    id: int | None  # of the command in the store; None: from this process
    order: Any
    answer: "asyncio.Future[Any] | None" = None


@attrs.frozen
class Stored:
    """An output was written and is to enter the state."""

    attempt: Any
    path: str
    content: bytes
    media_type: str
    where: str  # the file
    answer: "asyncio.Future[Any]"


@attrs.frozen
class Due:
    """A snapshot for its own sake is due."""

    why: str
    note: str = ""


Arrival: TypeAlias = Said | Finished | Ordered | Stored | Due


class Inbox:
    """Arrivals, and a way to wait for them. Belongs to one loop and is used on its thread."""

    def __init__(self, watched: Sequence[float] = ()) -> None:
        self._watched = watched  # thresholds of confidence
        self._items: list[Arrival] = []
        self._more: list[str] = []  # text that goes on from the last arrival
        self._more_chars = 0
        self._waiter: asyncio.Future[None] | None = None
        self._patience: float | None = None  # until when those who can wait may wait
        self._woken = False
        self._alarm: asyncio.TimerHandle | None = None  # it may stay set from one wait to the next

    def __bool__(self) -> bool:
        return bool(self._items)

    def post(self, arrival: Arrival) -> None:
        """Something arrived; the next turn should take it now."""
        if self._more:
            self._join()
        self._items.append(arrival)
        self.wake()

    def leave(self, arrival: Arrival) -> None:
        """Something arrived that may wait for the next turn, a second at most."""
        last = self._items[-1] if self._items else None
        if _goes_on(last, arrival, Emitted):
            if self._more_chars < 2 * TEXT_CHARS:  # what is far beyond all that is kept is left out
                self._more.append(arrival.report.text)  # type: ignore[union-attr]
                self._more_chars += len(self._more[-1])
            return
        if self._more:
            self._join()
        if _goes_on(last, arrival, Confident):
            one, other = last.report.value, arrival.report.value  # type: ignore[union-attr]
            if not any((one < mark) != (other < mark) for mark in self._watched):  # between which both count
                self._items[-1] = arrival  # how sure it is now; its last word counts
                return
        self._items.append(arrival)
        if self._patience is None:
            self._patience = monotonic() + STREAM_SECONDS
            if self._waiter is not None:
                asyncio.get_running_loop().call_later(STREAM_SECONDS, self.wake)

    def _join(self) -> None:
        last = self._items[-1]
        assert isinstance(last, Said), "BUG: only reports carry text"
        assert isinstance(last.report, Emitted), "BUG: only a text goes on"
        self._items[-1] = Said(last.attempt, Emitted(text=last.report.text + "".join(self._more)))
        self._more, self._more_chars = [], 0

    def wake(self) -> None:
        """Let the run look again, also when nothing arrived."""
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> list[Arrival]:
        if self._more:
            self._join()
        taken, self._items, self._patience, self._woken = self._items, [], None, False
        return taken

    def take_turn(self) -> list[Arrival]:
        """What the next turn takes in: all that stands before the first command of the store, or that alone.

        A commit is refused whole when its command was taken back: nothing may be in it that others count on.
        """
        commands = (
            n for n, each in enumerate(self._items) if isinstance(each, Ordered) and each.id is not None
        )
        end = next(commands, len(self._items)) or 1
        taken = self.take()
        if len(taken) > end:
            self._items, self._woken = taken[end:], True
        return taken[:end]

    async def wait(self, seconds: float | None = None) -> None:
        """Until something arrives that cannot wait, or so many seconds at most."""
        if self._woken:
            await asyncio.sleep(0)  # siblings that are about to end may still join the turn
            return
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        if self._patience is not None:
            left = max(0.0, self._patience - monotonic())
            seconds = left if seconds is None else min(seconds, left)
        if seconds is not None:
            self._set_alarm(loop, loop.time() + max(0.0, seconds))
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        """Wake up then at the latest. An alarm for a time before stays: to look once more costs less."""
        if self._alarm is not None:
            if self._alarm.when() <= when:
                return
            self._alarm.cancel()
        self._alarm = loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    def close(self) -> None:
        """Nobody waits any more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def _goes_on(last: Arrival | None, arrival: Arrival, kind: type[Report]) -> bool:
    """Whether an agent says more of the same kind, with nothing in between, and nobody waits for it."""
    return (
        isinstance(last, Said)
        and isinstance(arrival, Said)
        and isinstance(last.report, kind)
        and isinstance(arrival.report, kind)
        and last.attempt is arrival.attempt
        and last.answer is None
    )
