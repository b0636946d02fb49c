"""A disk that fails where it is told to, below SQLite and below the few files that a store writes itself.

Every write, sync, truncation and deletion is an operation with a number. A `Strike` is asked before each and
may let it pass, raise what a full or broken disk raises, or end the process.
"""

import os
import signal
from collections.abc import Callable
from typing import Any, Final, Literal

import apsw
import attrs

Kind = Literal["write", "sync", "truncate", "delete"]


@attrs.frozen
class Operation:
    """Something about to happen to a file."""

    number: int
    kind: Kind
    file: str
    half: Callable[[], object]
    """Do half of it: of a write the first half of its bytes, of anything else nothing."""


Strike = Callable[[Operation], None]


def nothing(_operation: Operation) -> None:
    """Let everything pass."""


def kill_at(point: int, *, torn: bool = False) -> Strike:
    """End this process before operation `point`, or in the middle of it."""

    def strike(operation: Operation) -> None:
        if operation.number == point:
            if torn:
                operation.half()
            os.kill(os.getpid(), signal.SIGKILL)

    return strike


def full_from(point: int) -> Strike:
    """No space for any write from operation `point` on."""

    def strike(operation: Operation) -> None:
        if operation.number >= point and operation.kind == "write":
            raise apsw.FullError("database or disk is full")

    return strike


def sync_fails_at(point: int) -> Strike:
    """The first sync at or after operation `point` fails; later ones do not."""
    struck = False

    def strike(operation: Operation) -> None:
        nonlocal struck
        if operation.number >= point and operation.kind == "sync" and not struck:
            struck = True
            error = apsw.IOError("disk I/O error")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC  # type: ignore[attr-defined]
            raise error

    return strike


class Disk(apsw.VFS):
    """The machine's disk, watched. Name it as the `vfs` of a store."""

    def __init__(self, name: str, strike: Strike = nothing) -> None:
        super().__init__(name, "")
        self.name = name
        self.strike = strike
        self.count = 0

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.before("delete", filename, lambda: None)
        super().xDelete(filename, syncdir)

    def before(self, kind: Kind, file: str, half: Callable[[], object]) -> None:
        """Count an operation that is about to happen, and let it be struck."""
        number, self.count = self.count, self.count + 1
        self.strike(Operation(number, kind, file, half))

    def watch_os(self) -> None:
        """Count what this process writes without SQLite as well. There is no way back: for children."""
        for kind, call in _OS_CALLS.items():
            for name in call:
                setattr(os, name, self._watched(kind, getattr(os, name)))

    def _watched(self, kind: Kind, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            self.before(kind, call.__name__, lambda: None)
            return call(*arguments, **named)

        return watched


_OS_CALLS: Final[dict[Kind, tuple[str, ...]]] = {
    "write": ("pwrite", "posix_fallocate", "link"),
    "sync": ("fsync",),
}


class _File(apsw.VFSFile):
    """One open file of a `Disk`."""

    def __init__(self, disk: Disk, name: Any, flags: Any) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        write = super().xWrite
        self._disk.before("write", self._name, lambda: write(bytes(data)[: len(data) // 2], offset))
        write(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.before("sync", self._name, lambda: None)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.before("truncate", self._name, lambda: None)
        super().xTruncate(size)
