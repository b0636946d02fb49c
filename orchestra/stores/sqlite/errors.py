"""Translates SQLite's errors: every apsw exception becomes one of ours.

`kind_of` sorts an exception, `translate` turns it into the error to raise. A test proves that every exception
class of apsw stands in the table. What Python itself raises over values that do not fit comes through this
door too, such as `UnicodeDecodeError` over damaged text.
"""

import errno
import os
import struct
from enum import Enum, auto
from typing import Final

import apsw

from orchestra.errors import (
    Damaged,
    OrchestraError,
    StoreBusy,
    StoreClosed,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
)


class Kind(Enum):
    """What an SQLite error means to us."""

    BUSY = auto()  # somebody else is in the way; try again
    FULL = auto()  # no space
    FAILED = auto()  # the operating system reported an error; the connection is not trusted any more
    READ_ONLY = auto()
    DAMAGED = auto()  # the file is not what was written
    CLOSED = auto()
    BUG = auto()  # the library was used wrongly


KINDS: Final[dict[type[apsw.Error], Kind]] = {
    apsw.AbortError: Kind.FAILED,
    apsw.AuthError: Kind.READ_ONLY,
    apsw.BindingsError: Kind.BUG,
    apsw.BusyError: Kind.BUSY,
    apsw.CantOpenError: Kind.FAILED,
    apsw.ConnectionClosedError: Kind.CLOSED,
    apsw.ConnectionNotClosedError: Kind.BUG,
    # Our statements keep every constraint, so one that is broken means that table and index disagree.
    apsw.ConstraintError: Kind.DAMAGED,
    apsw.CorruptError: Kind.DAMAGED,
    apsw.CursorClosedError: Kind.CLOSED,
    apsw.EmptyError: Kind.DAMAGED,
    apsw.ExecTraceAbort: Kind.BUG,
    apsw.ExecutionCompleteError: Kind.BUG,
    apsw.ExtensionLoadingError: Kind.BUG,
    apsw.ForkingViolationError: Kind.CLOSED,
    apsw.FormatError: Kind.DAMAGED,
    apsw.FullError: Kind.FULL,
    apsw.IOError: Kind.FAILED,
    apsw.IncompleteExecutionError: Kind.BUG,
    apsw.InternalError: Kind.FAILED,
    apsw.InterruptError: Kind.FAILED,
    apsw.InvalidContextError: Kind.BUG,
    apsw.LockedError: Kind.BUSY,
    apsw.MismatchError: Kind.DAMAGED,
    apsw.MisuseError: Kind.BUG,
    apsw.NoFTS5Error: Kind.BUG,
    apsw.NoLFSError: Kind.FAILED,
    apsw.NoMemError: Kind.FAILED,
    apsw.NotADBError: Kind.DAMAGED,
    apsw.NotFoundError: Kind.FAILED,
    apsw.PermissionsError: Kind.READ_ONLY,
    # The locking protocol lost too many races for the WAL index: the same as busy.
    apsw.ProtocolError: Kind.BUSY,
    apsw.RangeError: Kind.BUG,
    apsw.ReadOnlyError: Kind.READ_ONLY,
    # Our statements are constants that are tested, so one that does not compile met another schema.
    apsw.SQLError: Kind.DAMAGED,
    apsw.SchemaChangeError: Kind.BUSY,
    apsw.ThreadingViolationError: Kind.BUG,
    apsw.TooBigError: Kind.FAILED,
    apsw.VFSFileClosedError: Kind.BUG,
    apsw.VFSNotImplementedError: Kind.BUG,
}

PYTHONS: Final[dict[type[Exception], Kind]] = {
    UnicodeDecodeError: Kind.DAMAGED,  # text in the file is no text
    UnicodeEncodeError: Kind.BUG,  # text was handed in that is no text
    OverflowError: Kind.BUG,  # a number was handed in that has no place in a column
    struct.error: Kind.BUG,
    MemoryError: Kind.FAILED,
}
"""What Python itself raises while values go to SQLite or come from it."""

FOREIGN: Final[tuple[type[Exception], ...]] = (apsw.Error, *PYTHONS)

_EXTENDED: Final[dict[int, Kind]] = {
    apsw.SQLITE_IOERR_SHORT_READ: Kind.DAMAGED,
    apsw.SQLITE_IOERR_CORRUPTFS: Kind.DAMAGED,
    apsw.SQLITE_IOERR_DATA: Kind.DAMAGED,
    apsw.SQLITE_IOERR_BLOCKED: Kind.BUSY,
    apsw.SQLITE_IOERR_LOCK: Kind.BUSY,
    apsw.SQLITE_CANTOPEN_DIRTYWAL: Kind.DAMAGED,
}

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


def kind_of(error: Exception, *, system_errno: int = 0, place: str = "") -> Kind:
    """What `error` means. `system_errno` is what the connection says the operating system answered."""
    if not isinstance(error, apsw.Error):
        return next(kind for foreign, kind in PYTHONS.items() if isinstance(error, foreign))
    kind = KINDS.get(type(error), Kind.FAILED)
    kind = _EXTENDED.get(getattr(error, "extendedresult", 0), kind)
    if kind is Kind.FAILED and (system_errno in _NO_SPACE or _no_room(error, place)):
        return Kind.FULL
    return kind


def _no_room(error: Exception, place: str) -> bool:
    """Whether an error that names no cause met a full disk, as when the log's index cannot grow."""
    if getattr(error, "extendedresult", 0) not in (apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP):
        return False
    try:
        room = os.statvfs(os.path.dirname(os.path.abspath(place)))
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < 65536


def translate(
    error: Exception, place: str, *, system_errno: int = 0, seconds: float = 0.0, needed: int = 0
) -> OrchestraError:
    """The error to raise for what SQLite raised while working on `place`."""
    kind = kind_of(error, system_errno=system_errno, place=place)
    reason = f"{type(error).__name__}: {error}"
    if system_errno and kind in (Kind.FAILED, Kind.READ_ONLY):
        reason = f"{reason} ({os.strerror(system_errno)})"
    match kind:
        case Kind.BUSY:
            return StoreBusy(place=place, seconds=round(seconds, 1))
        case Kind.FULL:
            return StoreFull(place=place, needed=human(needed or 65536))
        case Kind.READ_ONLY:
            return StoreReadOnly(place=place, reason=reason)
        case Kind.DAMAGED:
            return Damaged(what=place, reason=reason)
        case Kind.CLOSED:
            return StoreClosed(place=place)
        case Kind.FAILED:
            return StoreFailed(place=place, reason=reason)
        case Kind.BUG:
            return StoreFailed(place=place, reason=f"BUG: {reason}")


def human(size: int) -> str:
    """A number of bytes for people."""
    amount = float(size)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"
