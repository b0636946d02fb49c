"""The telemetry sink: notices become spans and figures at once, and a thread of its own writes them down.

Following a turn takes microseconds while it is at hand. Handed over whole, turns would keep their states
alive until the thread gets to them, and it would take the interpreter from the loop for as long, and more.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

import attrs

from orchestra.checkpoint.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import (
    TELEMETRY_CLOSE_SECONDS,
    TELEMETRY_EXPORT_SECONDS,
    TELEMETRY_METRICS_SECONDS,
    TELEMETRY_STORE_FILES,
)
from orchestra.model import events as ev
from orchestra.model.making import maker
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
        self._sent = monotonic()
        self._troubled = False
        self._background = Background[_Told]("orchestra-telemetry", self._work)

    def bind(self, archive: Archive) -> None:
        """Say where what an interrupted process left behind can be read."""
        # An archive of its own: it is read from the sink's thread.
        self._archive = Archive(archive.store, archive.framer)

    def notice(self, notice: Notice, /) -> None:
        """Take note."""
        if notice.kind == "checkpoint_large":  # its size is measured when it is saved
            return
        run = self._runs.get(notice.run) or self._known(notice)
        try:
            run.take(notice)
        except Exception:  # one odd notice must not take the others with it
            _LOG.exception("run %s: a notice was not understood", notice.run)
        if type(notice) is not TurnRecorded:
            return
        over = run.trace.is_idle
        if run.has_news or over or run.is_due:
            self._background.put(run.told(measured=over or run.is_due))
        if over:
            del self._runs[notice.run]

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
        for run in self._runs.values():
            run.ended += run.trace.close()
            self._write([run.told(measured=True)])
        self._runs.clear()
        if self._collector is not None:
            self._send_totals()
            self._collector.close(until - monotonic())

    def _known(self, notice: Notice) -> "_Run":
        run = self._runs[notice.run] = _Run(RunTrace(notice.run, "", self._redact), notice)
        return run

    # On the sink's own thread.

    def _work(self, batch: list["_Told"]) -> None:
        by_run: dict[RunId, list[_Told]] = {}
        for each in batch:
            by_run.setdefault(each.run, []).append(each)
        for told in by_run.values():
            self._write(told)
        if monotonic() - self._sent > TELEMETRY_EXPORT_SECONDS:
            self._sent = monotonic()
            self._send_totals()

    def _write(self, told: list["_Told"]) -> None:
        """Write down what is told of one run."""
        spans, metrics = list[Span](), list[Metric]()
        for each in told:
            spans += self._interrupted(each.crashed) if each.crashed is not None else ()
            spans += each.spans
            metrics += self._measured(each)
        if spans and self._collector is not None:
            self._collector.spans(spans)
        try:
            self._files.write(told[0].run, spans, metrics, new=told[0].is_first)
        except OSError as error:
            self._trouble(error)

    def _interrupted(self, turn: TurnRecorded) -> list[Span]:
        """What the process that died before a turn could not end any more."""
        if self._archive is None:
            return []
        try:
            return interrupted_spans(self._archive, turn.run, turn.state.workflow.name, turn.header.seq)
        except Exception:  # the store may be damaged or gone; the trace lacks some spans then
            _LOG.warning("run %s: what was interrupted cannot be told", turn.run, exc_info=True)
            return []

    def _measured(self, told: "_Told") -> list[Metric]:
        figures = told.figures
        if figures is None or figures.is_empty:
            return []
        if self._collector is not None:
            self._totals.setdefault(told.workflow, Figures(figures.since, figures.until)).add(figures)
        about: Attributes = {names.RUN: told.run, names.WORKFLOW: told.workflow}
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


@attrs.frozen
class _Told:
    """What is to be written of a run: spans that were ended, what was measured, whether it had crashed."""

    run: RunId
    workflow: str
    spans: list[Span]
    figures: Figures | None
    crashed: TurnRecorded | None  # the turn with which it was taken up again
    is_first: bool  # that is told of it


_told: Final = maker(_Told)


class _Run:
    """What is kept of a run while it goes on."""

    def __init__(self, trace: RunTrace, notice: Notice) -> None:
        at = notice.header.at if isinstance(notice, TurnRecorded) else notice.at
        self.trace = trace
        self.ended: list[Span] = []
        self._figures = Figures(at, at)
        self._crashed: TurnRecorded | None = None
        self._recovering = False
        self._is_new = True
        self._written = monotonic()

    def take(self, notice: Notice) -> None:
        """Follow what happened."""
        match notice:
            case TurnRecorded():
                self.trace.workflow = notice.state.workflow.name
                if self._recovering or not _UPSETS.isdisjoint(map(type, notice.events)):
                    self._recovery(notice)
                self.ended += self.trace.turn(notice)
            case CheckpointSaved():
                self._figures.checkpoint(notice)
                self.trace.saved(notice)
            case CheckpointFailed():
                self._figures.failed += 1
                self.trace.failed(notice)
            case CheckpointLarge():
                pass

    def told(self, *, measured: bool) -> _Told:
        """What is to be written now; from then on it is gathered anew."""
        figures = self._taken() if measured else None
        told = _told(self.trace.run, self.trace.workflow, self.ended, figures, self._crashed, self._is_new)
        self.ended, self._crashed, self._is_new = [], None, False
        return told

    @property
    def has_news(self) -> bool:
        """Whether spans were ended, here or by a process that died before."""
        return bool(self.ended) or self._crashed is not None

    @property
    def is_due(self) -> bool:
        """Whether its metrics should be written although it goes on."""
        return monotonic() - self._written > TELEMETRY_METRICS_SECONDS

    def _taken(self) -> Figures:
        """What was measured, which from now on is measured anew."""
        figures, at = self._figures, self._figures.until
        self._figures, self._written = Figures(at, at), monotonic()
        return figures

    def _recovery(self, turn: TurnRecorded) -> None:
        """Follow recoveries: one has held when work was finished after it."""
        figures = self._figures
        for event in turn.events:
            match event:
                case ev.RunResumed(recovered=True) | ev.RolledBack():
                    figures.lost += self._recovering
                    self._recovering = True
                    self._crashed = turn if isinstance(event, ev.RunResumed) else self._crashed
                case ev.TaskCompleted() | ev.PhaseCompleted() | ev.RunEnded(outcome="completed"):
                    figures.recovered += self._recovering
                    self._recovering = False
                case ev.RunEnded(outcome="failed"):
                    figures.lost += self._recovering
                    self._recovering = False
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
