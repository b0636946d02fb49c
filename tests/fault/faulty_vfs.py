"""A VFS below SQLite that fails when told to: the disk of these tests.

    with faulty_vfs("name") as disk:
        store = SqliteStore(path, create=True, vfs="name")
        disk.fill_from(3)

It counts the writes and syncs of all files of the database, the log included, and hands on what it does not
fail.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


class Disk:
    """What the disk shall do, and what it did."""

    def __init__(self) -> None:
        self.writes = 0
        self.syncs = 0
        self._full_from: int | None = None
        self._failing_syncs = 0
        self._failing_writes = 0

    def fill_from(self, write: int) -> None:
        """No space from that write on, counted from the next as 1."""
        self._full_from = self.writes + write

    def free(self) -> None:
        """There is space again."""
        self._full_from = None

    def fail_syncs(self, count: int) -> None:
        """The next syncs fail."""
        self._failing_syncs = count

    def fail_writes(self, count: int) -> None:
        """The next writes fail with an input/output error."""
        self._failing_writes = count

    def on_write(self) -> None:
        self.writes += 1
        if self._full_from is not None and self.writes >= self._full_from:
            raise _error(apsw.FullError, apsw.SQLITE_FULL)
        if self._failing_writes:
            self._failing_writes -= 1
            raise _error(apsw.IOError, apsw.SQLITE_IOERR_WRITE)

    def on_sync(self) -> None:
        self.syncs += 1
        if self._failing_syncs:
            self._failing_syncs -= 1
            raise _error(apsw.IOError, apsw.SQLITE_IOERR_FSYNC)


def _error(kind: type[apsw.Error], code: int) -> apsw.Error:
    error = kind("made by the test")
    setattr(error, "extendedresult", code)  # noqa: B010 - apsw takes the code from here, its types do not say so
    return error


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.on_write()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.on_sync()
        super().xSync(flags)

    def excepthook(self, etype: object, evalue: object, etraceback: object) -> bool:
        return True  # SQLite is told by its return code; nobody needs a trace of it


class _Vfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self._disk, name, flags)


@contextmanager
def faulty_vfs(name: str) -> Iterator[Disk]:
    """A registered VFS over the default one."""
    disk = Disk()
    vfs = _Vfs(name, disk)
    try:
        yield disk
    finally:
        vfs.unregister()
