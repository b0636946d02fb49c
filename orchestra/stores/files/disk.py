"""Durable reads and writes of files; every `OSError` becomes one of our errors.

A file that is replaced is written beside its place, synced, renamed over it, and then its folder is synced:
a crash at any moment leaves the old bytes or the new ones. Files that end in `.tmp` are leftovers of such
a crash and belong to nobody.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchestra.atomic import store_error, sync

TMP = ".tmp"


@contextmanager
def map_errors(place: str, needed: int = 0) -> Iterator[None]:
    """Raise only errors of ours from what is done inside."""
    try:
        yield
    except OSError as error:
        raise store_error(error, place, f"{max(needed, 4096) / 1024:.0f} KB") from error


def read(path: str) -> bytes:
    """The whole file."""
    with open(path, "rb") as file:
        return file.read()


def append(path: str, data: bytes) -> None:
    """Add to the end of a file, which is made if need be, and sync it. Its folder is the caller's to sync."""
    with open(path, "ab", buffering=0) as file:
        write_all(file.fileno(), data)
        os.fsync(file.fileno())


def replace(path: str, data: bytes, at_us: int | None = None) -> None:
    """Put a file in place whole. Its folder is the caller's to sync."""
    beside = path + TMP
    try:
        with open(beside, "wb", buffering=0) as file:
            write_all(file.fileno(), data)
            if at_us is not None:
                os.utime(file.fileno(), ns=(at_us * 1000, at_us * 1000))
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        raise


def cut(path: str, size: int) -> None:
    """Shorten a file, durably."""
    with open(path, "r+b", buffering=0) as file:
        os.ftruncate(file.fileno(), size)
        os.fsync(file.fileno())


def make_folder(path: str) -> None:
    """Make a folder whose name is durable; one that is there already is fine."""
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    try:
        sync(os.path.dirname(path))
    except OSError:
        os.rmdir(path)  # or the next one to need it would take it for durable
        raise


def remove_tree(path: str) -> None:
    """Remove a folder of files and folders. Links are removed, never followed."""
    for entry in list(os.scandir(path)):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(path)


def size_of_tree(path: str) -> int:
    """Bytes in all files below a folder."""
    total = 0
    for file in (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names):
        with suppress(FileNotFoundError):
            total += os.lstat(file).st_size
    return total


def write_all(descriptor: int, data: bytes) -> None:
    """Write, as often as the system takes only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
