"""The telemetry sink: notices become spans, and spans become text, at once; a thread of its own writes it.

Following a turn takes microseconds while it is at hand. Turns handed over whole would keep their states alive
until the thread gets to them, and cost both threads more than either: they share one interpreter.
"""

import logging
import os
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Final, TypeVar

from orchestra.background import BackgroundWriter, append
from orchestra.errors import OrchestraError
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import (
    TELEMETRY_CLOSE_SECONDS,
    TELEMETRY_EXPORT_SECONDS,
    TELEMETRY_METRICS_SECONDS,
    TELEMETRY_SPANS,
    TELEMETRY_STORE_FILES,
)
from orchestra.model import events as ev
from orchestra.ports.sink import CheckpointFailed, CheckpointLarge, CheckpointSaved, Notice, TurnRecorded
from orchestra.telemetry import names
from orchestra.telemetry.collector import OtlpCollector
from orchestra.telemetry.metrics import Figures, Metric
from orchestra.telemetry.otlp_text import metric_text, request, span_text
from orchestra.telemetry.records import Attributes, Span
from orchestra.telemetry.tracing import Redact, RunTrace, interrupted_spans

T = TypeVar("T")
_LOG: Final = logging.getLogger("orchestra.telemetry")
_AHEAD: Final[frozenset[type[Notice]]] = frozenset({CheckpointSaved, CheckpointLarge})
"""Notices after which the turn comes that they are of."""
_UPSETS: Final[frozenset[type[ev.Event]]] = frozenset({ev.RunResumed, ev.RolledBack})
"""What a recovery begins with."""


class FollowedRun:
    """A run while it goes on: its open spans, what was measured of it, and what is still to be written.

    The loop follows and adds; the sink's thread takes and writes. They share lists without a lock: adding to
    the end of a list and removing from its beginning are each one step for the interpreter.
    """

    def __init__(self, notice: Notice, redact: Redact, *, content: bool = False) -> None:
        at = notice.header.at if isinstance(notice, TurnRecorded) else notice.at
        self.trace = RunTrace(notice.run, "", redact, content=content)
        self._measuring: Figures | None = None
        self._until = at  # which is told of
        self._recovering = False
        self._measured = monotonic()
        self.spans: list[str] = []  # that were ended, as they are written
        self.figures: list[Figures] = []  # that are to be written
        self.crashed: list[TurnRecorded] = []  # the turns with which it was taken up after its process died
        self.is_waiting = False  # for the sink's thread
        self.is_written = False  # anything of it

    def take(self, notice: Notice) -> list[Span]:
        """Follow what happened; the spans that were ended by it."""
        match notice:
            case TurnRecorded():
                return self._turn(notice)
            case CheckpointSaved():
                self._figures().count_saved(notice)
                self.trace.saved = notice
            case CheckpointFailed():
                self._figures().failed += 1
                self.trace.note_failed(notice)
                if self.trace.is_idle:  # no turn comes that it would be told with
                    self._measure()
            case CheckpointLarge():  # its size is measured when it is saved
                pass
        return []

    def close(self) -> list[Span]:
        """The process goes: end what is open."""
        self._measure()
        return self.trace.close()

    def _turn(self, turn: TurnRecorded) -> list[Span]:
        trace = self.trace
        trace.workflow = turn.state.workflow.name
        if self._recovering or not _UPSETS.isdisjoint(map(type, turn.events)):
            self._recovery(turn)
        for event in turn.events:
            if (
                type(event) is ev.MessagePosted
                and event.status == "complete"
                and event.generation is not None
            ):
                self._figures().count_request(event.generation, event.at)
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


class TelemetrySink:
    """Writes `OUTPUTS/RUN/telemetry/otlp.jsonl`, and sends the same to a collector when there is one.

    Close it before the store is closed.
    """

    def __init__(
        self,
        outputs: Path,
        *,
        redact: Redact = str,
        collector: OtlpCollector | None = None,
        content: bool = False,
    ) -> None:
        """`content` has spans tell what was said: messages, arguments and results."""
        self._outputs = str(outputs)
        self._redact, self._collector, self._content = redact, collector, content
        self._archive: Archive | None = None
        self._runs: dict[RunId, FollowedRun] = {}
        self._totals: dict[str, Figures] = {}
        self._ended, self._written, self._dropped = 0, 0, 0  # spans
        self._sent = monotonic()
        self._troubled = False
        self._background = BackgroundWriter[FollowedRun]("orchestra-telemetry", self._work)

    def bind(self, archive: Archive) -> None:
        """Say where what an interrupted process left behind can be read."""
        # An archive of its own: it is read from the sink's thread.
        self._archive = Archive(archive.store, archive.framer)

    def notice(self, notice: Notice, /) -> None:
        run = self._runs.get(notice.run)
        if run is None:
            run = self._runs[notice.run] = FollowedRun(notice, self._redact, content=self._content)
        try:
            self._end(run, run.take(notice))
        except Exception:  # one odd notice must not take the others with it
            _LOG.exception("run %s: a notice was not understood", notice.run)
        if type(notice) in _AHEAD:
            return
        was_handed_over = self._hand_over(run)
        if run.trace.is_idle:
            del self._runs[notice.run]
            if not was_handed_over:
                self._ended -= len(run.spans)  # nobody will write them
                self._dropped += len(run.spans)

    def _hand_over(self, run: FollowedRun) -> bool:
        """Have what is new of a run written by the sink's thread; False when too much waits for it."""
        if run.is_waiting or not (run.spans or run.figures or run.crashed):
            return True
        run.is_waiting = True  # before it is put: the thread may be done with it before `put` returns
        if self._background.put(run):
            return True
        run.is_waiting = False
        return False

    def flush(self, seconds: float = TELEMETRY_CLOSE_SECONDS) -> bool:
        """Wait until everything that was noticed is written to files; whether it is."""
        return self._background.flush(seconds)

    def close(self, seconds: float = TELEMETRY_CLOSE_SECONDS) -> None:
        """Write what is waiting, end what is open, wait a little for the collector. Idempotent."""
        until = monotonic() + seconds
        if not self._background.close(seconds):
            _LOG.warning("telemetry: not everything was written in %.0f s", seconds)
            return
        for run in self._runs.values():
            self._end(run, run.close())
            self._write(run)
        self._runs.clear()
        if self._dropped:
            _LOG.warning("telemetry: %d spans were left out", self._dropped)
            self._dropped = 0
        if self._collector is not None:
            self._send_totals()
            self._collector.close(until - monotonic())

    def _end(self, run: FollowedRun, spans: list[Span]) -> None:
        if not spans:
            return
        if self._collector is not None:
            self._collector.send(spans)
        if self._ended - self._written > TELEMETRY_SPANS:
            self._dropped += len(spans)
            return
        run.spans.extend(map(span_text, spans))
        self._ended += len(spans)

    # On the sink's own thread.

    def _work(self, batch: list[FollowedRun]) -> None:
        for run in batch:
            self._write(run)
        if monotonic() - self._sent > TELEMETRY_EXPORT_SECONDS:
            self._sent = monotonic()
            self._send_totals()

    def _write(self, run: FollowedRun) -> None:
        run.is_waiting = False  # before taking, so that nothing added meanwhile is forgotten
        spans = drain_list(run.spans)
        self._written += len(spans)
        lost = [span for turn in drain_list(run.crashed) for span in self._interrupted_spans(turn)]
        if lost and self._collector is not None:
            self._collector.send(lost)
        told = [*map(span_text, lost), *spans]
        metrics = list[Metric]()
        workflow = run.trace.workflow
        about: Attributes = {names.RUN: run.trace.run, names.WORKFLOW: workflow}
        for figures in drain_list(run.figures):
            metrics += figures.metrics(about, storage=self._storage(), cumulative=False)
            if self._collector is not None:
                self._totals.setdefault(workflow, Figures(figures.since, figures.until)).add(figures)
        lines = request("Spans", told) if told else ""
        if metrics:
            lines += request("Metrics", list(map(metric_text, metrics)))
        if not lines:
            return
        try:
            append(
                f"{self._outputs}/{run.trace.run}/{names.FOLDER}/{names.FILE}", lines, new=not run.is_written
            )
            run.is_written = True
        except OSError as error:
            if not self._troubled:
                self._troubled = True
                _LOG.warning("telemetry cannot be written: %s; runs go on without it", error)

    def _interrupted_spans(self, turn: TurnRecorded) -> list[Span]:
        """What the process that died before a turn could not end any more."""
        if self._archive is None:
            return []
        try:
            return interrupted_spans(self._archive, turn.run, turn.state.workflow.name, turn.header.seq)
        except OrchestraError as error:  # the store may be damaged or gone; the trace lacks some spans then
            _LOG.warning("run %s: what was interrupted cannot be told: %s", turn.run, error)
        except Exception:
            _LOG.warning("run %s: what was interrupted cannot be told", turn.run, exc_info=True)
        return []

    def _send_totals(self) -> None:
        if self._collector is None:
            return
        storage = self._storage()
        for workflow, figures in deepcopy(self._totals).items():  # which go on counting
            self._collector.send(
                figures.metrics({names.WORKFLOW: workflow}, storage=storage, cumulative=True)
            )
            storage = None  # once is enough

    def _storage(self) -> int | None:
        return None if self._archive is None else _store_bytes(self._archive.store.place, int(monotonic()))


@lru_cache(maxsize=4)
def _store_bytes(place: str, _second: int) -> int | None:
    """What a store takes up on this machine, not measured more than once a second; None when unknown."""
    path = Path(place)
    if path.is_file():
        beside = (path, path.with_name(path.name + "-wal"))
        return sum(each.stat().st_size for each in beside if each.exists())
    if not path.is_dir():
        return None
    total, seen = 0, 0
    for folder, _, files in os.walk(path):
        total += sum(Path(folder, name).stat().st_size for name in files)
        seen += len(files)
        if seen > TELEMETRY_STORE_FILES:
            return None
    return total
