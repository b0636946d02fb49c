"""A thread that works on what it is handed, in batches. Handing over costs next to nothing.

The thread is woken once for a batch and waits a moment for more: a loop that records thousands of turns a
second is not interrupted for each of them. What it writes are mostly lines of files, with `append`.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from orchestra.limits import TELEMETRY_HURRY, TELEMETRY_LINGER_SECONDS, TELEMETRY_QUEUE

T = TypeVar("T")
_LOG: Final = logging.getLogger("orchestra.background")


class BackgroundWriter(Generic[T]):
    """Hands batches of items, in order, to a function on a thread of its own."""

    def __init__(self, name: str, work: Callable[[list[T]], None], *, limit: int = TELEMETRY_QUEUE) -> None:
        self._name, self._work, self._limit = name, work, limit
        self._many = min(TELEMETRY_HURRY, limit // 2)
        self._items: deque[T | threading.Event] = deque()
        self._wanted, self._hurry = threading.Event(), threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self.dropped = 0

    def put(self, item: T) -> bool:
        """Hand an item over; False when too many are waiting and it was left out."""
        waiting = len(self._items)
        if waiting >= self._limit:
            self.dropped += 1
            return False
        self._items.append(item)
        if waiting == self._many:
            self._hurry.set()
        self._wake()
        return True

    def flush(self, seconds: float) -> bool:
        """Wait until everything that was put is done, at most so long; whether it is."""
        if self._thread is None:
            return True
        done = threading.Event()
        self._items.append(done)
        self._hurry.set()
        self._wake()
        return done.wait(seconds)

    def close(self, seconds: float) -> bool:
        """Finish what is waiting and end the thread, waiting at most so long. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is None:
            return True
        self._closing = True
        self._hurry.set()
        self._wanted.set()
        thread.join(max(seconds, 0.0))
        return not thread.is_alive()

    def _wake(self) -> None:
        if not self._wanted.is_set():
            self._wanted.set()
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not (self._closing and not self._items):
            self._wanted.wait()
            if not self._closing:
                self._hurry.wait(TELEMETRY_LINGER_SECONDS)
            self._hurry.clear()
            self._wanted.clear()  # before taking, so that nothing put meanwhile is forgotten
            self._take()

    def _take(self) -> None:
        batch, waiting = list[T](), list[threading.Event]()
        while self._items:
            item = self._items.popleft()
            if isinstance(item, threading.Event):
                waiting.append(item)
            else:
                batch.append(item)
        try:
            if batch:
                self._work(batch)
        except Exception:  # whatever it is, runs go on
            _LOG.exception("%s: a batch of %d was given up", self._name, len(batch))
        for each in waiting:
            each.set()


def append(path: str, lines: str, *, new: bool = False) -> None:
    """Add lines to a file; it is made when it is not there, and so is its folder. A `new` one has neither."""
    folder = path.rpartition("/")[0]
    if new:
        _make(folder)
    try:
        held = _open(path)
    except FileNotFoundError:  # it is new, or somebody removed it
        _make(folder)
        held = _open(path)
    content = lines.encode("utf-8", "backslashreplace")
    try:
        while content:
            content = content[os.write(held, content) :]
    finally:
        os.close(held)


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _make(folder: str) -> None:
    """A folder and those above it: mostly two are missing, and these are made without looking."""
    try:
        os.mkdir(folder.rpartition("/")[0])  # noqa: PTH102 - pathlib takes as long as what is written
        os.mkdir(folder)  # noqa: PTH102
    except OSError:
        Path(folder).mkdir(parents=True, exist_ok=True)
