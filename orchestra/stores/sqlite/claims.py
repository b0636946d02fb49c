"""Ownership of runs: one byte of a file per run, locked for as long as a process owns it.

The kernel frees a lock the moment its holder dies, so there is no lease to wait for and no clock to trust.
The byte's place is taken from a hash of the run id: 62 bits, so two runs that meet on one byte are not to be
expected, and if they did, one would only wait for the other.

Open-file-description locks belong to the open file, not to the process: two stores in one process exclude
each other. A forked child shares the parent's open file, so it closes its copy at once; otherwise a child
that outlives its parent would go on owning the parent's runs.
"""

import errno
import fcntl
import hashlib
import os
import struct
import threading
import weakref
from typing import Final, Protocol

from orchestra.ids import RunId

_LINUX: Final = os.uname().sysname == "Linux"
_OFD: Final = _LINUX and hasattr(fcntl, "F_OFD_SETLK") and struct.calcsize("l") == 8


class Locks(Protocol):
    """Locks on bytes of one file."""

    def take(self, offset: int) -> bool:
        """Lock a byte; False when somebody else holds it."""

    def free(self, offset: int) -> None:
        """Unlock a byte."""

    def held(self, offset: int) -> bool:
        """Whether somebody else holds a byte."""

    def close(self) -> None:
        """Let go of everything."""


def place_of(run: RunId) -> int:
    """The byte that stands for a run."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:8], "big") >> 2


def _request(kind: int, offset: int) -> bytes:
    """What the kernel is asked: a `struct flock`, whose members stand in another order on the BSDs."""
    if _LINUX:
        return struct.pack("hhqqi", kind, os.SEEK_SET, offset, 1, 0)
    return struct.pack("qqihh", offset, 1, 0, kind, os.SEEK_SET)


def _is_held(answer: bytes) -> bool:
    kind = struct.unpack("hhqqi", answer)[0] if _LINUX else struct.unpack("qqihh", answer)[3]
    return bool(kind != fcntl.F_UNLCK)


def open_locks(path: str) -> Locks:
    """The locks beside a store, by the best means the system has."""
    return OfdLocks(path) if _OFD else PlainLocks(path)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


class OfdLocks:
    """Locks that belong to the open file (Linux)."""

    def __init__(self, path: str) -> None:
        self._fd = _open(path)
        _OPEN.add(self)

    def _call(self, command: int, kind: int, offset: int) -> bytes:
        return fcntl.fcntl(self._fd, command, _request(kind, offset))

    def take(self, offset: int) -> bool:
        """Lock a byte; False when somebody else holds it."""
        try:
            self._call(fcntl.F_OFD_SETLK, fcntl.F_WRLCK, offset)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def free(self, offset: int) -> None:
        """Unlock a byte."""
        self._call(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, offset)

    def held(self, offset: int) -> bool:
        """Whether somebody else holds a byte."""
        return _is_held(self._call(fcntl.F_OFD_GETLK, fcntl.F_WRLCK, offset))

    def close(self) -> None:
        """Let go of everything."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class PlainLocks:
    """Locks that belong to the process, for systems without the better kind.

    Within a process a table stands in for them. Closing any descriptor of the file would drop the locks of
    all, so the descriptor of a file is opened once and stays open until the process ends.
    """

    _table: Final[dict[tuple[str, int], "PlainLocks"]] = {}
    _fds: Final[dict[str, int]] = {}
    _guard: Final = threading.Lock()

    def __init__(self, path: str) -> None:
        self._key = os.path.realpath(path)
        with self._guard:
            if self._key not in self._fds:
                self._fds[self._key] = _open(path)
            self._fd = self._fds[self._key]

    def take(self, offset: int) -> bool:
        """Lock a byte; False when somebody else holds it."""
        with self._guard:
            if (self._key, offset) in self._table:
                return False
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except (BlockingIOError, PermissionError):
                return False
            self._table[self._key, offset] = self
            return True

    def free(self, offset: int) -> None:
        """Unlock a byte."""
        with self._guard:
            if self._table.get((self._key, offset)) is self:
                fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, offset)
                del self._table[self._key, offset]

    def held(self, offset: int) -> bool:
        """Whether somebody else holds a byte."""
        with self._guard:
            if (self._key, offset) in self._table:
                return self._table[self._key, offset] is not self
            return _is_held(fcntl.fcntl(self._fd, fcntl.F_GETLK, _request(fcntl.F_WRLCK, offset)))

    def close(self) -> None:
        """Let go of everything."""
        for key, offset in [at for at, holder in self._table.items() if holder is self]:
            assert key == self._key, "BUG: a lock of another file"
            self.free(offset)


_OPEN: Final[weakref.WeakSet[OfdLocks]] = weakref.WeakSet()


def _close_in_child() -> None:
    for locks in list(_OPEN):
        locks.close()


os.register_at_fork(after_in_child=_close_in_child)
