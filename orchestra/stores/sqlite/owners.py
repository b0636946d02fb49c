"""Who owns which run: one byte of a file per run, locked for as long as a process owns it.

The kernel frees a lock the moment its holder dies, so there is no lease to wait for and no clock to trust.
The byte's place is taken from a hash of the run id: 62 bits, so two runs that meet on one byte are not to be
expected, and if they did, one would only wait for the other.

Open-file-description locks belong to the open file, not to the process: two stores in one process exclude
each other. A forked child shares the parent's open file, so it closes its copy at once; otherwise a child
that outlives its parent would go on owning the parent's runs.
"""

import fcntl
import hashlib
import os
import struct
import threading
import weakref
from collections.abc import Callable
from typing import Final

from orchestra.atomic import FORBIDDEN
from orchestra.errors import RunOwned, StoreReadOnly
from orchestra.ids import RunId
from orchestra.ports.store import Claim

_LINUX: Final = os.uname().sysname == "Linux"
_OFD: Final = _LINUX and hasattr(fcntl, "F_OFD_SETLK") and struct.calcsize("l") == 8


def place_of(run: RunId) -> int:
    """The byte that stands for a run."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:8], "big") >> 2


def _request(kind: int, offset: int) -> bytes:
    """What the kernel is asked: a `struct flock`, whose members stand in another order on the BSDs."""
    if _LINUX:
        return struct.pack("hhqqi", kind, os.SEEK_SET, offset, 1, 0)
    return struct.pack("qqihh", offset, 1, 0, kind, os.SEEK_SET)


def _has_holder(answer: bytes) -> bool:
    kind = struct.unpack("hhqqi", answer)[0] if _LINUX else struct.unpack("qqihh", answer)[3]
    return bool(kind != fcntl.F_UNLCK)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno not in FORBIDDEN:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


class OfdLocks:
    """Locks on bytes of one file that belong to the open file (Linux)."""

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
        self._call(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, offset)

    def is_taken(self, offset: int) -> bool:
        """Whether somebody else holds a byte."""
        return _has_holder(self._call(fcntl.F_OFD_GETLK, fcntl.F_WRLCK, offset))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class PlainLocks:
    """The same, but belonging to the process, for systems without the better kind.

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
        with self._guard:
            if self._table.get((self._key, offset)) is self:
                fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, offset)
                del self._table[self._key, offset]

    def is_taken(self, offset: int) -> bool:
        with self._guard:
            if (self._key, offset) in self._table:
                return self._table[self._key, offset] is not self
            return _has_holder(fcntl.fcntl(self._fd, fcntl.F_GETLK, _request(fcntl.F_WRLCK, offset)))

    def close(self) -> None:
        for _, offset in [at for at, holder in self._table.items() if holder is self]:
            self.free(offset)


_OPEN: Final[weakref.WeakSet[OfdLocks]] = weakref.WeakSet()


def _close_in_child() -> None:
    for locks in list(_OPEN):
        locks.close()


os.register_at_fork(after_in_child=_close_in_child)


class Owners:
    """The claims of one store object, each with its kernel lock."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._locks: OfdLocks | PlainLocks | None = None
        self._guard = threading.Lock()
        self._claims: dict[RunId, Claim | None] = {}  # None while a claim is being made

    def holder(self, run: RunId) -> Claim | None:
        return self._claims.get(run)

    def _open(self) -> OfdLocks | PlainLocks:
        if self._locks is None:
            self._locks = OfdLocks(self._path) if _OFD else PlainLocks(self._path)
        return self._locks

    def take(self, run: RunId, owner: Callable[[], str]) -> None:
        """Lock a run, or raise `RunOwned`; `owner` tells who is named when another process holds it."""
        with self._guard:
            held = self._claims.get(run)
            if run in self._claims:
                raise RunOwned(run=run, owner=held.owner if held else "a claim being made in this process")
            try:
                locked = self._open().take(place_of(run))
            except OSError as error:
                raise StoreReadOnly(place=self._path, reason=error.strerror or str(error)) from error
            if locked:
                self._claims[run] = None
                return
        raise RunOwned(run=run, owner=owner())

    def keep(self, claim: Claim) -> None:
        self._claims[claim.run] = claim

    def free(self, run: RunId) -> None:
        with self._guard:
            if run in self._claims and self._locks is not None:
                self._locks.free(place_of(run))
            self._claims.pop(run, None)

    def is_owned(self, run: RunId) -> bool:
        """Whether anybody alive holds the run, this store included."""
        if run in self._claims:
            return True
        try:
            if self._locks is None and not os.path.exists(self._path):
                return False
            with self._guard:
                return self._open().is_taken(place_of(run))
        except OSError:
            return False

    def close(self) -> None:
        with self._guard:
            self._claims.clear()
            if self._locks is not None:
                self._locks.close()
                self._locks = None
