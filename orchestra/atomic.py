"""Writing files that are there whole or not at all: under another name first, then renamed."""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from orchestra.errors import BadName, OrchestraError, StoreFailed, StoreFull, StoreReadOnly

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EXDEV)
_NO_PLACE: Final = (errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL)


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file that appears under its name, synced, when the block ends; after an error there is nothing.

    Raises `BadName` when something is there already and `force` is not set, or the place can hold no file;
    `StoreFull`, `StoreReadOnly` and `StoreFailed` for what the operating system says.
    """
    if not force and path.exists():
        raise _exists_error(path)
    part = _folder(path) / f".{path.name}.{os.getpid()}-{threading.get_ident()}.part"
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _publish(part, path, force)
        sync(path.parent)
    except OSError as error:
        raise file_error(error, path) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_file(path: Path, data: bytes, *, force: bool = True) -> None:
    """Write a whole file at once; raises as `new_file` does."""
    with new_file(path, force=force) as file:
        file.write(data)


def file_error(error: OSError, path: Path) -> OrchestraError:
    """The error to raise for what the operating system said about a file."""
    if isinstance(error, FileExistsError):
        return _exists_error(path)
    if error.errno in _NO_PLACE:
        return BadName(what="file", name=str(path), rule=f"another path ({error.strerror})")
    return store_error(error, path)


def store_error(error: OSError, place: str | Path, needed: str = "some room") -> OrchestraError:
    """The error to raise for what the operating system said about something that can be a file."""
    if error.errno in NO_SPACE:
        return StoreFull(place=place, needed=needed)
    kind = StoreReadOnly if error.errno in FORBIDDEN else StoreFailed
    return kind(place=place, reason=error.strerror or str(error) or type(error).__name__)


def _folder(path: Path) -> Path:
    """The folder of a file, made if need be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise BadName(what="file", name=str(path), rule="another path (its folder is a file)") from None
    except OSError as error:
        raise file_error(error, path) from None
    return path.parent


def _publish(part: Path, path: Path, force: bool) -> None:
    if force:
        part.replace(path)
        return
    try:
        path.hardlink_to(part)  # unlike renaming, this refuses to replace what came meanwhile
    except OSError as error:
        if error.errno not in _NO_LINKS or path.exists():
            raise
        part.rename(path)


def sync(path: str | Path) -> None:
    """Make durable what was written to a file, by whomever, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exists_error(path: Path) -> BadName:
    return BadName(what="new file", name=str(path), rule="a path where nothing is yet, or --force")
