"""The composition root: the only module that names concrete parts together."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings
from orchestra.codec.address import Addresser
from orchestra.engine.settings import EngineSettings
from orchestra.engine.start import reference
from orchestra.history.addressing import KEY_VARIABLE, address_key, addresser_for
from orchestra.history.archive import Archive
from orchestra.ids import wall_clock
from orchestra.interchange.json_files import JsonSink
from orchestra.limits import TELEMETRY_CLOSE_SECONDS
from orchestra.model.records import Environment
from orchestra.model.workflow import Workflow
from orchestra.ports.agent_kind import AnswerBook
from orchestra.ports.sink import Sink
from orchestra.ports.store import DEFAULT_STORE, STORE_VARIABLE, Store
from orchestra.stores.registry import add_audit, open_store
from orchestra.telemetry.journal import JournalSink
from orchestra.telemetry.sink import TelemetrySink
from orchestra.version import VERSION


class SystemClock:
    """The clock of this machine."""

    now = staticmethod(wall_clock)
    monotonic = staticmethod(time.monotonic)
    """Seconds that never go back."""


def owner_name() -> str:
    """Who this process is, for people who wonder who holds a run."""
    return f"process {os.getpid()} on {platform.node() or 'this machine'}"


def environment_of(project: Path) -> Environment:
    """The facts about this process and the project that every run keeps; asks git, which takes a moment."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        asked = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=5, check=False)
        commit = asked.stdout.strip() if asked.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        commit = ""
    return Environment(
        version=VERSION,
        python=platform.python_version(),
        platform=sys.platform,
        working_dir=str(project),
        git_commit=commit or None,
    )


def open_manager(
    store: Store | str | None = None,
    *,
    settings: CheckpointSettings | None = None,
    sinks: Iterable[Sink] = (),
) -> CheckpointManager:
    """A manager over a store, opened or made when a URL is given. Close the manager, then its store.

    Without a store it is the one in the environment, else the default.
    """
    chosen = settings or CheckpointSettings()
    if not isinstance(store, Store):
        named = store or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
        store = open_store(named if chosen.enabled else "memory:", create=True, audited=chosen.audit)
    elif chosen.audit:
        store = add_audit(store)
    addresser = addresser_for(store, address_key(os.environ.get(KEY_VARIABLE)), create=True)
    return CheckpointManager(
        store, clock=SystemClock(), owner=owner_name(), settings=chosen, sinks=sinks, addresser=addresser
    )


class Observers:
    """The sinks that are made here, and closed here: those asked for by name, else by settings.

    Whoever hands in no settings gets nothing that was not asked for.
    """

    def __init__(
        self,
        outputs: Path,
        redact: Callable[[str], str],
        engine: EngineSettings | None,
        *,
        telemetry: bool | None,
        events: bool | None,
    ) -> None:
        self._made = list[TelemetrySink | JournalSink]()
        self._files = JsonSink(None, outputs) if engine is not None and engine.json_files else None
        if engine is not None and engine.events if events is None else events:
            self._made.append(JournalSink(outputs))
        if engine is not None and engine.telemetry if telemetry is None else telemetry:
            from orchestra.telemetry.collector import collector_of_environment

            collector, content = collector_of_environment(), engine is not None and engine.telemetry_content
            self._made.append(TelemetrySink(outputs, redact=redact, collector=collector, content=content))

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
        until = time.monotonic() + seconds
        return all(each.flush(until - time.monotonic()) for each in self._made)

    def close(self) -> None:
        """Write what is waiting, before the store is closed; files to their end, the rest for two seconds."""
        if self._files is not None:
            self._files.close()
        until = time.monotonic() + TELEMETRY_CLOSE_SECONDS
        for each in self._made:
            each.close(until - time.monotonic())


class AnswerBooks:
    """Files to which answers of language models are written, or from which they are taken, if any are."""

    def __init__(self, record: Path | None, replay: Path | None) -> None:
        self._file = replay or record
        self._mode: Literal["record", "replay"] = "replay" if replay else "record"
        self._books: dict[str, AnswerBook] = {}

    def of_workflow(
        self, workflow: Workflow, addresser: Addresser, *, fresh: bool = False
    ) -> AnswerBook | None:
        """The answers of models in runs of a workflow; raises `BadCassette`.

        `fresh`: what was recorded of the workflow in another process makes room.
        """
        if self._file is not None and workflow.name not in self._books:
            from orchestra.agents.llm.cassette import Cassette

            made = reference(workflow, addresser, None)
            digest = made.digest.hex() if made.digest is not None else ""
            self._books[workflow.name] = Cassette.open(
                self._file, self._mode, workflow=workflow.name, digest=digest, fresh=fresh
            )
        return self._books.get(workflow.name)

    def close(self) -> None:
        for book in self._books.values():
            book.close()
