"""The telemetry sink: notices become spans and metrics, on a thread of its own."""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from typing import Final

from orchestra.checkpoint.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import (
    TELEMETRY_CLOSE_SECONDS,
    TELEMETRY_EXPORT_SECONDS,
    TELEMETRY_METRICS_SECONDS,
    TELEMETRY_STORE_FILES,
)
from orchestra.model import events as ev
from orchestra.ports.sink import (
    CheckpointFailed,
    CheckpointLarge,
    CheckpointSaved,
    Notice,
    TurnRecorded,
)
from orchestra.telemetry import names
from orchestra.telemetry.background import Background
from orchestra.telemetry.collector import Collector
from orchestra.telemetry.files import TelemetryFiles
from orchestra.telemetry.interrupted import interrupted_spans
from orchestra.telemetry.measuring import Figures
from orchestra.telemetry.records import Attributes, Metric, Span
from orchestra.telemetry.tracing import RunTrace

_LOG: Final = logging.getLogger("orchestra.telemetry")
_UPSETS: Final[frozenset[type[ev.Event]]] = frozenset({ev.RunResumed, ev.RolledBack})
"""What a recovery begins with."""


class TelemetrySink:
    """Writes `OUTPUTS/RUN/telemetry/*.jsonl`, and sends the same to a collector when there is one.

    Close it before the store is closed. Closing waits at most two seconds for a collector that is silent.
    """

    def __init__(
        self,
        outputs: Path,
        *,
        redact: Callable[[str], str] = str,
        collector: Collector | None = None,
    ) -> None:
        self._files = TelemetryFiles(outputs)
        self._redact, self._collector = redact, collector
        self._archive: Archive | None = None
        self._runs: dict[RunId, _Run] = {}
        self._totals: dict[str, Figures] = {}
        self._told = monotonic()
        self._troubled = False
        self._background = Background[Notice]("orchestra-telemetry", self._work)

    def bind(self, archive: Archive) -> None:
        """Say where what an interrupted process left behind can be read."""
        # An archive of its own: it is read from the sink's thread.
        self._archive = Archive(archive.store, archive.framer)

    def notice(self, notice: Notice, /) -> None:
        """Take note."""
        if notice.kind != "checkpoint_large":
            self._background.put(notice)

    def flush(self, seconds: float = TELEMETRY_CLOSE_SECONDS) -> bool:
        """Wait until everything that was noticed is written to files; whether it is."""
        return self._background.flush(seconds)

    def close(self, seconds: float = TELEMETRY_CLOSE_SECONDS) -> None:
        """Write what is waiting, end what is open, wait a little for the collector. Idempotent."""
        until = monotonic() + seconds
        if not self._background.close(seconds):
            _LOG.warning("telemetry: not everything was written in %.0f s", seconds)
            return
        if self._background.dropped:
            _LOG.warning("telemetry: %d notices were left out", self._background.dropped)
            self._background.dropped = 0
        for run in list(self._runs.values()):
            self._write(run, run.trace.close(), measured=True)
        self._runs.clear()
        if self._collector is not None:
            self._send_totals()
            self._collector.close(until - monotonic())

    def _work(self, batch: list[Notice]) -> None:
        ended: dict[RunId, list[Span]] = {}
        for notice in batch:
            run = self._runs.get(notice.run) or self._known(notice)
            if run is not None:
                try:
                    ended.setdefault(notice.run, []).extend(self._take(run, notice))
                except Exception:  # one odd notice must not take the others with it
                    _LOG.exception("run %s: a notice was not understood", notice.run)
        for name, spans in ended.items():
            run = self._runs[name]
            self._write(run, spans, measured=run.trace.is_idle or run.is_due)
            if run.trace.is_idle:
                del self._runs[name]
        if monotonic() - self._told > TELEMETRY_EXPORT_SECONDS:
            self._told = monotonic()
            self._send_totals()

    def _known(self, notice: Notice) -> "_Run | None":
        run = _Run(RunTrace(notice.run, "", self._redact), notice)
        self._runs[notice.run] = run
        return run

    def _take(self, run: "_Run", notice: Notice) -> Iterable[Span]:
        match notice:
            case CheckpointSaved():
                run.figures.checkpoint(notice)
                run.trace.saved(notice)
            case CheckpointFailed():
                run.figures.failed += 1
                run.trace.failed(notice)
            case TurnRecorded():
                run.trace.workflow = notice.state.workflow.name
                kinds = set(map(type, notice.events))
                if run.recovering or not _UPSETS.isdisjoint(kinds):
                    run.recovery(notice.events)
                before = self._interrupted(notice) if ev.RunResumed in kinds else []
                return before + run.trace.turn(notice)
            case CheckpointLarge():
                pass  # its size is measured when it is saved
        return ()

    def _interrupted(self, turn: TurnRecorded) -> list[Span]:
        crashed = any(isinstance(each, ev.RunResumed) and each.recovered for each in turn.events)
        if not crashed or self._archive is None:
            return []
        try:
            return interrupted_spans(self._archive, turn.run, turn.state.workflow.name, turn.header.seq)
        except Exception:  # the store may be damaged or gone; the trace lacks some spans then
            _LOG.warning("run %s: what was interrupted cannot be told", turn.run, exc_info=True)
            return []

    def _write(self, run: "_Run", spans: list[Span], *, measured: bool) -> None:
        """Write down what was ended, and what was measured where that is wanted."""
        if spans and self._collector is not None:
            self._collector.spans(spans)
        try:
            self._files.write(run.trace.run, spans, self._measured(run) if measured else ())
        except OSError as error:
            self._trouble(error)

    def _measured(self, run: "_Run") -> list[Metric]:
        """The metrics of a run since they were last asked for."""
        figures, workflow = run.taken(), run.trace.workflow
        if figures.is_empty:
            return []
        if self._collector is not None:
            self._totals.setdefault(workflow, Figures(figures.since, figures.until)).add(figures)
        about: Attributes = {names.RUN: run.trace.run, names.WORKFLOW: workflow}
        return figures.metrics(about, storage=self._storage(), cumulative=False)

    def _send_totals(self) -> None:
        if self._collector is None:
            return
        storage = self._storage()
        for place, (workflow, figures) in enumerate(self._totals.items()):
            about: Attributes = {names.WORKFLOW: workflow}
            self._collector.metrics(
                figures.metrics(about, storage=storage if place == 0 else None, cumulative=True)
            )

    def _storage(self) -> int | None:
        return None if self._archive is None else store_bytes(self._archive.store.place)

    def _trouble(self, error: OSError) -> None:
        if not self._troubled:
            self._troubled = True
            _LOG.warning("telemetry cannot be written: %s; runs go on without it", error)


class _Run:
    """What is kept of a run while it goes on."""

    def __init__(self, trace: RunTrace, notice: Notice) -> None:
        at = notice.header.at if isinstance(notice, TurnRecorded) else notice.at
        self.trace = trace
        self.figures = Figures(at, at)
        self.recovering = False
        self._written = monotonic()

    @property
    def is_due(self) -> bool:
        """Whether its metrics should be written although it goes on."""
        return monotonic() - self._written > TELEMETRY_METRICS_SECONDS

    def taken(self) -> Figures:
        """What was measured, which from now on is measured anew."""
        figures, at = self.figures, self.figures.until
        self.figures, self._written = Figures(at, at), monotonic()
        return figures

    def recovery(self, events: tuple[ev.Event, ...]) -> None:
        """Follow recoveries: one has held when work was finished after it."""
        for event in events:
            match event:
                case ev.RunResumed(recovered=True) | ev.RolledBack():
                    self.figures.lost += self.recovering
                    self.recovering = True
                case ev.TaskCompleted() | ev.PhaseCompleted() | ev.RunEnded(outcome="completed"):
                    self.figures.recovered += self.recovering
                    self.recovering = False
                case ev.RunEnded(outcome="failed"):
                    self.figures.lost += self.recovering
                    self.recovering = False
                case _:
                    pass


_measured: dict[str, tuple[float, int | None]] = {}


def store_bytes(place: str) -> int | None:
    """What a store takes up on this machine, not measured more than once a second; None when unknown."""
    known = _measured.get(place)
    if known is None or monotonic() - known[0] > 1.0:
        known = _measured[place] = (monotonic(), _bytes(Path(place)))
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
