"""Which sinks a process has by itself, as settings say: telemetry, journals of runs, their JSON files."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

import attrs

from orchestra.engine.settings import EngineSettings
from orchestra.history.archive import Archive
from orchestra.interchange.json_sink import JsonSink
from orchestra.limits import TELEMETRY_CLOSE_SECONDS
from orchestra.ports.sink import Sink
from orchestra.telemetry.journal import JournalSink
from orchestra.telemetry.sink import TelemetrySink


@attrs.frozen(kw_only=True)
class Observed:
    """What is told about runs beside their snapshots."""

    telemetry: bool
    events: bool
    files: bool


def choose_observers(
    engine: EngineSettings | None, *, telemetry: bool | None, events: bool | None
) -> Observed:
    """What was asked for by name, else by settings; whoever hands in no settings gets nothing."""
    by_settings = Observed(telemetry=False, events=False, files=False)
    if engine is not None:
        by_settings = Observed(telemetry=engine.telemetry, events=engine.events, files=engine.json_files)
    return Observed(
        telemetry=by_settings.telemetry if telemetry is None else telemetry,
        events=by_settings.events if events is None else events,
        files=by_settings.files,
    )


class Observers:
    """The sinks that are made here, and closed here."""

    def __init__(self, outputs: Path, told: Observed, redact: Callable[[str], str]) -> None:
        self._made = list[TelemetrySink | JournalSink]()
        self._files = JsonSink(None, outputs) if told.files else None
        if told.events:
            self._made.append(JournalSink(outputs))
        if told.telemetry:
            from orchestra.telemetry.collector import collector_of_environment

            collector = collector_of_environment()
            self._made.append(TelemetrySink(outputs, redact=redact, collector=collector))

    @property
    def sinks(self) -> list[Sink]:
        """To be told about every notice."""
        return [*self._made, *([self._files] if self._files is not None else [])]

    def bind(self, archive: Archive) -> None:
        """Say where what is missing can be read."""
        for each in self._made:
            each.bind(archive)
        if self._files is not None:
            self._files.bind(archive)

    def write_files(self) -> None:
        """Wait until the JSON files of all snapshots so far are written."""
        if self._files is not None:
            self._files.flush()

    def flush(self, seconds: float = TELEMETRY_CLOSE_SECONDS) -> bool:
        """Wait until telemetry and journals are written as far as runs have come; whether they are."""
        until = monotonic() + seconds
        return all(each.flush(until - monotonic()) for each in self._made)

    def close(self) -> None:
        """Write what is waiting, before the store is closed; files to their end, the rest for two seconds."""
        if self._files is not None:
            self._files.close()
        until = monotonic() + TELEMETRY_CLOSE_SECONDS
        for each in self._made:
            each.close(until - monotonic())
