"""A sink that writes the JSON files of a run while it is recorded.

A thread of its own reads the store and writes. A file that cannot be written is logged and never fails a run.
"""

import logging
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.interchange.json_folder import json_folder
from orchestra.interchange.json_form import write_snapshot
from orchestra.ports.sink import CheckpointSaved, Notice

_LOG: Final = logging.getLogger("orchestra.checkpoint")
_WAITING: Final = 10_000
"""How many files may wait to be written before newer ones are left out."""


class JsonSink:
    """Writes `FOLDER/RUN/checkpoints/checkpoint_phase….json` and `latest.json` as snapshots are saved.

    Close it, or use it as a context manager, before the store is closed.
    """

    def __init__(self, archive: Archive | None, folder: str | Path, *, only_marked: bool = True) -> None:
        self._archive: Archive | None = None  # one of its own: it is read from the sink's thread
        if archive is not None:
            self.bind(archive)
        self._folder, self._only_marked = Path(folder), only_marked
        self._queue: SimpleQueue[tuple[RunId, int] | threading.Event | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def bind(self, archive: Archive) -> None:
        """Say where snapshots can be read; before the first is noticed."""
        self._archive = Archive(archive.store, archive.framer)

    def notice(self, notice: Notice, /) -> None:
        """Take note of a snapshot that was saved."""
        if not isinstance(notice, CheckpointSaved) or (self._only_marked and not notice.marked):
            return
        if self._queue.qsize() >= _WAITING:
            _LOG.warning("run %s: the JSON file of snapshot %d is left out", notice.run, notice.seq)
            return
        self._start()
        self._queue.put((notice.run, notice.seq))

    def folder(self, run: RunId) -> Path:
        """Where the files of a run are."""
        return json_folder(self._folder, run)

    def flush(self) -> None:
        """Wait until everything that was noticed is written."""
        if self._thread is not None:
            done = threading.Event()
            self._queue.put(done)
            done.wait()

    def close(self) -> None:
        """Write what is waiting and end the thread. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()

    def __enter__(self) -> "JsonSink":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="orchestra-json", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            if isinstance(job, threading.Event):
                job.set()
            else:
                self._write(*job)

    def _write(self, run: RunId, seq: int) -> None:
        assert self._archive is not None, "BUG: it was bound before anything was recorded"
        try:
            snapshot = self._archive.snapshot(self._archive.row(run, seq))
            write_snapshot(snapshot, self._archive, self.folder(run), latest=True)
        except Exception:  # whatever it is, the run goes on
            _LOG.exception("run %s: the JSON file of snapshot %d was not written", run, seq)
