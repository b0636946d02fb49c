"""The ballast: a file that holds disk space in reserve.

Removing things from a database needs space first, for the log of what is removed. On a full disk the ballast
is thrown overboard to make that possible, and taken on again when there is room.
"""

import os

from orchestra import limits


class Ballast:
    """The reserve beside a database."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def is_there(self) -> bool:
        """Whether there is one."""
        return os.path.exists(self.path)

    def take(self) -> None:
        """Allocate the reserve, if it is not there and there is ample room. Never fails."""
        try:
            if self.is_there:
                return
            room = os.statvfs(os.path.dirname(self.path))
            size = min(limits.BALLAST_BYTES, room.f_bavail * room.f_frsize // 4)
            if size < limits.BALLAST_BYTES // 8:
                return
            self._allocate(size)
        except OSError:
            self.drop()

    def _allocate(self, size: int) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)

    def drop(self) -> bool:
        """Give the reserve back to the filesystem. True when there was one."""
        try:
            os.unlink(self.path)
        except OSError:
            return False
        return True
