"""A store whose readings and removals are noted, and the ledger that gathers them into few lines.

There is one line for each run and each thing that was done, written when the store is closed or when nothing
more was read for a moment. A removal is written at once. When a line could not be written while nobody waited
for it, the next reading tries again and fails if that does.
"""

import os
import pwd
import sys
import threading
import time
import weakref
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from orchestra.ids import Digest, Instant, RunId, iso
from orchestra.limits import AUDIT_IDLE_SECONDS, AUDIT_LATEST_SECONDS, AUDIT_WHAT_CHARS
from orchestra.ports.activity import ACTIVITY
from orchestra.ports.store import Row, RowQuery, SparedObjects, SparedRows, Store, spare_nothing
from orchestra.stores.audit.log import Act, AuditFailed, AuditLog, AuditNote
from orchestra.stores.wrappers import WrappedStore

_Key: TypeAlias = tuple[str, Act, RunId | None]
_LAST: Final[ContextVar[tuple[object, RunId] | None]] = ContextVar("orchestra_audit_last", default=None)
"""The run that was read last in this task or thread, and by whom: objects do not say whose they are."""


@attrs.define
class _Entry:
    """What was read of a run, or removed, for one line."""

    at: Instant
    content: bytearray = attrs.field(factory=bytearray)  # by snapshot number: whether it was read
    columns: bytearray = attrs.field(factory=bytearray)
    objects: int = 0
    removed: int = 0

    def note(self, key: _Key) -> AuditNote:
        """What the line says. Where content was read, that counts, not what was only listed."""
        what, act, run = key
        seqs = self.content or self.columns
        return AuditNote(
            at=iso(self.at),
            user=_login(),
            uid=os.getuid(),
            pid=os.getpid(),
            what=what,
            act=act,
            run=run,
            first=seqs.find(1) if seqs else None,
            last=seqs.rfind(1) if seqs else None,
            count=seqs.count(1) if act == "read" else self.removed,
            content=act != "read" or bool(self.content or self.objects),
            objects=self.objects,
        )


class AuditLedger:
    """Gathers what is done with a store. May be used from any thread."""

    def __init__(
        self, log: AuditLog, *, idle: float = AUDIT_IDLE_SECONDS, latest: float = AUDIT_LATEST_SECONDS
    ) -> None:
        """Whoever opens a store says what for; that counts where nothing else is said."""
        self._log, self._idle, self._latest = log, idle, latest
        self._opened_for = ACTIVITY.get() or _program()
        self._entries: dict[_Key, _Entry] = {}
        self._newest: dict[str, RunId] = {}
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._began = self._touched = 0.0
        self._failed = False
        self._closed = False

    def retry(self) -> None:
        """Write what could not be written before; raises `AuditFailed`, so that nothing is read unnoted."""
        if self._failed:
            self.flush()

    def note_rows(self, run: RunId, seqs: Iterable[int], *, content: bool) -> None:
        """Note that rows of a run were read."""
        what = self._what()
        with self._lock:
            entry = self._entry((what, "read", run))
            _mark(entry.content if content else entry.columns, seqs)
            self._newest[what] = run
        _LAST.set((self, run))

    def note_objects(self, count: int) -> None:
        """Note objects that were read, for the run read last here, else for the last under the same name."""
        what, last = self._what(), _LAST.get()
        with self._lock:
            run = last[1] if last is not None and last[0] is self else self._newest.get(what)
            self._entry((what, "read", run)).objects += count

    def note_removal(
        self, act: Act, run: RunId | None, seqs: Collection[int], count: int, objects: int = 0
    ) -> None:
        """Note a removal. A failure is raised by the next reading: pruning must work on a full disk."""
        with self._lock:
            entry = self._entry((self._what(), act, run))
            _mark(entry.content, seqs)
            entry.removed, entry.objects = entry.removed + count, entry.objects + objects
            with suppress(AuditFailed):
                self._write()

    def flush(self) -> None:
        """Write down what was gathered; when that fails, keep it and raise `AuditFailed`."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Write down what was gathered, once and for all; raises `AuditFailed`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._write()

    def _what(self) -> str:
        return (ACTIVITY.get() or self._opened_for)[:AUDIT_WHAT_CHARS]

    def _entry(self, key: _Key) -> _Entry:
        self._touched = time.monotonic()
        if not self._entries:
            self._began = self._touched
        if self._timer is None and not self._closed:
            self._start_timer(min(self._idle, self._latest))
        return self._entries.setdefault(key, _Entry(Instant(time.time_ns() // 1000)))

    def _write(self) -> None:
        if self._entries:
            self._log.append([entry.note(key) for key, entry in self._entries.items()])
            self._entries.clear()
        self._failed = False

    def _start_timer(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._write_when_idle)
        self._timer.daemon = True
        self._timer.start()

    def _write_when_idle(self) -> None:
        """Write when nothing was read for a moment, or when that takes too long."""
        with self._lock:
            self._timer = None
            if self._closed or not self._entries:
                return
            left = min(self._touched + self._idle, self._began + self._latest) - time.monotonic()
            if left > 0:
                self._start_timer(left)
                return
            try:
                self._write()
            except AuditFailed:
                self._failed = True


class AuditedStore(WrappedStore):
    """Another store. What is read of its snapshots or removed is noted in a ledger."""

    def __init__(self, inner: Store, ledger: AuditLedger) -> None:
        super().__init__(inner)
        self._ledger = ledger
        self._finish = weakref.finalize(self, ledger.close)  # also where nobody closes it

    def __getattr__(self, name: str) -> Any:
        """What this kind of store can do beyond the port."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def rows(self, query: RowQuery) -> list[Row]:
        self._ledger.retry()
        found = self.inner.rows(query)
        self._note(found, content=query.content)
        return found

    def find(self, low: bytes, high: bytes, limit: int) -> list[Row]:
        self._ledger.retry()
        found = self.inner.find(low, high, limit)
        self._note(found, content=False)
        return found

    def get_objects(self, digests: Collection[Digest]) -> Mapping[Digest, bytes]:
        self._ledger.retry()
        found = self.inner.get_objects(digests)
        if found:
            self._ledger.note_objects(len(found))
        return found

    def _note(self, found: list[Row], *, content: bool) -> None:
        for run, rows in groupby(found, lambda row: row.run):
            self._ledger.note_rows(run, (row.seq for row in rows), content=content)

    def prune(self, run: RunId, seqs: Collection[int], *, spared: SparedRows = spare_nothing) -> int:
        removed = self.inner.prune(run, seqs, spared=spared)
        if removed:
            self._ledger.note_removal("pruned", run, seqs, removed)
        return removed

    def delete(self, run: RunId, *, spared: SparedRows = spare_nothing) -> bool:
        before = self.inner.run(run)
        removed = self.inner.delete(run, spared=spared)
        if removed:
            seqs = range(before.head + 1 if before is not None else 0)
            self._ledger.note_removal("deleted", run, seqs, len(seqs))
        return removed

    def sweep(
        self, dead: Collection[Digest], *, since: int, older_than: Instant, spared: SparedObjects
    ) -> int:
        removed = self.inner.sweep(dead, since=since, older_than=older_than, spared=spared)
        if removed:
            self._ledger.note_removal("swept", None, (), 0, removed)
        return removed

    def close(self) -> None:
        """Write down what was read, then release everything; raises `AuditFailed`."""
        self._finish.detach()
        try:
            self._ledger.close()
        finally:
            super().close()


def _mark(marks: bytearray, seqs: Iterable[int]) -> None:
    for seq in seqs:
        if seq >= len(marks):
            marks.extend(bytes(seq + 1 - len(marks)))
        marks[seq] = 1


def _login() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _program() -> str:
    """Who uses orchestra as a library."""
    script = Path(sys.argv[0]).name if sys.argv else ""
    return f"python {script}" if script not in ("", "-c", "-m") else "python"
