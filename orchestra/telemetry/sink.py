"""The telemetry sink: notices become spans, and spans become text, at once; a thread of its own writes it.

Following a turn takes microseconds while it is at hand. Turns handed over whole would keep their states alive
until the thread gets to them, and cost both threads more than either: they share one interpreter.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

from orchestra.errors import OrchestraError
from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import (
    TELEMETRY_CLOSE_SECONDS,
    TELEMETRY_EXPORT_SECONDS,
    TELEMETRY_SPANS,
    TELEMETRY_STORE_FILES,
)
from orchestra.ports.sink import CheckpointLarge, CheckpointSaved, Notice, TurnRecorded
from orchestra.telemetry import names
from orchestra.telemetry.background import BackgroundWriter
from orchestra.telemetry.collector import OtlpCollector
from orchestra.telemetry.files import TelemetryFiles
from orchestra.telemetry.followed_run import FollowedRun, drain_list
from orchestra.telemetry.interrupted import interrupted_spans
from orchestra.telemetry.metrics import Figures
from orchestra.telemetry.otlp_text import metric_text, request, span_text
from orchestra.telemetry.records import Attributes, Metric, Span

_LOG: Final = logging.getLogger("orchestra.telemetry")
_AHEAD: Final[frozenset[type[Notice]]] = frozenset({CheckpointSaved, CheckpointLarge})
"""Notices after which the turn comes that they are of."""


class TelemetrySink:
    """Writes `OUTPUTS/RUN/telemetry/otlp.jsonl`, and sends the same to a collector when there is one.

    Close it before the store is closed.
    """

    def __init__(
        self, outputs: Path, *, redact: Callable[[str], str] = str, collector: OtlpCollector | None = None
    ) -> None:
        self._files = TelemetryFiles(outputs)
        self._redact, self._collector = redact, collector
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
        """Take note."""
        run = self._runs.get(notice.run)
        if run is None:
            run = self._runs[notice.run] = FollowedRun(notice, self._redact)
        try:
            self._end(run, run.take(notice))
        except Exception:  # one odd notice must not take the others with it
            _LOG.exception("run %s: a notice was not understood", notice.run)
        if type(notice) in _AHEAD:
            return
        was_handed_over = self._hand_over(run)
        if run.is_over:
            del self._runs[notice.run]
            if not was_handed_over:
                self._ended -= len(run.spans)  # nobody will write them
                self._dropped += len(run.spans)

    def _hand_over(self, run: FollowedRun) -> bool:
        """Have what is new of a run written by the sink's thread; False when too much waits for it."""
        if run.is_waiting or not run.has_news:
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
        """Have spans written that were ended."""
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
        """Write down what is told of one run."""
        run.is_waiting = False  # before taking, so that nothing added meanwhile is forgotten
        spans = drain_list(run.spans)
        self._written += len(spans)
        lost = [span for turn in drain_list(run.crashed) for span in self._interrupted_spans(turn)]
        if lost and self._collector is not None:
            self._collector.send(lost)
        told = [*map(span_text, lost), *spans]
        metrics = [metric for figures in drain_list(run.figures) for metric in self._metrics_of(run, figures)]
        lines = request("Spans", told) if told else ""
        if metrics:
            lines += request("Metrics", list(map(metric_text, metrics)))
        if not lines:
            return
        try:
            self._files.append(run.run, lines, new=not run.is_written)
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

    def _metrics_of(self, run: FollowedRun, figures: Figures) -> list[Metric]:
        if self._collector is not None:
            self._totals.setdefault(run.workflow, Figures(figures.since, figures.until)).add(figures)
        about: Attributes = {names.RUN: run.run, names.WORKFLOW: run.workflow}
        return figures.metrics(about, storage=self._storage(), cumulative=False)

    def _send_totals(self) -> None:
        if self._collector is None:
            return
        storage = self._storage()
        for place, (workflow, figures) in enumerate(self._totals.items()):
            about: Attributes = {names.WORKFLOW: workflow}
            once = storage if place == 0 else None
            self._collector.send(figures.metrics(about, storage=once, cumulative=True))

    def _storage(self) -> int | None:
        return None if self._archive is None else store_bytes(self._archive.store.place)


_SIZES: dict[str, tuple[float, int | None]] = {}


def store_bytes(place: str) -> int | None:
    """What a store takes up on this machine, not measured more than once a second; None when unknown."""
    known = _SIZES.get(place)
    if known is None or monotonic() - known[0] > 1.0:
        known = _SIZES[place] = (monotonic(), _bytes(Path(place)))
    return known[1]


def _bytes(path: Path) -> int | None:
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
