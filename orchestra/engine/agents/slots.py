"""Slots: how many attempts may work at once over all runs of a process. Costs nothing while there is room."""

from collections.abc import Callable


class Slots:
    """A bounded number of places, given out in the order in which they were asked for."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._waiting: dict[Callable[[], None], None] = {}

    def ask(self, begin: Callable[[], None]) -> None:
        """Have `begin` called once there is a place, perhaps at once. Whoever began gives it back."""
        if self._free > 0:
            self._free -= 1
            begin()
        else:
            self._waiting[begin] = None

    def withdraw(self, begin: Callable[[], None]) -> bool:
        """A place is not wanted any more; False when it was given already."""
        if begin not in self._waiting:
            return False
        del self._waiting[begin]
        return True

    def give(self) -> None:
        """There is a place more: somebody who holds one ended, or stands still."""
        self._free += 1
        while self._waiting and self._free > 0:
            begin = next(iter(self._waiting))
            del self._waiting[begin]
            self._free -= 1
            begin()

    def take(self) -> None:
        """Whoever stood still works again; for a while there may be more at work than there are places."""
        self._free -= 1
