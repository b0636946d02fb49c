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

from orchestra import errors
from orchestra.errors import OrchestraError


class Kind(Enum):
    """What an SQLite error means to us."""

    BUSY = auto()  # somebody else is in the way; try again
    FULL = auto()  # no space
    FAILED = auto()  # the operating system reported an error; the connection is not trusted any more
    READ_ONLY = auto()
    DAMAGED = auto()  # the file is not what was written
    CLOSED = auto()
    BUG = auto()  # the library was used wrongly


_CLASSES: Final[dict[Kind, tuple[type[apsw.Error], ...]]] = {
    Kind.BUSY: (
        apsw.BusyError, apsw.LockedError, apsw.SchemaChangeError,
        apsw.ProtocolError,  # the locking protocol lost too many races for the WAL index
    ),
    Kind.FULL: (apsw.FullError,),
    Kind.FAILED: (
        apsw.AbortError, apsw.CantOpenError, apsw.IOError, apsw.InternalError, apsw.InterruptError,
        apsw.NoLFSError, apsw.NoMemError, apsw.NotFoundError, apsw.TooBigError,
    ),
    Kind.READ_ONLY: (apsw.AuthError, apsw.PermissionsError, apsw.ReadOnlyError),
    Kind.DAMAGED: (
        apsw.CorruptError, apsw.EmptyError, apsw.FormatError, apsw.MismatchError, apsw.NotADBError,
        apsw.ConstraintError,  # our statements keep every constraint: table and index disagree
        apsw.SQLError,  # our statements are constants that are tested: one met another schema
    ),
    Kind.CLOSED: (apsw.ConnectionClosedError, apsw.CursorClosedError, apsw.ForkingViolationError),
    Kind.BUG: (
        apsw.BindingsError, apsw.ConnectionNotClosedError, apsw.ExecTraceAbort, apsw.ExecutionCompleteError,
        apsw.ExtensionLoadingError, apsw.IncompleteExecutionError, apsw.InvalidContextError, apsw.MisuseError,
        apsw.NoFTS5Error, apsw.RangeError, apsw.ThreadingViolationError, apsw.VFSFileClosedError,
        apsw.VFSNotImplementedError,
    ),
}  # fmt: skip
KINDS: Final = {error: kind for kind, listed in _CLASSES.items() for error in listed}

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
            return errors.StoreBusy(place=place, seconds=round(seconds, 1))
        case Kind.FULL:
            return errors.StoreFull(place=place, needed=human(needed or 65536))
        case Kind.READ_ONLY:
            return errors.StoreReadOnly(place=place, reason=reason)
        case Kind.DAMAGED:
            return errors.Damaged(what=place, reason=reason)
        case Kind.CLOSED:
            return errors.StoreClosed(place=place)
        case Kind.FAILED | Kind.BUG:
            return errors.StoreFailed(place=place, reason=f"BUG: {reason}" if kind is Kind.BUG else reason)


def human(size: int) -> str:
    """A number of bytes for people."""
    amount = float(size)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"
