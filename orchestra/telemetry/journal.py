"""The journal: `outputs/<run>/events.jsonl`, a line for every turn, for people and their tools.

It is a copy of what the headers in the store say, so nothing is lost when it is: whenever a line is missing
before the one to be written, the gap is filled from the store. A line that was torn by a crash is cut off.
"""

import json
import logging
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from orchestra.background import BackgroundWriter, append
from orchestra.errors import OrchestraError
from orchestra.history.archive import Archive
from orchestra.ids import Digest, Instant, RunId, iso
from orchestra.limits import JOURNAL_RUNS, JOURNAL_TAIL_BYTES, PAGE_ROWS, TELEMETRY_CLOSE_SECONDS
from orchestra.model.snapshot import Header
from orchestra.ports.sink import CheckpointSaved, Notice, TurnRecorded
from orchestra.ports.store import RowQuery
from orchestra.telemetry import names

_LOG: Final = logging.getLogger("orchestra.telemetry")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_Item = tuple[Header, Digest]


class JournalSink:
    """Writes the journals of runs. Close it before the store is closed."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs
        self._archive: Archive | None = None
        self._digests: dict[RunId, tuple[int, Digest]] = {}
        self._lasts: OrderedDict[RunId, int] = OrderedDict()
        self._troubled = False
        self._background = BackgroundWriter[_Item]("orchestra-journal", self._work)

    def bind(self, archive: Archive) -> None:
        """Say where missing lines can be read."""
        # An archive of its own: it is read from the sink's thread.
        self._archive = Archive(archive.store, archive.framer)

    def notice(self, notice: Notice, /) -> None:
        """Take note of a turn; the notice that its snapshot was saved comes right before it."""
        if isinstance(notice, CheckpointSaved):
            self._digests[notice.run] = (notice.seq, notice.digest)
        elif isinstance(notice, TurnRecorded):
            seq, digest = self._digests.pop(notice.run, (-1, Digest(b"")))
            if seq == notice.header.seq:
                self._background.put((notice.header, digest))

    def flush(self, seconds: float = TELEMETRY_CLOSE_SECONDS) -> bool:
        """Wait until everything that was noticed is written; whether it is."""
        return self._background.flush(seconds)

    def close(self, seconds: float = TELEMETRY_CLOSE_SECONDS) -> None:
        """Write what is waiting and end the thread. Idempotent. What is missing is caught up later."""
        if not self._background.close(seconds):
            _LOG.warning("not every line of the events was written in %.0f s", seconds)

    def path(self, run: RunId) -> Path:
        return self._outputs / run / names.JOURNAL_FILE

    def _work(self, batch: list[_Item]) -> None:
        by_run: dict[RunId, list[_Item]] = {}
        for item in batch:
            by_run.setdefault(item[0].run, []).append(item)
        for run, items in by_run.items():
            try:
                self._write(run, items)
            except (OSError, OrchestraError) as error:
                self._lasts.pop(run, None)  # the end may be torn: it is looked at again next time
                if not self._troubled:
                    self._troubled = True
                    _LOG.warning("run %s: its events are not written: %s; the run goes on", run, error)

    def _write(self, run: RunId, items: list[_Item]) -> None:
        path = self.path(run)
        last = self._lasts.pop(run, None)
        if last is None:
            last = self._end_of(path, items[0])
        lines = list[str]()
        for header, digest in items:
            if header.seq > last + 1:
                lines += self._missing_lines(run, last + 1, header.seq - 1)
            if header.seq > last:
                lines.append(line(header, digest))
                last = header.seq
        if lines:
            append(str(path), "".join(lines))
        self._lasts[run] = last
        while len(self._lasts) > JOURNAL_RUNS:
            self._lasts.popitem(last=False)

    def _end_of(self, path: Path, first: _Item) -> int:
        """The number of the last whole line, -1 when there is none; what is torn or foreign is cut off."""
        try:
            held = path.open("r+b")
        except FileNotFoundError:
            return -1
        with held:
            size = held.seek(0, os.SEEK_END)
            begin = max(0, size - JOURNAL_TAIL_BYTES)
            held.seek(begin)
            last, whole = _last_line(held.read())
            if last is None or last >= first[0].seq:
                # Nothing to go on from, or the journal of another run of the same name: begin anew.
                held.truncate(0)
                return -1
            held.truncate(begin + whole)
            return last

    def _missing_lines(self, run: RunId, first: int, last: int) -> Iterator[str]:
        archive = self._archive
        if archive is None:
            return
        for low in range(first, last + 1, PAGE_ROWS):
            high = min(last, low + PAGE_ROWS - 1)
            for row in archive.store.rows(RowQuery(run=run, first=low, last=high)):
                yield line(archive.header(row), row.digest)


def line(header: Header, digest: Digest) -> str:
    """A turn as one line."""
    told: dict[str, Any] = {
        "seq": header.seq,
        "at": iso(Instant(header.at)),
        "status": header.status,
        "phase": header.phase,
        "triggers": header.triggers,
        "marked": header.marked,
        "digest": digest.hex(),
        "events": [
            {"kind": each.kind, "who": each.who, "what": each.what, "figures": dict(each.figures)}
            for each in header.events
        ],
    }
    return _encode(told) + "\n"


def _last_line(tail: bytes) -> tuple[int | None, int]:
    """The number on the last whole line, and where that line ends."""
    end = tail.rfind(b"\n") + 1
    while end:
        begin = tail.rfind(b"\n", 0, end - 1) + 1
        try:
            return int(json.loads(tail[begin:end])["seq"]), end
        except (ValueError, KeyError, TypeError):
            end = begin
    return None, 0
