"""The JSON files of runs: a sink that writes them while a run is recorded, and removing those that are gone.

A file that cannot be written is logged and never fails a run. Several stores may share a folder, so a file is
removed only when its number and digest match.
"""

import json
import logging
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from orchestra.background import BackgroundWriter
from orchestra.errors import DamageError
from orchestra.history.archive import Archive
from orchestra.ids import Digest, RunId
from orchestra.interchange.json_form import LATEST, write_snapshot
from orchestra.ports.sink import CheckpointSaved, Notice
from orchestra.ports.store import RowQuery, Store

Recorded: TypeAlias = dict[int, Digest]
"""Snapshots of one run, by sequence number."""
_Saved: TypeAlias = tuple[RunId, int]

_LOG: Final = logging.getLogger("orchestra.checkpoint")
_WAITING: Final = 10_000
"""How many files may wait to be written before newer ones are left out."""
_NUMBERED: Final = re.compile(r"checkpoint_phase\d+_\w+_(\d+)\.json")


def json_folder(outputs: Path, run: RunId) -> Path:
    """Where the JSON files of a run are."""
    return outputs / run / "checkpoints"


def runs_with_files(outputs: Path) -> list[RunId]:
    """The runs that have a folder of JSON files."""
    return [RunId(folder.parent.name) for folder in outputs.glob("*/checkpoints")]


def recorded_snapshots(store: Store, run: RunId, outputs: Path) -> Recorded:
    """The snapshots of a run that may have JSON files; none if the run is damaged."""
    if not json_folder(outputs, run).is_dir():
        return {}
    with suppress(DamageError):
        return {row.seq: row.digest for row in store.rows(RowQuery(run=run, content=False))}
    return {}


def kept_snapshots(store: Store, run: RunId) -> Recorded:
    """The snapshots of a run that are not pruned."""
    return {row.seq: row.digest for row in store.rows(RowQuery(run=run, content=False)) if not row.pruned}


def tidy_folder(run: RunId, outputs: Path, before: Recorded, kept: Recorded) -> int:
    """Remove the files of snapshots that are kept no longer, of a run that is gone all; how many went.

    Files that somebody else put there stay. Raises what removing a file raises, unless it is gone already.
    """
    folder = json_folder(outputs, run)
    gone = {seq: digest for seq, digest in before.items() if kept.get(seq) != digest}
    if not gone or not folder.is_dir():
        return 0
    named = [(path, _NUMBERED.fullmatch(path.name)) for path in folder.glob("*.json")]
    digests = {path: gone.get(int(found[1])) for path, found in named if found is not None}
    going = [path for path, digest in digests.items() if digest is not None and _digest(path) == digest.hex()]
    latest = folder / LATEST
    if not kept and _digest(latest) in {digest.hex() for digest in gone.values()}:
        going.append(latest)
    for path in going:
        path.unlink(missing_ok=True)
    with suppress(OSError):  # something of somebody else's is in it
        folder.rmdir()
    return len(going)


def _digest(path: Path) -> str | None:
    """The digest of the snapshot that a file holds, in hexadecimal; None when it cannot be told."""
    try:
        return str(json.loads(path.read_bytes())["snapshot"]["digest"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # it is no file of ours
        return None


class JsonSink:
    """Writes `FOLDER/RUN/checkpoints/checkpoint_phase….json` and `latest.json` as snapshots are saved.

    A thread of its own reads the store and writes. Close it, or use it as a context manager, before the store
    is closed.
    """

    def __init__(self, archive: Archive | None, folder: str | Path, *, only_marked: bool = True) -> None:
        self._archive: Archive | None = None  # one of its own: it is read from the sink's thread
        if archive is not None:
            self.bind(archive)
        self._folder, self._only_marked = Path(folder), only_marked
        self._background = BackgroundWriter[_Saved]("orchestra-json", self._work, limit=_WAITING)

    def bind(self, archive: Archive) -> None:
        """Say where snapshots can be read; before the first is noticed."""
        self._archive = Archive(archive.store, archive.framer)

    def notice(self, notice: Notice, /) -> None:
        """Take note of a snapshot that was saved."""
        if not isinstance(notice, CheckpointSaved) or (self._only_marked and not notice.marked):
            return
        if not self._background.put((notice.run, notice.seq)):
            _LOG.warning("run %s: the JSON file of snapshot %d is left out", notice.run, notice.seq)

    def folder(self, run: RunId) -> Path:
        return json_folder(self._folder, run)

    def flush(self) -> None:
        """Wait until everything that was noticed is written."""
        self._background.flush(threading.TIMEOUT_MAX)

    def close(self) -> None:
        """Write what is waiting and end the thread. Idempotent."""
        self._background.close(threading.TIMEOUT_MAX)

    def __enter__(self) -> "JsonSink":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self, batch: list[_Saved]) -> None:
        assert self._archive is not None, "BUG: it was bound before anything was recorded"
        for run, seq in batch:
            try:
                snapshot = self._archive.snapshot(self._archive.row(run, seq))
                write_snapshot(snapshot, self._archive, self.folder(run), latest=True)
            except Exception:  # whatever it is, the run goes on
                _LOG.exception("run %s: the JSON file of snapshot %d was not written", run, seq)
