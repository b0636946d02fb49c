"""Following a run: its open spans, what was measured of it, and what of that is still to be written.

The loop follows and adds; the sink's thread takes and writes. They share lists without a lock: adding to the
end of a list and removing from its beginning are each one step for the interpreter.
"""

from time import monotonic
from typing import Final, TypeVar

from orchestra.ids import RunId
from orchestra.limits import TELEMETRY_METRICS_SECONDS
from orchestra.model import events as ev
from orchestra.ports.sink import CheckpointFailed, CheckpointLarge, CheckpointSaved, Notice, TurnRecorded
from orchestra.telemetry.metrics import Figures
from orchestra.telemetry.records import Span
from orchestra.telemetry.tracing import Redact, RunTrace

T = TypeVar("T")
_UPSETS: Final[frozenset[type[ev.Event]]] = frozenset({ev.RunResumed, ev.RolledBack})
"""What a recovery begins with."""


class FollowedRun:
    """A run while it goes on."""

    def __init__(self, notice: Notice, redact: Redact) -> None:
        at = notice.header.at if isinstance(notice, TurnRecorded) else notice.at
        self._trace = RunTrace(notice.run, "", redact)
        self._measuring: Figures | None = None
        self._until = at  # which is told of
        self._recovering = False
        self._measured = monotonic()
        self.spans: list[str] = []  # that were ended, as they are written
        self.figures: list[Figures] = []  # that are to be written
        self.crashed: list[TurnRecorded] = []  # the turns with which it was taken up after its process died
        self.is_waiting = False  # for the sink's thread
        self.is_written = False  # anything of it

    @property
    def run(self) -> RunId:
        return self._trace.run

    @property
    def workflow(self) -> str:
        return self._trace.workflow

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is open."""
        return self._trace.is_idle

    @property
    def has_news(self) -> bool:
        """Whether there is something to write."""
        return bool(self.spans or self.figures or self.crashed)

    def take(self, notice: Notice) -> list[Span]:
        """Follow what happened; the spans that were ended by it."""
        match notice:
            case TurnRecorded():
                return self._turn(notice)
            case CheckpointSaved():
                self._figures().count_saved(notice)
                self._trace.note_saved(notice)
            case CheckpointFailed():
                self._figures().failed += 1
                self._trace.note_failed(notice)
                if self._trace.is_idle:  # no turn comes that it would be told with
                    self._measure()
            case CheckpointLarge():  # its size is measured when it is saved
                pass
        return []

    def close(self) -> list[Span]:
        """The process goes: end what is open."""
        self._measure()
        return self._trace.close()

    def _turn(self, turn: TurnRecorded) -> list[Span]:
        trace = self._trace
        trace.workflow = turn.state.workflow.name
        if self._recovering or not _UPSETS.isdisjoint(map(type, turn.events)):
            self._recovery(turn)
        ended = trace.take_turn(turn)
        if trace.is_idle or monotonic() - self._measured > TELEMETRY_METRICS_SECONDS:
            self._measure()
        return ended

    def _measure(self) -> None:
        """Have written what was measured, which from now on is measured anew."""
        figures, self._measuring, self._measured = self._measuring, None, monotonic()
        if figures is not None and not figures.is_empty:
            self._until = figures.until
            self.figures.append(figures)

    def _figures(self) -> Figures:
        """What is measured now."""
        if self._measuring is None:
            self._measuring = Figures(self._until, self._until)
        return self._measuring

    def _recovery(self, turn: TurnRecorded) -> None:
        """Follow recoveries: one has held when work was finished after it."""
        figures = self._figures()
        for event in turn.events:
            match event:
                case ev.RunResumed(recovered=True) | ev.RolledBack():
                    figures.lost += self._recovering
                    self._recovering = True
                    if isinstance(event, ev.RunResumed):
                        self.crashed.append(turn)
                case ev.TaskCompleted() | ev.PhaseCompleted() | ev.RunEnded(outcome="completed"):
                    figures.recovered += self._recovering
                    self._recovering = False
                case ev.RunEnded(outcome="failed"):
                    figures.lost += self._recovering
                    self._recovering = False
                case _:
                    pass


def drain_list(held: list[T]) -> list[T]:
    """What is in a list, taken out of it; others may add to its end meanwhile."""
    found = held[:]
    del held[: len(found)]
    return found
